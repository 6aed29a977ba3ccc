//! Compares the modelled kernel with the disk requests of a running one: `ext4-6.18.toml` of
//! seekwell-stack, fact by fact, with the same calls on the same disk.
//!
//! Sync data, flushes and reads of a program must be exact. A commit may differ by two blocks,
//! because its size depends on the other contents of the transaction. A null model is tested for
//! comparison: each fsync is one write and one flush, and each read is one request.

use seekwell_core::{Action, Advice, Event, Flags, Nanos, Op, OpenFlags, TaskId};
use seekwell_sim::Setup;
use seekwell_sim::world::{Drive, SimMachine, WorldSetup, run_script_watched};
use seekwell_workload::{Context, Machine, Outcome};
use std::cell::RefCell;
use std::rc::Rc;

const FACTS: &str = include_str!("../../seekwell-stack/tests/facts/ext4-6.18.toml");
const DISK: &str =
    "constant:service_us=200,depth=128,write_cache=yes,rotational=yes,capacity=8388608";
/// The modelled journal's thread.
const JOURNAL: TaskId = TaskId(2);
/// Sectors by which a commit may differ.
const COMMIT_SLACK: u64 = 16;
/// Facts that the model is known not to reproduce, with the reason.
const KNOWN: &[(&str, &str)] = &[
    (
        "read-sequential-4k",
        "6.x splits a window where the size of its folios changes",
    ),
    (
        "read-sequential-4k-from-the-middle",
        "6.x splits a window where the size of its folios changes",
    ),
];

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Seen {
    data_sync: (u64, u64),
    data_async: (u64, u64),
    journal: (u64, u64),
    metadata: (u64, u64),
    read: (u64, u64),
    flush: u64,
}

fn seen(events: &[Event], from: u64) -> Seen {
    let mut s = Seen::default();
    let issued = |e: &&Event| e.action == Action::Issue && e.at.since_start() >= from;
    for e in events.iter().filter(issued) {
        let kind = match e.op {
            Op::Read => &mut s.read,
            Op::Flush => {
                s.flush += 1;
                continue;
            }
            _ if e.task == Some(JOURNAL) => &mut s.journal,
            _ if e.flags.contains(Flags::META) => &mut s.metadata,
            _ if e.flags.contains(Flags::SYNC) => &mut s.data_sync,
            _ => &mut s.data_async,
        };
        kind.0 += 1;
        kind.1 += u64::from(e.sectors.0);
    }
    s
}

const W: OpenFlags = OpenFlags::empty();

async fn write(m: &mut SimMachine, path: &str, off: u64, len: u32, how: OpenFlags) -> Outcome {
    let fd = m.open(path, how).await.doing(|| "open")?;
    m.write(fd, off, len).await.doing(|| "write")?;
    m.close(fd).await.doing(|| "close")
}

async fn synced(m: &mut SimMachine, path: &str, off: u64, len: u32, data_only: bool) -> Outcome {
    let fd = m.open(path, W | OpenFlags::CREATE).await.doing(|| "open")?;
    if len > 0 {
        m.write(fd, off, len).await.doing(|| "write")?;
    }
    match data_only {
        true => m.fdatasync(fd).await.doing(|| "fdatasync")?,
        false => m.fsync(fd).await.doing(|| "fsync")?,
    }
    m.close(fd).await.doing(|| "close")
}

async fn read(m: &mut SimMachine, from: u64, step: u32, count: u64, random: bool) -> Outcome {
    let how = OpenFlags::RDONLY;
    let fd = m.open("d/big", how).await.doing(|| "open")?;
    m.fadvise(fd, 0, 0, Advice::DontNeed)
        .await
        .doing(|| "drop")?;
    for i in 0..count {
        // Distant positions in irregular order, and not at the start, where a read counts as
        // sequential.
        let at = if random {
            (i + 1) * 7919 % 16_000 * 4096
        } else {
            from + i * u64::from(step)
        };
        m.read(fd, at, step).await.doing(|| "read")?;
    }
    m.close(fd).await.doing(|| "close")
}

/// Creates the files for a fact, and waits until everything is written.
async fn prepare(m: &mut SimMachine, name: &str) -> Outcome {
    m.mkdir("d").await.doing(|| "mkdir")?;
    for (name, len) in [("a", 4096u32), ("u", 4096), ("r", 16_384), ("med", 4 << 20)] {
        synced(m, &format!("d/{name}"), 0, len, false).await?;
    }
    let fd = m
        .open("d/big", W | OpenFlags::CREATE)
        .await
        .doing(|| "open")?;
    m.write(fd, 0, 64 << 20).await.doing(|| "write")?;
    m.fsync(fd).await.doing(|| "fsync")?;
    m.close(fd).await.doing(|| "close")?;
    if name.starts_with("prealloc") {
        let create = W | OpenFlags::CREATE;
        let fd = m.open("d/pre", create).await.doing(|| "open")?;
        m.fallocate(fd, 0, 1 << 20).await.doing(|| "fallocate")?;
        if name.contains("rewrite") {
            m.write(fd, 8192, 4096).await.doing(|| "write")?;
        }
        m.close(fd).await.doing(|| "close")?;
    }
    if let Some(what) = name.strip_prefix("rewrite") {
        pieces(m, what).await?;
    }
    m.sleep(Nanos::from_secs(7)).await.doing(|| "wait")?;
    m.syncfs().await.doing(|| "sync")?;
    m.sleep(Nanos::from_ms(200)).await.doing(|| "wait")
}

/// Writes a file piece by piece and syncs it: `-ALL-by-PIECE-fsync`.
async fn pieces(m: &mut SimMachine, what: &str) -> Outcome {
    let parts: Vec<&str> = what.split('-').collect();
    let bytes = |n: &str| -> u64 {
        let digits: String = n.chars().filter(char::is_ascii_digit).collect();
        let unit = if n.ends_with('m') { 1 << 20 } else { 1 << 10 };
        digits.parse::<u64>().expect("a length") * unit
    };
    let [_, all, "by", piece, _] = parts[..] else {
        panic!("not -ALL-by-PIECE-fsync: {what}");
    };
    let create = W | OpenFlags::CREATE;
    let fd = m.open("d/new", create).await.doing(|| "open")?;
    for i in 0..bytes(all) / bytes(piece) {
        let n = bytes(piece);
        m.write(fd, i * n, n as u32).await.doing(|| "write")?;
    }
    m.fsync(fd).await.doing(|| "fsync")?;
    m.close(fd).await.doing(|| "close")
}

async fn act(m: &mut SimMachine, name: &str) -> Outcome {
    let create = W | OpenFlags::CREATE;
    let direct = W | OpenFlags::DIRECT;
    match name {
        "create-write-4k-fsync" => synced(m, "d/new", 0, 4096, false).await,
        "create-write-16k-fsync" => synced(m, "d/new", 0, 16_384, false).await,
        "overwrite-4k-fsync" => synced(m, "d/a", 0, 4096, false).await,
        "overwrite-4k-fdatasync" => synced(m, "d/a", 0, 4096, true).await,
        "append-4k-fdatasync" => synced(m, "d/a", 4096, 4096, true).await,
        "append-4k-fsync" => synced(m, "d/a", 4096, 4096, false).await,
        "fsync-clean" => synced(m, "d/a", 0, 0, false).await,
        "unlink" => m.unlink("d/u").await.doing(|| "unlink"),
        "mkdir" => m.mkdir("d/e").await.doing(|| "mkdir"),
        "rename" => m.rename("d/r", "d/r2").await.doing(|| "rename"),
        "create-write-64k-left" => write(m, "d/new", 0, 65_536, create).await,
        "create-write-256k-left" => write(m, "d/new", 0, 262_144, create).await,
        "hundred-files-sync" => {
            for i in 0..100 {
                write(m, &format!("d/m{i}"), 0, 4096, create).await?;
            }
            m.syncfs().await.doing(|| "sync")
        }
        "write-16m-fsync" => synced(m, "d/new", 0, 16 << 20, false).await,
        by if by.contains("-by-") && by.ends_with("-fsync") => {
            let at = by.find('-').unwrap_or_default();
            pieces(m, &by[at..]).await
        }
        "direct-overwrite-1m" => write(m, "d/med", 0, 1 << 20, direct).await,
        "direct-overwrite-4k" => write(m, "d/med", 0, 4096, direct).await,
        "direct-dsync-overwrite-4k" => write(m, "d/med", 0, 4096, direct | OpenFlags::DSYNC).await,
        "direct-append-4k" => write(m, "d/med", 4 << 20, 4096, direct).await,
        "direct-sync-append-4k" => write(m, "d/med", 4 << 20, 4096, direct | OpenFlags::SYNC).await,
        "truncate-4m" => {
            let fd = m.open("d/med", W).await.doing(|| "open")?;
            m.truncate(fd, 0).await.doing(|| "truncate")?;
            m.close(fd).await.doing(|| "close")
        }
        "read-sequential-4k" => read(m, 0, 4096, 256, false).await,
        "read-sequential-64k" => read(m, 0, 65_536, 16, false).await,
        "read-sequential-256k" => read(m, 0, 256 << 10, 16, false).await,
        "read-sequential-512k" => read(m, 0, 512 << 10, 16, false).await,
        "read-sequential-1m" => read(m, 0, 1 << 20, 2, false).await,
        "read-sequential-4k-from-the-middle" => read(m, 8 << 20, 4096, 128, false).await,
        "read-random-4k" => read(m, 0, 4096, 10, true).await,
        "read-random-16k" => read(m, 0, 16_384, 10, true).await,
        "overwrite-osync" => write(m, "d/med", 0, 4096, W | OpenFlags::SYNC).await,
        "overwrite-odsync" => write(m, "d/med", 0, 4096, W | OpenFlags::DSYNC).await,
        "append-odsync" => write(m, "d/med", 4 << 20, 4096, W | OpenFlags::DSYNC).await,
        "sparse-writes-fsync" => {
            let fd = m.open("d/new", create).await.doing(|| "open")?;
            for i in 0..3 {
                m.write(fd, i << 20, 4096).await.doing(|| "write")?;
            }
            m.fsync(fd).await.doing(|| "fsync")
        }
        "truncate-down-fsync" => {
            let fd = m.open("d/med", W).await.doing(|| "open")?;
            m.truncate(fd, 1 << 20).await.doing(|| "truncate")?;
            m.fsync(fd).await.doing(|| "fsync")
        }
        "fallocate-1m-fsync" => {
            let fd = m.open("d/new", create).await.doing(|| "open")?;
            m.fallocate(fd, 0, 1 << 20).await.doing(|| "fallocate")?;
            m.fsync(fd).await.doing(|| "fsync")
        }
        "prealloc-write-fdatasync" | "prealloc-rewrite-fdatasync" => {
            synced(m, "d/pre", 8192, 4096, true).await
        }
        "replace-by-rename" => {
            write(m, "d/tmp", 0, 65_536, create).await?;
            m.rename("d/tmp", "d/u").await.doing(|| "rename")
        }
        "overwrite-1m-fdatasync" => synced(m, "d/med", 0, 1 << 20, true).await,
        "append-1m-fdatasync" => synced(m, "d/med", 4 << 20, 1 << 20, true).await,
        "twice-append-fdatasync" => {
            for i in 0..2 {
                synced(m, "d/med", (4 << 20) + i * 4096, 4096, true).await?;
            }
            Ok(())
        }
        "unlink-big-sync" => {
            m.unlink("d/big").await.doing(|| "unlink")?;
            m.syncfs().await.doing(|| "sync")
        }
        "create-fsync-dir" => {
            m.open("d/new", create).await.doing(|| "open")?;
            sync_directory(m).await
        }
        "rename-fsync-dir" => {
            m.rename("d/u", "d/other").await.doing(|| "rename")?;
            sync_directory(m).await
        }
        other => panic!("no calls are written here for the fact {other}"),
    }
}

async fn sync_directory(m: &mut SimMachine) -> Outcome {
    let dir = m.open("d", OpenFlags::DIRECTORY).await.doing(|| "open d")?;
    m.fsync(dir).await.doing(|| "fsync d")
}

fn simulate(name: &'static str, seconds: f64) -> Seen {
    let setup = Setup {
        device: DISK.to_owned(),
        scheduler: "none-6.18".to_owned(),
        max_sectors_kb: Some(1280),
        max_segments: Some(128),
        ..Setup::default()
    };
    let world = WorldSetup::new(setup).expect("a world");
    let mut drive = Drive::open(&world.setup).expect("a disk");
    let events = Rc::new(RefCell::new(Vec::new()));
    let into = Rc::clone(&events);
    let watch = Box::new(move |e: &Event| into.borrow_mut().push(e.clone()));
    let begun = Rc::new(RefCell::new(0));
    let begin = Rc::clone(&begun);
    let script = async move |mut m: SimMachine| -> Outcome {
        prepare(&mut m, name).await?;
        *begin.borrow_mut() = m.now().since_start();
        act(&mut m, name).await?;
        let rest = Nanos((seconds * 1e9) as u64);
        m.sleep(rest).await.doing(|| "wait")
    };
    let ran = run_script_watched("fact", &world, &mut drive, Some(watch), script).expect("it runs");
    assert_eq!(ran.stopped, None, "{name}");
    let from = *begun.borrow();
    let events = events.borrow();
    seen(&events, from)
}

/// A fact's figure; `None` if the fact does not state it.
fn pair(fact: &toml::Value, kind: &str) -> Option<(u64, u64)> {
    let t = fact.get(kind)?;
    let n = |key: &str| {
        t.get(key)
            .and_then(toml::Value::as_integer)
            .map(|n| n as u64)
    };
    Some((n("requests")?, n("sectors")?))
}

#[test]
fn modelled_kernel_sends_the_requests_of_a_running_kernel() {
    let facts: toml::Value = toml::from_str(FACTS).expect("the facts are TOML");
    let facts = facts["fact"].as_array().expect("facts");
    let (mut figures, mut wrong, mut null_right) = (0, Vec::new(), 0);
    for fact in facts {
        let name = fact["name"].as_str().expect("a name");
        let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
        let seconds = fact
            .get("seconds")
            .and_then(toml::Value::as_float)
            .unwrap_or(0.5);
        let got = simulate(name, seconds);
        let syncs = u64::from(name.contains("sync"));
        let null = Seen {
            data_sync: (syncs, 8),
            flush: syncs,
            ..Seen::default()
        };
        let mut check = |what: &str, want: u64, got: u64, null: u64, slack: u64| {
            figures += 1;
            null_right += u32::from(null.abs_diff(want) <= slack);
            if got.abs_diff(want) > slack {
                wrong.push((name, format!("{name}: {what}: {got}, not {want}")));
            }
        };
        let kinds = [
            ("data_sync", got.data_sync, null.data_sync, 0),
            ("data_async", got.data_async, null.data_async, 0),
            ("journal", got.journal, null.journal, COMMIT_SLACK),
            ("metadata", got.metadata, null.metadata, COMMIT_SLACK),
            ("read", got.read, null.read, 0),
        ];
        for (kind, got, null, slack) in kinds {
            if let Some(want) = pair(fact, kind) {
                check(
                    &format!("{kind} requests"),
                    want.0,
                    got.0,
                    null.0,
                    slack / 8,
                );
                check(&format!("{kind} sectors"), want.1, got.1, null.1, slack);
            }
        }
        if let Some(want) = fact.get("flush").and_then(toml::Value::as_integer) {
            check("flushes", want as u64, got.flush, null.flush, 0);
        }
    }
    let known = |w: &(&str, String)| KNOWN.iter().any(|k| k.0 == w.0);
    let (known, new): (Vec<_>, Vec<_>) = wrong.iter().partition(|w| known(w));
    for (name, why) in KNOWN {
        println!("known to differ: {name}: {why}");
    }
    println!(
        "{} of {figures} figures agree, {null_right} of a model that knows nothing",
        figures - wrong.len()
    );
    let new: Vec<&str> = new.iter().map(|w| w.1.as_str()).collect();
    assert!(new.is_empty(), "{}", new.join("\n"));
    assert!(
        !known.is_empty() || KNOWN.is_empty(),
        "what was known to differ agrees: say so"
    );
}
