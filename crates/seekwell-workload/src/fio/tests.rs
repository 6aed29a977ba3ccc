use super::parse;
use crate::Plan;
use crate::testing::Trial;

fn none(_: &str) -> Option<String> {
    None
}

fn trial(text: &str) -> Trial {
    let plan = Plan::fio("test.fio", text, &none).unwrap_or_else(|e| panic!("{e}"));
    let t = Trial::of(plan, |_| {});
    assert_eq!(t.outcome, Ok(()));
    assert_eq!(t.left_over(), 0);
    t
}

fn refused(text: &str) -> String {
    parse("a/test.fio", text, &none)
        .expect_err("refused")
        .to_string()
}

#[test]
fn a_sequential_write_with_an_fsync_at_the_end() {
    let t = trial("[w]\nrw=write\nbs=64k\nsize=1m\nend_fsync=1\n");
    let w = t.ranges("write", "job0");
    assert_eq!(w.len(), 16);
    assert!(w.windows(2).all(|p| p[1].0 == p[0].0 + p[0].1));
    assert_eq!(t.calls("fsync"), 1);
}

#[test]
fn a_random_read_visits_every_block_once_unless_told_otherwise() {
    let t = trial("[r]\nrw=randread\nsize=1m\ndirect=1\n");
    let mut r: Vec<u64> = t.ranges("read", "job0").iter().map(|r| r.0).collect();
    assert!(r.windows(2).any(|w| w[1] < w[0]));
    r.sort_unstable();
    r.dedup();
    assert_eq!(r.len(), 256);
    let t = trial("[r]\nrw=randread\nsize=1m\nnorandommap\n");
    let mut r: Vec<u64> = t.ranges("read", "job0").iter().map(|r| r.0).collect();
    assert_eq!(r.len(), 256);
    r.sort_unstable();
    r.dedup();
    // 1 - 1/e of the places.
    assert!((140..185).contains(&r.len()), "{}", r.len());
}

#[test]
fn depth_is_kept_and_clones_have_their_own_files() {
    let text = "[global]\nioengine=libaio\niodepth=8\ndirect=1\nsize=1m\n\
                [a]\nrw=randread\nnumjobs=2\n[b]\nstonewall\nrw=randwrite\nbs=8k\n";
    let t = trial(text);
    assert_eq!(t.ops("read"), 512);
    assert_eq!(
        t.calls_on("read", "job0.0") + t.calls_on("read", "job0.1"),
        512
    );
    assert_eq!(t.ops("write"), 128);
    let log = t.world.log();
    let last_read = log.iter().rposition(|c| c.name == "read").expect("reads");
    let first = log.iter().position(|c| c.name == "write" && c.len == 8192);
    assert!(first.is_some_and(|w| w > last_read), "after the wall");
}

#[test]
fn mixes_rates_thinking_and_syncs() {
    let t = trial("[m]\nrw=randrw\nrwmixread=75\nsize=4m\nfsync=10\n");
    let share = t.ops("read") as f64 / 1024.0;
    assert!((0.70..0.80).contains(&share), "{share}");
    assert_eq!(t.ops("fsync"), t.ops("write") / 10);
    let t = trial("[m]\nrw=read\nsize=4m\nrate_iops=1000\nnumber_ios=50\n");
    assert!((t.metric() - 1000.0).abs() < 30.0, "{}", t.metric());
    let t = trial("[m]\nrw=read\nsize=4m\nthinktime=1000\nthinktime_blocks=4\nnumber_ios=40\n");
    assert!((t.world.elapsed().as_secs_f64() * 1000.0) > 9.0);
}

#[test]
fn time_and_ramp() {
    let t =
        trial("[m]\nrw=randread\nsize=1m\nruntime=1\ntime_based\nramp_time=500ms\nthinktime=1ms\n");
    // 1.5 s of calls of 1 ms; those of the first half second do not count.
    assert!((990..=1000).contains(&t.ops("read")), "{}", t.ops("read"));
    let t = trial("[m]\nrw=read\nsize=1m\nloops=3\n");
    assert_eq!(t.ops("read"), 3 * 256);
}

#[test]
fn skewed_places_are_skewed() {
    let hits = |d: &str| {
        let text = format!(
            "[m]\nrw=randread\nsize=4m\nnumber_ios=2000\nio_size=1g\nrandom_distribution={d}\n"
        );
        let t = trial(&text);
        let mut n = std::collections::BTreeMap::new();
        for r in t.ranges("read", "job0") {
            *n.entry(r.0).or_insert(0u32) += 1;
        }
        n.into_values().max().unwrap_or(0)
    };
    // Of 1024 blocks: with zipf 1.1 the first has weight 1 / 5.6.
    let zipf = hits("zipf:1.1");
    assert!((290..430).contains(&zipf), "{zipf}");
    assert!(hits("random") <= 2);
    assert!(hits("pareto:0.2") > 10);
}

#[test]
fn options_in_words_comments_and_variables() {
    let vars = |n: &str| (n == "SIZE").then(|| "2m".to_owned());
    let text = "; comment\n[global] # more\nsize=${SIZE}\ngroup_reporting\nverify=md5\n\
                [one]\nrw=write ; words\nfilename=$jobname.dat\nprio=2\n";
    let f = parse("dir/x.fio", text, &vars).expect("fits");
    assert_eq!(f.name, "x");
    assert_eq!(f.jobs[0].size, 2 << 20);
    assert_eq!(f.jobs[0].filename.as_deref(), Some("one.dat"));
    assert_eq!(f.jobs[0].prio, seekwell_core::IoPrio::be(2));
    assert_eq!(f.warnings.len(), 2, "{:?}", f.warnings);
    assert_eq!(f.space(), 2 << 20);
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (text, words) in [
        (
            "[a]\nsize=1m\nfrobnicate=3\n",
            "a/test.fio, line 3: the option `frobnicate` is not known here",
        ),
        (
            "rw=read\n",
            "line 1: `rw=read` stands before the first section",
        ),
        ("[a]\nrw=trim\nsize=1m\n", "line 2: rw=trim: one of read"),
        ("[a]\nrw=read\n", "line 1: job a: size is missing"),
        ("[a]\nbs=3\nsize=1m\n", "a block is 512 bytes to 1 GiB"),
        ("[a]\nsize=1m\nfilename=/etc/passwd\n", "one plain name"),
        ("[a]\nsize=1m\nfilename=..\n", "one plain name"),
        ("[a]\nsize=${NOPE}\n", "the variable NOPE is not set"),
        ("[a]\nsize=1m\ntime_based\n", "time_based needs runtime"),
        ("[a]\nsize=1m\ndirect=1\nbs=1000\n", "multiples of 4096"),
        ("[a\n", "is no section"),
        ("", "there is no job"),
        ("[a]\nsize=1m\nread_iolog=x\n", "seekwell replay FILE"),
        ("[a]\ninclude b.fio\n", "include is not read"),
        ("[a]\nsize=99999999999t\n", "not a size"),
        ("[a]\nsize=1k\n", "holds no block of 4096"),
    ] {
        let e = refused(text);
        assert!(e.contains(words), "{text:?}: {e}");
    }
}

proptest::proptest! {
    /// Any text is a job file or an error; small job files run to their end.
    #[test]
    fn any_text_parses_or_is_refused(text in "(\\[[a-z]{0,3}\\]?|(rw|bs|size|iodepth|ioengine|nrfiles|offset|bsrange|loops|fsync|prio|direct|thinktime|rate|junk)=?[a-z0-9:,.-]{0,6}|[ -~]{0,8})(\n(\\[[a-z]{1,3}\\]|(rw=(rand)?(read|write|rw)|bs=[1-9][kKmM]?|size=[1-9]{1,2}[km]|iodepth=[0-9]|ioengine=libaio|nrfiles=[1-4]|offset=4k|fsync=[0-3]|direct=1))){0,9}") {
        if let Ok(f) = parse("p.fio", &text, &none)
            && f.space() < 1 << 24
            && f.jobs.iter().all(|j| j.loops < 3)
        {
            let plan = Plan::fio("p.fio", &text, &none).expect("parsed before");
            let t = Trial::of(plan, |_| {});
            proptest::prop_assert!(t.outcome.is_ok(), "{text}: {:?}", t.outcome);
            proptest::prop_assert_eq!(t.left_over(), 0);
        }
    }
}
