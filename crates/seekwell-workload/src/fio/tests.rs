use super::{Amount, parse};
use crate::Plan;
use crate::testing::Trial;

pub(super) fn none(_: &str) -> Option<String> {
    None
}

pub(super) fn trial(text: &str) -> Trial {
    let plan = Plan::fio("test.fio", text, &none).unwrap_or_else(|e| panic!("{e}"));
    let t = Trial::run_plan(plan, |_| {});
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
fn sequential_write_job_ends_with_an_fsync() {
    let t = trial("[w]\nrw=write\nbs=64k\nsize=1m\nend_fsync=1\n");
    let w = t.ranges("write", "job0");
    assert_eq!(w.len(), 16);
    assert!(w.windows(2).all(|p| p[1].0 == p[0].0 + p[0].1));
    assert_eq!(t.calls("fsync"), 1);
}

#[test]
fn random_read_visits_every_block_once_by_default() {
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
    // A fraction 1 - 1/e of all positions is visited.
    assert!((140..185).contains(&r.len()), "{}", r.len());
}

#[test]
fn queue_depth_is_kept_and_clones_have_their_own_files() {
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
fn mix_rate_think_time_and_sync_options_work() {
    let t = trial("[m]\nrw=randrw\nrwmixread=75\nsize=4m\nfsync=10\n");
    let share = t.ops("read") as f64 / 1024.0;
    assert!((0.70..0.80).contains(&share), "{share}");
    // Observed with fio: a due sync comes before the next call. It is due again before each read,
    // until another write changes the number of writes.
    let main = t.world.log()[0].task;
    let of = t.world.log().iter().filter(|c| c.task != main);
    let of = of.filter(|c| matches!(c.name, "read" | "write"));
    let (mut writes, mut syncs) = (0u64, 0);
    for c in of {
        syncs += u64::from(writes > 0 && writes.is_multiple_of(10));
        writes += u64::from(c.name == "write");
    }
    assert_eq!((t.ops("fsync"), t.ops("write")), (syncs, writes));
    let t = trial("[m]\nrw=read\nsize=4m\nrate_iops=1000\nnumber_ios=50\n");
    // The rate limits the job, so the latency of its reads is the first metric.
    let all = t.world.measures().metrics();
    assert_eq!(all.first().map(|m| &*m.name), Some("read mean"));
    let rate = all.iter().find(|m| m.name == "IOPS").expect("a rate").value;
    assert!((rate - 1000.0).abs() < 30.0, "{rate}");
    let t = trial("[m]\nrw=read\nsize=4m\nthinktime=1000\nthinktime_blocks=4\nnumber_ios=40\n");
    assert!((t.world.elapsed().as_secs_f64() * 1000.0) > 9.0);
}

#[test]
fn runtime_and_ramp_time_limit_the_measurement() {
    let t =
        trial("[m]\nrw=randread\nsize=1m\nruntime=1\ntime_based\nramp_time=500ms\nthinktime=1ms\n");
    // The job makes calls of 1 ms each for 1.5 s. The first 0.5 s does not count.
    assert!((990..=1000).contains(&t.ops("read")), "{}", t.ops("read"));
    let t = trial("[m]\nrw=read\nsize=1m\nloops=3\n");
    assert_eq!(t.ops("read"), 3 * 256);
}

#[test]
fn random_distribution_options_skew_positions() {
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
    // Of 1024 blocks with zipf 1.1, the first block has weight 1 / 5.6.
    let zipf = hits("zipf:1.1");
    assert!((290..430).contains(&zipf), "{zipf}");
    assert!(hits("random") <= 2);
    assert!(hits("pareto:0.2") > 10);
}

#[test]
fn comments_variables_and_flags_are_parsed() {
    let vars = |n: &str| (n == "SIZE").then(|| "2m".to_owned());
    let text = "; comment\n[global] # more\nsize=${SIZE}\ngroup_reporting\nverify=md5\n\
                [one]\nrw=write ; words\nfilename=$jobname.dat\nprio=2\n";
    let f = parse("dir/x.fio", text, &vars).expect("fits");
    assert_eq!(f.name, "x");
    assert_eq!(f.jobs[0].size, Some(Amount::Bytes(2 << 20)));
    assert_eq!(f.jobs[0].filenames, ["one.dat"]);
    assert_eq!(f.jobs[0].prio, seekwell_core::IoPrio::be(2));
    assert_eq!(f.warnings.len(), 2, "{:?}", f.warnings);
    assert_eq!(f.space(), 2 << 20);
}

#[test]
fn errors_are_reported_with_their_line() {
    for (text, words) in [
        (
            "[a]\nsize=1m\nfrobnicate=3\n",
            "a/test.fio, line 3: the option \"frobnicate\" is not supported",
        ),
        (
            "rw=read\n",
            "line 1: \"rw=read\" is before the first section",
        ),
        (
            "[a]\nrw=trimread\nsize=1m\n",
            "line 2: rw=trimread: write one of read",
        ),
        (
            "[a]\nrw=randread:0\nsize=1m\n",
            "after the colon, give a number of calls",
        ),
        (
            "[a]\nrw=read:many\nsize=1m\n",
            "after the colon, give a number of bytes",
        ),
        (
            "[a]\nrw=read:100\nsize=1m\ndirect=1\n",
            "skipped bytes must be multiples of 512",
        ),
        (
            "[a]\nrw=randread:8\nsize=1m\nrw_sequencer=backwards\n",
            "one of sequential, identical",
        ),
        (
            "[a]\nfilename=/dev/x\n[b]\nsize=1m\n",
            "line 3: job b: filename names a device in one job and files in another job",
        ),
        ("[a]\nsize=1m\nbssplit=4k/60:8k/50\n", "at most 100"),
        ("[a]\nsize=1m\nbs=4k,4k,4k,4k\n", "at most three lists"),
        ("[a]\nsize=1m\nrate=fast\n", "rate=fast: not a valid rate"),
        (
            "[a]\nsize=1m\nfile_service_type=lifo\n",
            "one of roundrobin, sequential, random",
        ),
        (
            "[a]\nsize=1m\nfallocate=maybe\n",
            "one of native, posix, none",
        ),
        (
            "[a]\nsize=1m\nrandom_distribution=zoned:50/50:50/40\n",
            "must add up to 100",
        ),
        (
            "[a]\nsize=1m\ncgroup_weight=5000\n",
            "not a number from 1 to 1000",
        ),
        (
            "[a]\nsize=1m\nsteadystate=iops:1%\n",
            "steadystate needs steadystate_duration",
        ),
        (
            "[a]\nsize=1m\nfadvise_hint=maybe\n",
            "fadvise_hint=maybe: not 0 or 1",
        ),
        (
            "[a]\nsize=1m\niodepth_batch=0\n",
            "not a number from 1 to 1048576",
        ),
        ("[a]\nrw=read\n", "line 1: job a: size is missing"),
        ("[a]\nbs=0\nsize=1m\n", "a block must have 1 byte to 1 GiB"),
        (
            "[a]\nsize=1m\nfilename=/etc/\n",
            "does not end with the name of a file",
        ),
        (
            "[a]\nsize=1m\nfilename=..\n",
            "does not end with the name of a file",
        ),
        ("[a]\nsize=${NOPE}\n", "the variable NOPE is not set"),
        ("[a]\nsize=1m\ndirect=1\nbs=1000\n", "multiples of 512"),
        ("[a\n", "is not a section"),
        ("", "the file has no job"),
        (
            "[a]\nsize=1m\nread_iolog=x\n",
            "seekwell replay FILE --mode",
        ),
        (
            "[a]\ninclude b.fio\n",
            "line 2: include b.fio: put the text of b.fio here",
        ),
        ("[a]\nsize=99999999999t\n", "not a valid size"),
        ("[a]\nsize=1k\n", "is less than one block of 4096"),
    ] {
        let e = refused(text);
        assert!(e.contains(words), "{text:?}: {e}");
    }
}

#[test]
fn raw_job_accesses_the_device_and_can_trim() {
    let t = trial("[r]\nfilename=/dev/sdz\nrw=randread\nsize=1m\nnumber_ios=100\ndirect=1\n");
    assert_eq!(t.ops("read"), 100);
    assert_eq!(
        t.calls("mkdir") + t.calls("fallocate") + t.calls("unlink"),
        0
    );
    let t = trial("[t]\nfilename=/dev/sdz\nrw=trim\nbs=64k\nsize=1m\n");
    assert_eq!((t.ops("trim"), t.calls("discard")), (16, 16));
    let t = trial("[t]\nfilename=/dev/sdz\nrw=trimwrite\nbs=64k\nsize=1m\n");
    assert_eq!((t.ops("trim"), t.ops("write")), (16, 16));
    let log = t
        .world
        .log()
        .iter()
        .filter(|c| matches!(c.name, "discard" | "write"));
    let log: Vec<(&str, u64)> = log.map(|c| (c.name, c.off)).collect();
    assert!(
        log.chunks(2)
            .all(|p| p[0] == ("discard", p[1].1) && p[1].0 == "write")
    );
    // fio, too, uses only as much of the device as there is.
    let text = "[t]\nfilename=/dev/z\nsize=512t\noffset=99g\nbs=1m\n";
    let t = Trial::run_plan(Plan::fio("t.fio", text, &none).expect("fits"), |_| {});
    assert_eq!((t.outcome.clone(), t.ops("read")), (Ok(()), 1024));
    let text = "[t]\nfilename=/dev/z\nsize=1g\noffset=100g\n";
    let t = Trial::run_plan(Plan::fio("t.fio", text, &none).expect("fits"), |_| {});
    let e = t.outcome.expect_err("too large").to_string();
    assert!(
        e.contains("offset 107374182400 of 107374182400 bytes"),
        "{e}"
    );
}

#[test]
fn rates_apply_per_direction_and_think_time_per_block() {
    let t = trial("[m]\nrw=rw\nsize=64m\nrate_iops=200,100\nruntime=2\n");
    let (r, w) = (t.ops("read"), t.ops("write"));
    // One task makes both kinds of calls, so each kind waits for the other. Neither exceeds its
    // rate.
    assert!(r <= 402 && w <= 202 && r + w > 300, "{r} {w}");
    let t = trial("[m]\nrw=read\nsize=4m\nrate=1m\nnumber_ios=256\n");
    assert!((0.98..1.02).contains(&t.world.elapsed().as_secs_f64()));
    // Observed with fio: of six reads, each second one is followed by a pause, even the last.
    let t = trial("[w]\nrw=read\nsize=24k\nthinktime=20ms\nthinktime_blocks=2\n");
    let ms = t.world.elapsed().as_secs_f64() * 1e3;
    assert!((60.0..61.0).contains(&ms), "{ms}");
}

#[test]
fn exitall_ends_other_jobs_and_each_section_is_reported() {
    let text = "[a]\nrw=read\nsize=4k\nexitall\n\
                [b]\nrw=randrw\nsize=1m\ntime_based\nruntime=1h\n";
    let t = trial(text);
    assert!(t.world.elapsed().as_secs_f64() < 1.0);
    let all = t.world.measures().metrics();
    let names: Vec<&str> = all.iter().map(|m| m.name.as_str()).collect();
    for name in [
        "IOPS",
        "bandwidth",
        "a read IOPS",
        "b read IOPS",
        "b write bandwidth",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
}

#[test]
fn section_is_judged_by_the_metric_its_users_wait_for() {
    let judged = |text: &str| -> Vec<String> {
        let file = parse("x.fio", &format!("[global]\nsize=1m\n{text}"), &none).expect("fits");
        file.figures()
            .into_iter()
            .map(|f| f.name.into_owned())
            .collect()
    };
    let aio = "ioengine=libaio\niodepth=32\ndirect=1\n";
    let latency = ["read mean", "read p99"];
    // A job that is limited by a rate, by think time or to one call at a time is judged by latency.
    assert_eq!(
        judged(&format!("[a]\nrw=randread\nrate_iops=50\n{aio}")),
        latency
    );
    assert_eq!(
        judged(&format!("[a]\nrw=randread\nthinktime=20ms\n{aio}")),
        latency
    );
    assert_eq!(judged("[a]\nrw=randread\n"), latency);
    assert_eq!(judged("[a]\nrw=read\ndirect=1\n"), latency);
    assert_eq!(
        judged("[a]\nrw=write\nsync=1\n"),
        ["write mean", "write p99"]
    );
    // Several calls at a time, and streams through the page cache, are judged by throughput.
    assert_eq!(judged(&format!("[a]\nrw=randread\n{aio}")), ["read IOPS"]);
    assert_eq!(
        judged(&format!("[a]\nrw=randread\nbs=64k\n{aio}")),
        ["read bandwidth"]
    );
    assert_eq!(
        judged(&format!("[a]\nrw=write\n{aio}")),
        ["write bandwidth"]
    );
    assert_eq!(judged("[a]\nrw=read\n"), ["read bandwidth"]);
    assert_eq!(judged("[a]\nrw=randwrite\n"), ["write IOPS"]);
    // A rate limit of one direction has no effect on the other direction.
    let mixed = judged(&format!("[a]\nrw=randrw\nrate_iops=50,\n{aio}"));
    assert_eq!(mixed, ["read mean", "read p99", "write IOPS"]);
    // The metric of the sync is first.
    let wal = judged("[a]\nrw=write\nbs=2300\nfdatasync=1\n");
    assert_eq!(wal, ["fdatasync p99", "write bandwidth"]);
    assert_eq!(
        judged("[a]\nrw=write\nfsync=8\n"),
        ["fsync p99", "write bandwidth"]
    );
    // With several sections, metric names contain the section name. Equal section names get a
    // number.
    let two = judged(&format!(
        "{aio}[a]\nrw=randread\n[b]\nrw=write\n[a]\nrw=randwrite\n"
    ));
    assert_eq!(
        two,
        ["a read IOPS", "b write bandwidth", "a (2) write IOPS"]
    );
}

#[test]
fn section_metrics_are_separate_and_precede_the_totals() {
    let text = "[global]\nsize=1m\ntime_based\nruntime=2\n\
                [slow]\nrw=randread\nrate_iops=10\n\
                [fast]\nrw=write\nfsync=16\nbs=64k\nrate_iops=100\n";
    let t = trial(text);
    let all = t.world.measures().metrics();
    let names: Vec<&str> = all.iter().map(|m| m.name.as_str()).collect();
    let judged = [
        "slow read mean",
        "slow read p99",
        "fast fsync p99",
        "fast write mean",
    ];
    assert_eq!(names[..4], judged);
    let of = |name: &str| all.iter().find(|m| m.name == name).expect(name).value;
    assert!(
        (9.0..=11.0).contains(&of("slow read IOPS")),
        "{}",
        of("slow read IOPS")
    );
    assert!(
        (90.0..=110.0).contains(&of("fast write IOPS")),
        "{}",
        of("fast write IOPS")
    );
    assert!((of("IOPS") / (of("slow read IOPS") + of("fast write IOPS")) - 1.0).abs() < 0.02);
    assert!(of("slow read p99") >= of("slow read mean"));
    assert_eq!(names.iter().filter(|n| **n == "slow read mean").count(), 1);
}

#[test]
fn zoned_and_normal_distributions_have_their_shares() {
    let reads = |d: &str| {
        let text = format!("[m]\nrw=randread\nsize=4m\nio_size=40m\nrandom_distribution={d}\n");
        trial(&text).ranges("read", "job0")
    };
    let all = reads("zoned:60/10:30/20:10/70");
    let share =
        |to: u64| all.iter().filter(|r| r.0 < to << 22 >> 3).count() as f64 / all.len() as f64;
    // An eighth of the file consists of the first zone and of 2.5 of the 20 percent of the second
    // zone.
    assert!((share(1) - 0.6375).abs() < 0.02, "{}", share(1));
    let mut hits = std::collections::BTreeMap::new();
    for r in reads("normal:5") {
        *hits.entry(r.0).or_insert(0u32) += 1;
    }
    // Nearly all calls are within three standard deviations on both sides, which is 30 % of the
    // positions.
    assert!((200..420).contains(&hits.len()), "{}", hits.len());
}

#[test]
fn hints_and_cgroup_options_reach_the_machine() {
    let count = |more: &str| trial(&format!("[r]\nrw=read\nsize=8k\n{more}")).calls("fadvise");
    assert_eq!(count(""), 2);
    assert_eq!(count("fadvise_hint=none\n"), 1);
    assert_eq!(count("fadvise_hint=0\ninvalidate=0\n"), 0);
    let f = parse(
        "x.fio",
        "[a]\nsize=1m\ncgroup=a\ncgroup_weight=300\nnice=5\nprioclass=1\n",
        &none,
    );
    let job = &f.expect("fits").jobs[0];
    assert_eq!((job.cgroup_weight, job.nice), (Some(300), 5));
    assert_eq!(job.prio.class, seekwell_core::Class::Rt);
}

#[test]
fn included_files_are_expanded_in_place_and_named_in_errors() {
    struct Files;
    impl super::Outside for Files {
        fn variable(&self, _: &str) -> Option<String> {
            None
        }
        fn include(&self, file: &str) -> Result<String, String> {
            match file {
                "common.fio" => Ok("; shared\nbs=8k\nsize=1m\n".into()),
                "bad.fio" => Ok("\nfrob=1\n".into()),
                "loop.fio" => Ok("include loop.fio\n".into()),
                _ => Err("no such file".into()),
            }
        }
    }
    let f = parse(
        "x.fio",
        "[global]\ninclude common.fio\n[a]\nrw=write\n",
        &Files,
    );
    let size = f.expect("fits").jobs[0].size;
    assert_eq!(size, Some(Amount::Bytes(1 << 20)));
    let wrong = |text: &str| {
        parse("x.fio", text, &Files)
            .expect_err("refused")
            .to_string()
    };
    assert!(wrong("[a]\ninclude bad.fio\n").starts_with("bad.fio, line 2: the option \"frob\""));
    assert!(wrong("[a]\ninclude loop.fio\n").contains("more than 8 levels deep"));
    assert!(wrong("[a]\ninclude x\n").contains("x.fio, line 2: include x: no such file"));
}

proptest::proptest! {
    /// Any text is either a valid job file or an error. Small valid job files run to their end.
    #[test]
    fn any_text_is_parsed_or_rejected(text in "(\\[[a-z]{0,3}\\]?|(rw|bs|size|iodepth|ioengine|nrfiles|offset|bsrange|loops|fsync|prio|direct|thinktime|rate|junk)=?[a-z0-9:,.-]{0,6}|[ -~]{0,8})(\n(\\[[a-z]{1,3}\\]|(rw=(rand)?(read|write|rw|trim)|bs=[1-9][kKmM]?|bssplit=4k/50:8k|file_service_type=sequential|filename=/dev/x|size=[1-9]{1,2}[km]|iodepth=[0-9]|ioengine=libaio|nrfiles=[1-4]|offset=4k|fsync=[0-3]|direct=1))){0,9}") {
        if let Ok(f) = parse("p.fio", &text, &none)
            && f.space() < 1 << 24
            && f.jobs.iter().all(|j| j.loops < 3)
        {
            let plan = Plan::fio("p.fio", &text, &none).expect("parsed before");
            let t = Trial::run_plan(plan, |_| {});
            proptest::prop_assert!(t.outcome.is_ok(), "{text}: {:?}", t.outcome);
            proptest::prop_assert_eq!(t.left_over(), 0);
        }
    }
}
