//! Comparisons with the system calls of fio 3.33 under strace, for the same job files.

use super::tests::trial;
use crate::testing::Trial;

/// Returns the calls on the files of the first job after the layout: (name, file, block of 4 KiB).
fn calls(t: &Trial, names: &[&str]) -> Vec<(String, u64, u64)> {
    let all = t.world.log().iter();
    let main = t
        .world
        .log()
        .iter()
        .find(|c| c.name == "mkdir")
        .map(|c| c.task);
    let of = all.filter(|c| names.contains(&c.name) && Some(c.task) != main);
    of.map(|c| {
        let file = c.path.rsplit('.').next().and_then(|n| n.parse().ok());
        (c.name.to_owned(), file.unwrap_or(99), c.off / 4096)
    })
    .collect()
}

/// Observed with fio 3.33 under strace: calls go to the files in turn, and a sync also counts as a
/// call. A sync comes before the next write, so no sync follows the last write. At the end, each
/// file is synced.
#[test]
fn files_are_used_in_turn_and_a_sync_precedes_the_next_call() {
    let t = trial("[w]\nrw=write\nbs=4k\nsize=32k\nnrfiles=2\nfsync=2\nend_fsync=1\n");
    let seen: Vec<String> = calls(&t, &["write", "fsync"])
        .iter()
        .map(|(name, file, block)| match name.as_str() {
            "fsync" => format!("f{file}"),
            _ => format!("w{file}@{block}"),
        })
        .collect();
    assert_eq!(
        seen.join(" "),
        "w0@0 w1@0 f0 w1@1 w0@1 f1 w0@2 w1@2 f0 w1@3 w0@3 f0 f1"
    );
    let t = trial("[w]\nrw=randwrite\nbs=4k\nsize=32k\nfdatasync=1\n");
    assert_eq!((t.ops("write"), t.ops("fdatasync")), (8, 7));
}

#[test]
fn file_service_type_selects_the_file() {
    let order = |more: &str| {
        let t = trial(&format!("[r]\nrw=read\nbs=4k\nsize=48k\nnrfiles=3\n{more}"));
        let all = calls(&t, &["read"]);
        all.iter().map(|c| c.1.to_string()).collect::<String>()
    };
    assert_eq!(order(""), "012012012012");
    assert_eq!(order("file_service_type=roundrobin:2\n"), "001122001122");
    assert_eq!(order("file_service_type=sequential\n"), "000011112222");
    let random = order("file_service_type=random:2\n");
    let pairs: Vec<&[u8]> = random.as_bytes().chunks(2).collect();
    assert!(pairs.iter().all(|p| p[0] == p[1]), "{random}");
}

/// From the manual of fio: after a random pattern, `:N` means a new position after every N calls.
/// After a sequential pattern, it is the number of bytes that are skipped after each call.
#[test]
fn random_runs_and_sequences_with_gaps_follow_the_manual() {
    let places = |text: &str| -> Vec<u64> {
        let t = trial(text);
        calls(&t, &["read"]).iter().map(|c| c.2).collect()
    };
    let runs = |more: &str| places(&format!("[r]\nsize=4m\nnumber_ios=64\n{more}"));
    let on = |p: &[u64]| p.windows(2).filter(|w| w[1] == w[0] + 1).count();
    let plain = runs("rw=randread\n");
    let eight = runs("rw=randread:8\n");
    assert!(on(&plain) < 8, "{plain:?}");
    assert!((50..=58).contains(&on(&eight)), "{eight:?}");
    for run in eight.chunks(8).filter(|r| r[0] + 8 <= 1024) {
        assert!(run.windows(2).all(|w| w[1] == w[0] + 1), "{run:?}");
    }
    assert_eq!(runs("rw=randread:1\n"), plain, "one call is no run");
    let same = runs("rw=randread:4\nrw_sequencer=identical\n");
    assert!(
        same.chunks(4).all(|r| r.iter().all(|p| *p == r[0])),
        "{same:?}"
    );
    let holes = places("[r]\nrw=read:8k\nsize=64k\nnumber_ios=8\n");
    assert_eq!(holes, [0, 3, 6, 9, 12, 15, 0, 3], "and over again");
}

/// Observed with fio: reads and writes of a mixed job have separate positions in the file.
#[test]
fn reads_and_writes_of_a_mixed_job_have_separate_positions() {
    let t = trial("[m]\nrw=rw\nbs=4k\nsize=256k\n");
    let all = calls(&t, &["read", "write"]);
    for name in ["read", "write"] {
        let of: Vec<u64> = all.iter().filter(|c| c.0 == name).map(|c| c.2).collect();
        assert!(of.len() > 10);
        assert!(
            of.iter().enumerate().all(|(i, b)| *b == i as u64),
            "{name}: {of:?}"
        );
    }
    assert_eq!(all.len(), 64, "together they move the size");
}

/// Observed with fio: files that are read are allocated, written and synced first. Files that are
/// only written are allocated; with overwrite=1, they are also written first.
#[test]
fn files_are_prepared_like_in_fio() {
    let before = |text: &str| {
        let t = trial(text);
        let main = t.world.log()[0].task;
        let of = t
            .world
            .log()
            .iter()
            .filter(|c| c.task == main && c.path.contains("job0"));
        let names = ["fallocate", "write", "fsync"];
        let names: Vec<&str> = of.map(|c| c.name).filter(|n| names.contains(n)).collect();
        names.join(" ")
    };
    assert_eq!(before("[r]\nrw=read\nsize=1m\n"), "fallocate write fsync");
    assert_eq!(before("[w]\nrw=randwrite\nsize=1m\n"), "fallocate");
    assert_eq!(before("[w]\nrw=write\nsize=1m\n"), "fallocate");
    assert_eq!(before("[w]\nrw=write\nsize=1m\nfallocate=none\n"), "");
    assert_eq!(
        before("[w]\nrw=write\nsize=1m\noverwrite=1\n"),
        "fallocate write fsync"
    );
}

/// Observed with fio: 10 KiB in blocks of 4 KiB are two calls. Three files with filesize=8k are six
/// calls.
#[test]
fn files_contain_whole_blocks() {
    assert_eq!(trial("[w]\nrw=write\nsize=10k\n").ops("write"), 2);
    let t = trial("[w]\nrw=read\nfilesize=8k\nnrfiles=3\n");
    assert_eq!(t.ops("read"), 6);
    let t = trial("[w]\nrw=write\nfilesize=8k\nsize=24k\nnrfiles=2\n");
    assert_eq!(t.ops("write"), 4, "no more than the files hold");
    let t = trial("[w]\nrw=write\nsize=8k\nio_size=20k\n");
    let blocks: Vec<u64> = calls(&t, &["write"]).iter().map(|c| c.2).collect();
    assert_eq!(blocks, [0, 1, 0, 1, 0], "and over again");
    let t = trial("[w]\nrw=read\nsize=16k\noffset=8k\n");
    let blocks: Vec<u64> = calls(&t, &["read"]).iter().map(|c| c.2).collect();
    assert_eq!(blocks, [2, 3, 4, 5]);
    let t = trial("[w]\nrw=write\nsize=16k\nfilename=a:b\n");
    assert_eq!(
        (t.calls_on("write", "/a"), t.calls_on("write", "/b")),
        (2, 2)
    );
}

/// Observed with fio: with several lengths, every byte of the file is still transferred exactly
/// once.
#[test]
fn mixed_block_sizes_fill_the_file_without_overlap() {
    for (rw, more) in [
        ("write", "bsrange=4k-16k"),
        ("randwrite", "bsrange=4k-16k"),
        ("randwrite", "bssplit=4k/50:16k/30:64k"),
        ("write", "bssplit=4k/50:16k/50"),
    ] {
        let t = trial(&format!("[w]\nrw={rw}\nsize=1m\n{more}\n"));
        let mut all = t.ranges("write", "job0");
        all.sort_unstable();
        assert!(
            all.windows(2).all(|w| w[0].0 + w[0].1 == w[1].0),
            "{rw} {more}"
        );
        assert_eq!(all.iter().map(|r| r.1).sum::<u64>(), 1 << 20, "{rw} {more}");
        assert!(all.iter().any(|r| r.1 > 4096), "{rw} {more}");
    }
    let t = trial("[w]\nrw=read\nsize=64m\nbssplit=4k/75:16k/25\n");
    let small = t
        .ranges("read", "job0")
        .iter()
        .filter(|r| r.1 == 4096)
        .count() as f64;
    let share = small / t.ops("read") as f64;
    assert!((share - 0.75).abs() < 0.02, "{share}");
    let t = trial("[w]\nrw=rw\nbs=,8k\nsize=1m\n");
    assert!(t.ranges("read", "job0").iter().all(|r| r.1 == 4096));
    let main = t.world.log()[0].task;
    let writes = t
        .world
        .log()
        .iter()
        .filter(|c| c.name == "write" && c.task != main);
    assert!(writes.clone().all(|c| c.len == 8192) && writes.count() > 0);
}

/// Observed with fio: each submission has one call unless a batch is set. Completions are collected
/// one by one.
#[test]
fn calls_are_submitted_singly_or_in_batches() {
    let sizes = |more: &str| {
        let text =
            format!("[r]\nrw=randread\nsize=256k\nioengine=libaio\niodepth=8\ndirect=1\n{more}");
        let t = trial(&text);
        assert_eq!(t.ops("read"), 64);
        t.ranges("aio_submit", "")
            .iter()
            .map(|r| r.1)
            .collect::<Vec<_>>()
    };
    assert_eq!(sizes(""), [1; 64]);
    let four = sizes("iodepth_batch=4\niodepth_batch_complete=4\n");
    assert_eq!(four, [4; 16]);
    let low = sizes("iodepth_batch=8\niodepth_low=1\n");
    assert!(low.len() < 14, "{low:?}");
}
