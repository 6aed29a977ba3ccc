//! Behaviour of options that fio's manual describes, on the test machine.

use super::tests::{none, trial};
use crate::Plan;
use crate::testing::Trial;

/// Returns the 4 KiB blocks of the calls with this name, in the order of the calls.
fn blocks(t: &Trial, name: &str) -> Vec<u64> {
    let main = t.world.log()[0].task;
    let log = t.world.log().iter();
    let of = log.filter(|c| c.name == name && c.task != main);
    of.map(|c| c.off / 4096).collect()
}

/// Returns the tasks of the calls with this name, in the order of the calls.
fn tasks(t: &Trial, name: &str) -> Vec<usize> {
    let main = t.world.log()[0].task;
    let log = t.world.log().iter();
    let of = log.filter(|c| c.name == name && c.task != main);
    of.map(|c| c.task).collect()
}

/// From the code of fio: the first call is at the start, and the following calls go from the end to
/// the start.
#[test]
fn backward_reads_go_from_the_end_to_the_start() {
    let t = trial("[r]\nrw=read:-8k\nbs=4k\nsize=32k\n");
    assert_eq!(blocks(&t, "read"), [0, 6, 5, 4, 3, 2, 1, 0]);
}

#[test]
fn percentages_and_increments_are_of_the_device() {
    // The device has 100 GiB.
    let job = "filename=/dev/x\nrw=read\nbs=1m\nnumber_ios=2\nnumjobs=2\n";
    let t = trial(&format!(
        "[r]\n{job}size=10%\noffset=50%\noffset_increment=1g\n"
    ));
    let gib = (1 << 30) / 4096;
    let mut all = blocks(&t, "read");
    all.sort_unstable();
    assert_eq!(all, [50 * gib, 50 * gib + 256, 51 * gib, 51 * gib + 256]);
    let t = trial("[r]\nrw=read\nfilesize=64k\nsize=50%\n");
    assert_eq!(t.ops("read"), 8);
    let e = super::parse("x.fio", "[r]\nrw=read\nsize=50%\n", &none).expect_err("refused");
    assert!(e.what.contains("add filesize"), "{e}");
}

#[test]
fn random_positions_are_multiples_of_blockalign() {
    let t = trial("[r]\nrw=randread\nbs=512\nblockalign=64k\nsize=4m\nnumber_ios=32\n");
    let all = t.ranges("read", "job0");
    assert!(
        all.iter().all(|r| r.0 % 65536 == 0 && r.1 == 512),
        "{all:?}"
    );
    assert!(all.len() == 32 && all.windows(2).any(|w| w[1].0 < w[0].0));
}

#[test]
fn direct_calls_can_be_single_sectors() {
    let t = trial("[r]\nrw=write\nbs=512\ndirect=1\nsize=4k\n");
    assert_eq!(t.ops("write"), 8);
}

#[test]
fn a_share_of_the_calls_is_random() {
    let t = trial("[r]\nrw=randread\npercentage_random=25\nnorandommap\nsize=64m\n");
    let all = blocks(&t, "read");
    let on = all.windows(2).filter(|w| w[1] == w[0] + 1).count() as f64;
    let share = on / all.len() as f64;
    assert!((share - 0.75).abs() < 0.02, "{share}");
}

#[test]
fn strided_zones_are_left_after_their_size() {
    let t = trial(
        "[r]\nrw=read\nbs=4k\nsize=64k\nio_size=32k\nzonemode=strided\nzonesize=8k\nzoneskip=8k\n",
    );
    assert_eq!(blocks(&t, "read"), [0, 1, 4, 5, 8, 9, 12, 13]);
    let t = trial(
        "[r]\nrw=randread\nbs=4k\nsize=1m\nio_size=256k\nzonesize=64k\nzonerange=128k\nnorandommap\n",
    );
    let all = blocks(&t, "read");
    for (zone, calls) in all.chunks(16).enumerate() {
        let from = zone as u64 * 32;
        assert!(
            calls.iter().all(|b| (from..from + 32).contains(b)),
            "{calls:?}"
        );
    }
}

#[test]
fn sequential_zones_are_written_from_start_to_end() {
    let t = trial(
        "[w]\nrw=randwrite\nbs=4k\nsize=1m\nio_size=256k\nzonemode=zbd\nzonesize=64k\n\
         max_open_zones=2\n",
    );
    let mut next = [0u64; 16];
    let mut open = std::collections::BTreeSet::new();
    for b in blocks(&t, "write") {
        let zone = (b / 16) as usize;
        assert_eq!(b % 16, next[zone] % 16, "zone {zone}");
        next[zone] += 1;
        match next[zone] % 16 {
            0 => open.remove(&zone),
            _ => open.insert(zone),
        };
        assert!(open.len() <= 2, "{open:?}");
    }
    assert_eq!(next.iter().sum::<u64>(), 64);
}

#[test]
fn jobs_wait_for_the_job_that_they_name() {
    let t = trial(
        "[global]\nsize=16k\n[a]\nrw=write\nnumjobs=2\nthinktime=1ms\n[b]\nrw=write\n\
         [c]\nwait_for=a\nrw=write\n",
    );
    let order = tasks(&t, "write");
    let (a, c) = (order[0], *order.last().expect("writes"));
    let last_a = order.iter().rposition(|x| *x == a);
    let first_c = order.iter().position(|x| *x == c);
    assert!(last_a < first_c, "{order:?}");
    let e = super::parse("x.fio", "[a]\nsize=1m\nwait_for=b\n[b]\nsize=1m\n", &none);
    assert!(e.is_err_and(|e| e.what.contains("wait_for=b: no job of this name")));
}

#[test]
fn exit_what_selects_the_jobs_that_end() {
    let writes = |more: &str| {
        let t = trial(&format!(
            "[global]\nsize=4m\nthinktime=1ms\nrw=write\n[short]\nsize=4k\nexitall\n{more}\n\
             [same]\n[other]\nnew_group\n[later]\nstonewall\nsize=40k\n"
        ));
        t.ops("write")
    };
    // Only the job of the same group ends. The other jobs write 1024 and 10 blocks.
    assert!((1034..1040).contains(&writes("exit_what=group")));
    assert!((11..20).contains(&writes("exit_what=stonewall")));
    assert!((1..6).contains(&writes("exit_what=all")));
}

#[test]
fn jobs_of_a_flow_keep_their_proportion() {
    let t = trial(
        "[global]\nsize=1g\nthinktime=1ms\nruntime=4\ntime_based\nflow_sleep=100\n\
         [a]\nrw=read\nflow=3\n[b]\nrw=write\nflow=1\n",
    );
    let share = t.ops("read") as f64 / t.ops("write") as f64;
    assert!((share - 3.0).abs() < 0.1, "{share}");
}

#[test]
fn random_intervals_keep_the_mean_rate() {
    let t = trial("[r]\nrw=randread\nsize=64m\nrate_iops=1000\nrate_process=poisson\nruntime=4\n");
    assert!((3700..4300).contains(&t.ops("read")), "{}", t.ops("read"));
    let log = t.world.log().iter().filter(|c| c.name == "read");
    let at: Vec<u64> = log.map(|c| c.at.0).collect();
    let short = at.windows(2).filter(|w| w[1] - w[0] < 500_000).count() as f64;
    // With an exponential distribution, a fraction 1 - exp(-0.5) of the intervals is shorter than
    // half the mean.
    let share = short / at.len() as f64;
    assert!((share - 0.39).abs() < 0.04, "{share}");
}

/// From the code of fio: at the end of the file, a job with a fixed duration drops the pages and
/// begins again.
#[test]
fn each_further_pass_begins_with_dropped_pages() {
    let drops = |more: &str| {
        let t = trial(&format!("[r]\nsize=64k\nfadvise_hint=0\n{more}"));
        (t.calls("fadvise") as u64, t.ops("read"))
    };
    let timed = "time_based\nruntime=1\nthinktime=10ms\n";
    let (count, reads) = drops(&format!("rw=read\n{timed}"));
    assert_eq!(count, reads.div_ceil(16), "one for each pass of 16 reads");
    let (count, reads) = drops(&format!("rw=randread\n{timed}"));
    assert_eq!(count, reads.div_ceil(16));
    assert_eq!(drops("rw=read\nloops=3\n"), (3, 48));
    assert_eq!(drops("rw=read\nloops=3\ninvalidate=0\n"), (0, 48));
    assert_eq!(drops("rw=read\nloops=3\ndirect=1\n"), (1, 48));
}

#[test]
fn sync_file_range_covers_the_writes_since_the_last_call() {
    let t = trial("[w]\nrw=write\nbs=4k\nsize=48k\nsync_file_range=write:4\n");
    let ranges = t.ranges("sync_range", "job0");
    assert_eq!(ranges, [(0, 16384), (16384, 16384)]);
}

#[test]
fn a_job_that_fills_the_device_ends_without_space() {
    let text = "[w]\nrw=write\nbs=1m\nfill_device=1\n[r]\nstonewall\nrw=read\nbs=1m\n";
    let text = text.replace("[w]", "[global]\nfilename=f\n[w]");
    let plan = Plan::fio("t.fio", &text, &none).expect("fits");
    let t = Trial::run_plan(plan, |w| w.capacity = 20 << 20);
    assert_eq!(t.outcome, Ok(()));
    assert_eq!((t.ops("write"), t.ops("read")), (20, 20));
}

#[test]
fn names_follow_filename_format() {
    let t = trial(
        "[w]\nrw=write\nsize=8k\nnrfiles=2\nnumjobs=2\nfilename_format=$jobname.$jobnum.$filenum\n",
    );
    for name in ["/w.0.0", "/w.0.1", "/w.1.0", "/w.1.1"] {
        assert_eq!(t.calls_on("write", name), 1, "{name}");
    }
    let t = trial("[w]\nrw=write\nsize=8k\nnumjobs=2\nfilename_format=/tmp/shared.$filenum\n");
    assert_eq!(t.calls_on("write", "/shared.0"), 4);
}

#[test]
fn engines_for_files_make_one_call_per_file() {
    let count = |engine: &str| {
        let t = trial(&format!("[f]\nioengine={engine}\nnrfiles=5\nfilesize=4k\n"));
        assert_eq!(t.ops("read"), 5, "{engine}");
        let first = t
            .world
            .measures()
            .metrics()
            .first()
            .map(|m| m.name.to_string());
        assert_eq!(first.as_deref(), Some("read IOPS"), "{engine}");
        (t.calls("stat"), t.calls("unlink"), t.calls("mkdir"))
    };
    assert_eq!(count("filedelete").1, 5);
    assert_eq!(count("dircreate").2, 5 + 1, "and the directory of the run");
    assert!(count("filestat").0 >= 5);
    count("filecreate");
    count("dirdelete");
}

#[test]
fn other_engines_make_their_own_calls() {
    let t = trial("[f]\nioengine=falloc\nrw=write\nbs=4k\nsize=32k\nfallocate=none\n");
    assert_eq!((t.calls("fallocate"), t.calls("write")), (8, 0));
    let t = trial("[f]\nioengine=ftruncate\nrw=write\nbs=4k\nsize=32k\n");
    assert_eq!((t.calls("truncate"), t.calls("write")), (8, 0));
    let t = trial("[n]\nioengine=null\nrw=randread\nsize=1m\niodepth=8\n");
    assert_eq!((t.ops("read"), t.calls("read")), (256, 0));
    let t = trial("[n]\nfilename=/dev/null\nioengine=libaio\nrw=write\nsize=1m\n");
    assert_eq!((t.ops("write"), t.calls("write")), (256, 0));
    let t = trial("[c]\nioengine=cpuio\ncpuload=50\nruntime=1\n");
    // Each part of 50 ms is followed by a pause of the same length.
    assert_eq!(t.ops("compute"), 10);
}

#[test]
fn a_job_ends_in_the_steady_state() {
    let t = trial(
        "[r]\nrw=read\nsize=1m\nthinktime=10ms\ntime_based\nruntime=1h\n\
         ss=iops:5%\nss_dur=4s\nss_ramp=2s\n",
    );
    let s = t.world.elapsed().as_secs_f64();
    assert!((6.0..7.0).contains(&s), "{s}");
}

#[test]
fn a_trim_of_a_file_drops_its_pages() {
    let t = trial("[t]\nrw=randtrim\nsize=64k\n");
    assert_eq!((t.ops("trim"), t.calls("discard")), (16, 0));
}

#[test]
fn a_job_named_after_a_device_uses_the_device() {
    let file = super::parse("x.fio", "[/dev/sdb]\nrw=write\nsize=1m\n", &none).expect("fits");
    assert!(file.jobs[0].raw);
    assert_eq!(file.outside.as_deref(), Some("[/dev/sdb]"));
    let two = "[a]\nfilename=/dev/sda\n[b]\nfilename=/dev/sdb\n";
    let file = super::parse("x.fio", two, &none).expect("fits");
    assert_eq!(
        file.warnings,
        [
            "/dev/sda, /dev/sdb all mean the one device of the run, which gets the requests of all \
          of them"
        ]
    );
}

#[test]
fn options_without_an_effect_share_one_note() {
    let text = "[a]\nsize=1m\nratemin=1k\nlog_prio=1\nthread\nlockmem=1g\nbs=4k\nbs=8k\n";
    let file = super::parse("x.fio", text, &none).expect("fits");
    assert_eq!(
        file.warnings,
        [
            "these options have no effect on the requests of the jobs: lockmem, log_prio, \
             rate_min, thread",
            "x.fio, line 8: \"bs=8k\" replaces \"bs=4k\" of line 7",
        ]
    );
    // Two options that say the same need no note.
    let same = super::parse("x.fio", "[a]\nsize=1m\ndirect=1\nbuffered=0\n", &none);
    assert_eq!(same.expect("fits").warnings, Vec::<String>::new());
}

#[test]
fn a_file_that_fio_would_find_has_an_assumed_size() {
    let file = super::parse("x.fio", "[a]\nfilename=/mnt/f\n", &none).expect("fits");
    assert_eq!(file.jobs[0].each(), 1 << 30);
    assert!(
        file.warnings[0].contains("1 GiB is assumed"),
        "{:?}",
        file.warnings
    );
    let e = super::parse("x.fio", "[a]\nrw=read\n", &none).expect_err("no file");
    assert!(e.what.contains("size is missing"), "{e}");
}

#[test]
fn a_store_in_the_network_is_the_device_of_the_run() {
    let text = "[a]\nioengine=rbd\nrbdname=x\nrw=write\n[b]\nioengine=rbd\nrw=read\n";
    let file = super::parse("x.fio", text, &none).expect("fits");
    assert!(file.jobs.iter().all(|j| j.raw));
    assert!(
        file.warnings
            .iter()
            .any(|w| w.contains("ioengine=rbd: it uses a store"))
    );
    let e = super::parse(
        "x.fio",
        "[a]\nioengine=falloc\nfilename=/dev/x\nsize=1m\n",
        &none,
    );
    assert!(e.is_err_and(|e| e.what.contains("works on files")));
}

#[test]
fn a_long_job_tells_its_length() {
    let note = |text: &str| {
        super::parse("x.fio", text, &none)
            .expect("fits")
            .length_note()
    };
    let timed = "[global]\nsize=1m\nruntime=90\ntime_based\n[a]\nstartdelay=10\n";
    assert_eq!(
        note(timed).as_deref(),
        Some("x: each run measures 1 min 40 s")
    );
    let walls = format!("{timed}[b]\nstonewall\nramp_time=20\n[c]\nwait_for=b\n[d]\n");
    assert_eq!(note(&walls).as_deref(), Some("x: each run measures 5 min"));
    let bound = note("[a]\nsize=1m\nruntime=2m\n");
    assert_eq!(bound.as_deref(), Some("x: each run measures up to 2 min"));
    let much = note("[a]\nsize=10g\nnumjobs=4\n").expect("40 GiB of files");
    assert!(
        much.contains("transfers 40 GiB, after it has made files of 40 GiB"),
        "{much}"
    );
    assert_eq!(note("[a]\nsize=1g\n"), None);
    assert_eq!(note("[a]\nsize=1g\nruntime=10\n"), None);
}

#[test]
fn pauses_can_follow_a_time_instead_of_a_number_of_calls() {
    let t = trial(
        "[r]\nrw=read\nsize=4k\ntime_based\nruntime=1\nthinktime=100ms\nthinktime_iotime=100ms\n",
    );
    let log = t.world.log().iter().filter(|c| c.name == "read");
    let at: Vec<u64> = log.map(|c| c.at.0).collect();
    let pauses = at.windows(2).filter(|w| w[1] - w[0] >= 100_000_000).count();
    assert!((4..=5).contains(&pauses), "{pauses}");
}
