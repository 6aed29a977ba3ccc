//! MySQL: COUNT(*) over one partition of a large table that is not in the page cache.
//!
//! With `engine=myisam`, one thread reads the data file in calls of 128 KiB. With `engine=innodb`,
//! two threads read one open file. The query thread reads pages of 16 KiB in order. When it is near
//! the end of an extent of 1 MiB, the read thread reads the next extent.
//!
//! A table that was not loaded in key order is fragmented: `order=pieces` visits pieces of `piece`
//! bytes in random order. Another task, the *intruder*, has its own io context. It makes small
//! random reads with pauses, like background work of a server. With pieces and an intruder, results
//! are close to the published values. Two threads alone, without pieces and without an intruder, do
//! not change the results. The script leaves out a MyISAM count over an index, which reads blocks
//! of 1 KiB.

use super::common::*;
use crate::fail::{Context, Outcome};
use crate::machine::{Channel, Fd, How, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param, profile};
use crate::row::{Needs, Workload};
use rand::seq::SliceRandom;
use seekwell_core::{NSEC_PER_SEC, Nanos, OpenFlags};
use std::collections::BTreeSet;

/// The workload's entry in the registry.
pub const WORKLOAD: Workload = Workload {
    name: "mysql-scan",
    summary: "count the rows of a 13 GB partition that is not cached",
    metric: "MiB/s, higher is better",
    stresses: "an interrupted sequential reader: idling, anticipation",
    source: "a published scan of 2008 (MySQL 5.1, SATA disk)",
    #[rustfmt::skip]
    params: &[
        param("size", Kind::Bytes(1 << 20, 1 << 44), "13000MiB", "size of the partition"),
        param("engine", Kind::Choice(&["innodb", "myisam"]), "innodb",
            "innodb: a query thread and a read thread; myisam: one thread"),
        param("order", Kind::Choice(&["sequential", "pieces"]), "pieces",
            "order of the table's pieces in its file: sequential, or random"),
        param("piece", Kind::Bytes(64 << 10, 1 << 30), "1MiB", "size of a piece"),
        param("intruder", Kind::Count(0, 10_000), "22",
            "small random reads per second by another task; 0: none"),
        param("thinks", Kind::Flag, "no",
            "the intruder pauses after each read, like a single thread; otherwise it keeps its rate"),
        param("direct", Kind::Flag, "no",
            "read without the page cache (innodb_flush_method=O_DIRECT)"),
        param("cpu", Kind::Time(0, NSEC_PER_SEC), "50us", "CPU time to count a page of 16 KiB"),
    ],
    #[rustfmt::skip]
    profiles: &[
        profile(
            "published",
            "a fragmented table and another reader, which the published results suggest",
            &[],
        ),
        profile("single", "one sequential stream: the scheduler has no effect", SINGLE),
        profile(
            "two-threads",
            "query thread and read thread without another reader",
            &[("order", "sequential"), ("intruder", "0")],
        ),
    ],
    needs: Needs::Directory,
    space: |p| p.int("size"),
    check: |p| {
        if p.int("piece") % EXTENT != 0 && p.word("engine") == "innodb" {
            return Err("piece must be a multiple of 1MiB with engine=innodb".into());
        }
        if p.int("piece") > p.int("size") {
            return Err("piece must not exceed size".into());
        }
        Ok(())
    },
};

const SINGLE: &[(&str, &str)] = &[
    ("engine", "myisam"),
    ("order", "sequential"),
    ("intruder", "0"),
];

const PAGE: u64 = 16 << 10;
const EXTENT: u64 = 1 << 20;
/// Number of pages of an extent that are read in order before the next extent is requested
/// (innodb_read_ahead_threshold).
const THRESHOLD: u64 = 56;
const CALL: u64 = 128 << 10;

/// Runs the workload.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    let path = format!("{dir}/t#P#p3");
    let size = p.int("size");
    m.mark(Mark::Phase("load"));
    lay_out(m, &path, size).await?;
    m.syncfs().await.doing(|| "sync")?;
    m.drop_caches().await.doing(|| "drop caches")?;
    let mut how = OpenFlags::RDONLY;
    how.set(OpenFlags::DIRECT, p.flag("direct"));
    let fd = open(m, &path, how).await?;
    let piece = p.int("piece");
    let mut pieces: Vec<u64> = (0..size / piece).map(|i| i * piece).collect();
    if p.word("order") == "pieces" {
        pieces.shuffle(m.rng());
    }
    let stop = Shared::new(false);
    let mut others = Group::new();
    // Time between two reads of the intruder. If it is 0, there is no intruder.
    if let Some(distance) = NSEC_PER_SEC.checked_div(p.int("intruder")) {
        let (stop, path) = (stop.clone(), path.clone());
        let pace = Pace {
            distance: Nanos(distance),
            thinks: p.flag("thinks"),
        };
        others
            .spawn(m, How::named("intruder"), move |m| {
                intruder(m, path, size, pace, stop)
            })
            .await?;
    }
    m.mark(Mark::ClockStart);
    let start = m.now();
    let cpu = p.time("cpu");
    let outcome = if p.word("engine") == "myisam" {
        myisam(m, fd, &pieces, piece, cpu).await
    } else {
        innodb(m, fd, &pieces, piece, cpu).await
    };
    stop.with(|s| *s = true);
    if outcome.is_ok() {
        let secs = seconds(m, start);
        let bytes = pieces.len() as u64 * piece;
        m.counts("read");
        m.counts("page read");
        m.metric("scan", "MiB/s", rate(mib(bytes), secs), true);
        m.metric("runtime", "s", secs, false);
    }
    let others = others.join(m).await;
    both(outcome, others)?;
    close(m, fd, &path).await
}

async fn read<M: Machine>(m: &mut M, fd: Fd, off: u64, len: u64, kind: &'static str) -> Outcome {
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    let op = m.op_begin(kind);
    let n = m.read(fd, off, len).await;
    n.doing(|| format!("read {len} bytes at {off} of the table"))?;
    m.op_end(op, u64::from(len));
    Ok(())
}

async fn myisam<M: Machine>(m: &mut M, fd: Fd, pieces: &[u64], piece: u64, cpu: Nanos) -> Outcome {
    for base in pieces {
        let mut off = *base;
        while off < base + piece {
            let len = CALL.min(base + piece - off);
            read(m, fd, off, len, "read").await?;
            m.compute(Nanos(cpu.0 * len / PAGE))
                .await
                .doing(|| "compute")?;
            off += len;
        }
    }
    Ok(())
}

/// State that the query thread and the read thread share: requested extents, and extents that have
/// been read.
#[derive(Default)]
struct Ahead {
    asked: BTreeSet<u64>,
    there: BTreeSet<u64>,
}

async fn innodb<M: Machine>(m: &mut M, fd: Fd, pieces: &[u64], piece: u64, cpu: Nanos) -> Outcome {
    let extents: Vec<u64> = pieces
        .iter()
        .flat_map(|base| (0..piece / EXTENT).map(move |i| base + i * EXTENT))
        .collect();
    let ahead = Shared::new(Ahead::default());
    let (work, done) = (m.channel(4), m.channel(1024));
    let mut group = Group::new();
    let shared = ahead.clone();
    group
        .spawn(m, How::named("read-thread"), move |m| {
            read_thread(m, fd, work, done, shared)
        })
        .await?;
    let outcome = query(m, fd, &extents, cpu, &ahead, work, done).await;
    m.end_channel(work);
    let thread = group.join(m).await;
    both(outcome, thread)
}

async fn query<M: Machine>(
    m: &mut M,
    fd: Fd,
    extents: &[u64],
    cpu: Nanos,
    ahead: &Shared<Ahead>,
    work: Channel,
    done: Channel,
) -> Outcome {
    for (k, base) in extents.iter().enumerate() {
        for page in 0..EXTENT / PAGE {
            // Wait for a page that the read thread is reading.
            while ahead.with(|a| a.asked.contains(base) && !a.there.contains(base)) {
                m.recv(done).await.doing(|| "wait for the read thread")?;
            }
            if !ahead.with(|a| a.there.contains(base)) {
                read(m, fd, base + page * PAGE, PAGE, "page read").await?;
            }
            m.compute(cpu).await.doing(|| "compute")?;
            if page + 1 == THRESHOLD
                && let Some(next) = extents.get(k + 1)
            {
                ahead.with(|a| a.asked.insert(*next));
                m.send(work, *next).await.doing(|| "ask the read thread")?;
            }
        }
        ahead.with(|a| {
            a.asked.remove(base);
            a.there.remove(base);
        });
    }
    Ok(())
}

async fn read_thread<M: Machine>(
    mut m: M,
    fd: Fd,
    work: Channel,
    done: Channel,
    ahead: Shared<Ahead>,
) -> Outcome {
    while let Some(base) = m.recv(work).await.doing(|| "wait for work")? {
        read(&mut m, fd, base, EXTENT, "extent read").await?;
        ahead.with(|a| a.there.insert(base));
        m.send(done, base).await.doing(|| "tell the query")?;
    }
    Ok(())
}

/// How the intruder spaces its reads.
struct Pace {
    /// Mean time between two reads.
    distance: Nanos,
    /// True: the time counts from the end of one read to the start of the next. False: it counts
    /// from start to start.
    thinks: bool,
}

async fn intruder<M: Machine>(
    mut m: M,
    path: String,
    size: u64,
    pace: Pace,
    stop: Shared<bool>,
) -> Outcome {
    let fd = open(&mut m, &path, OpenFlags::RDONLY).await?;
    let mut due = m.now();
    while !stop.with(|s| *s) {
        // The intervals are exponentially distributed, so no device can synchronise with them. If
        // `thinks` is false, they are intervals between starts, so that the rate is the requested
        // rate. An intruder that is late then reads immediately.
        let now = m.now();
        let from = if pace.thinks { now } else { due };
        due = from + exponential(&mut m, pace.distance);
        if due > now {
            m.sleep(due.since(now)).await.doing(|| "think")?;
        }
        let off = uniform(&mut m, 0, size / PAGE - 1) * PAGE;
        read(&mut m, fd, off, PAGE, "intruder read").await?;
    }
    close(&mut m, fd, &path).await
}

#[cfg(test)]
mod tests {
    use crate::testing::Trial;

    #[test]
    fn single_stream_reads_in_order() {
        let t = Trial::run("mysql-scan:profile=single", &[("size", "64m")]);
        let r = t.ranges("read", "p3");
        assert_eq!(r.len(), 512);
        assert!(r.windows(2).all(|w| w[1].0 == w[0].0 + w[0].1));
    }

    #[test]
    fn two_threads_read_every_byte_once() {
        let t = Trial::run("mysql-scan:profile=two-threads", &[("size", "64m")]);
        assert_eq!(t.ops("extent read"), 63, "all but the first extent");
        assert_eq!(t.ops("page read"), 64, "the pages of the first");
        assert_eq!(t.bytes_read(), 64 << 20);
    }

    #[test]
    fn pieces_are_visited_once_and_the_second_reader_keeps_its_rate() {
        let t = Trial::run("mysql-scan", &[("size", "1g"), ("cpu", "150us")]);
        let scan = t.ops("extent read");
        assert_eq!(scan, 1023);
        let secs = t.world.measures().metrics()[1].value;
        let per_second = t.ops("intruder read") as f64 / secs;
        assert!(
            (16.0..28.0).contains(&per_second),
            "{per_second} over {secs} s"
        );
        let r = t.ranges("read", "p3");
        assert!(r.windows(2).any(|w| w[1].0 < w[0].0));
        assert_eq!(t.left_over(), 0);
    }

    #[test]
    fn second_reader_keeps_its_rate_for_any_read_latency() {
        for rate in ["22", "200"] {
            let given = [("size", "1g"), ("cpu", "150us"), ("intruder", rate)];
            let t = Trial::run("mysql-scan", &given);
            let secs = t.world.measures().metrics()[1].value;
            let got = t.ops("intruder read") as f64 / secs;
            let want: f64 = rate.parse().expect("a number");
            // The tolerance is 4.5 standard deviations of a Poisson-distributed number.
            let slack = 4.5 * (want * secs).sqrt() / secs;
            assert!((got - want).abs() < slack, "{got} for {want} over {secs} s");
        }
    }

    #[test]
    fn second_reader_with_think_time_slows_down_with_latency() {
        let given = [("size", "1g"), ("cpu", "150us"), ("intruder", "10000")];
        let rate = |more: &[(&str, &str)]| {
            let t = Trial::run("mysql-scan", &[&given[..], more].concat());
            t.ops("intruder read") as f64 / t.world.measures().metrics()[1].value
        };
        let (keeps, thinks) = (rate(&[]), rate(&[("thinks", "yes")]));
        // 100 us of pause, and then the read, which takes several us on the test machine.
        assert!(thinks < 0.9 * keeps, "{thinks} beside {keeps}");
    }

    #[test]
    fn myisam_reads_128_kib_calls_and_innodb_pages_and_extents() {
        let all = |t: &Trial, kind: &str| t.ops(kind);
        let t = Trial::run("mysql-scan", &[("size", "8m"), ("engine", "myisam")]);
        assert_eq!((all(&t, "read"), t.bytes_read() >= 8 << 20), (64, true));
        let given = [("size", "8m"), ("intruder", "0"), ("direct", "yes")];
        let t = Trial::run("mysql-scan", &given);
        assert_eq!((all(&t, "page read"), all(&t, "extent read")), (64, 7));
        let sizes: Vec<u64> = t.ranges("read", "p3").iter().map(|r| r.1).collect();
        assert!(sizes.iter().all(|s| *s == 16 << 10 || *s == 1 << 20));
    }

    #[test]
    fn piece_that_splits_extents_is_rejected() {
        let given = [("piece".to_owned(), "100k".to_owned())];
        let e = crate::Plan::new("mysql-scan", &given).expect_err("refused");
        assert!(e.to_string().contains("multiple of 1MiB"), "{e}");
    }
}
