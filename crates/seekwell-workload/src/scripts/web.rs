//! A static page that a web server sends to the client program `ab`. The workload consists of CPU
//! work and a growing log, with almost no disk access.
//!
//! A request first takes CPU time of the client, which has one thread for all connections. Then the
//! worker of the connection takes CPU time. It opens the page, calls stat, reads it (from the page
//! cache), closes it, and appends a line to the access log. Both CPU times include the network,
//! because client and server run on the same machine. With two cores, client and server share them
//! equally. With four cores, the client occupies one core and limits the rate.

use super::common::*;
use crate::fail::{Context, Outcome};
use crate::machine::{Fd, How, Lock, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param, profile};
use crate::row::{Needs, Workload, any};
use seekwell_core::{NSEC_PER_SEC, Nanos, OpenFlags};

/// The workload's entry in the registry.
pub const WORKLOAD: Workload = Workload {
    name: "web",
    summary: "serve a static page (apache, nginx)",
    metric: "requests/s, higher is better",
    stresses: "CPU; the disk has only a log of a few hundred kB/s (no effect expected)",
    source: "apache 2.2.21 and nginx 1.0.11 under ab -c 100; pts/apache-1.4.0, pts/nginx-1.1.0",
    #[rustfmt::skip]
    params: &[
        param("requests", Kind::Count(1, 1_000_000_000), "700000",
            "total number of requests (ab -n)"),
        param("workers", Kind::Count(1, 1024), "100", "number of server processes or threads"),
        param("cpu", Kind::Time(0, NSEC_PER_SEC), "102us",
            "CPU time of the server per request in addition to its five system calls"),
        param("connections", Kind::Count(1, 4096), "100", "number of concurrent requests (ab -c)"),
        param("client", Kind::Time(0, NSEC_PER_SEC), "70us",
            "CPU time of ab per request; ab has one thread for all connections"),
        param("page", Kind::Bytes(1, 1 << 30), "3064", "size of the page"),
        param("line", Kind::Bytes(1, 1 << 20), "85", "length of a log line"),
    ],
    profiles: &[
        profile(
            "apache",
            "prefork; server and client together use 88 us of 2 cores per request: 11300/s",
            &[],
        ),
        profile(
            "nginx",
            "one worker; 70 us per request with its calls, as long as the client needs",
            NGINX,
        ),
    ],
    needs: Needs::Directory,
    space: |p| p.int("page") + p.int("requests") * p.int("line"),
    check: any,
};

const NGINX: &[(&str, &str)] = &[("requests", "500000"), ("workers", "1"), ("cpu", "66us")];

#[derive(Clone)]
struct Site {
    page: String,
    size: u32,
    log: Fd,
    line: u32,
    cpu: Nanos,
    client: Nanos,
    /// Lock for the single thread of `ab`.
    ab: Lock,
    left: Shared<u64>,
    done: Shared<u64>,
}

/// Runs the workload.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    let page = format!("{dir}/test.html");
    lay_out(m, &page, p.int("page")).await?;
    let log_path = format!("{dir}/access.log");
    let how = OpenFlags::CREATE | OpenFlags::APPEND;
    let site = Site {
        page,
        size: p.small("page"),
        log: open(m, &log_path, how).await?,
        line: p.small("line"),
        cpu: p.time("cpu"),
        client: p.time("client"),
        ab: m.lock(),
        left: Shared::new(p.int("requests")),
        done: Shared::new(0),
    };
    m.mark(Mark::ClockStart);
    let start = m.now();
    let mut group = Group::new();
    let workers: Vec<Lock> = (0..p.int("workers")).map(|_| m.lock()).collect();
    for (i, worker) in (0..p.int("connections")).zip(workers.iter().cycle()) {
        let (site, worker) = (site.clone(), *worker);
        let how = How::named(format!("connection{i}"));
        group
            .spawn(m, how, move |m| connection(m, site, worker))
            .await?;
    }
    let outcome = group.join(m).await;
    let done = site.done.with(|n| *n);
    if done > 0 {
        let per_second = rate(done as f64, seconds(m, start));
        m.counts("request");
        m.metric(
            "requests",
            "requests/s",
            (per_second * 100.0).round() / 100.0,
            true,
        );
    }
    outcome?;
    close(m, site.log, &log_path).await
}

/// Makes the requests of a connection one after another. `ab` sends a request, and a worker of the
/// server answers it.
async fn connection<M: Machine>(mut m: M, s: Site, worker: Lock) -> Outcome {
    let m = &mut m;
    let take = |n: &mut u64| {
        let some = *n > 0;
        *n = n.saturating_sub(1);
        some
    };
    while s.left.with(take) {
        m.acquire(s.ab).await.doing(|| "wait for ab")?;
        let asked = m.compute(s.client).await;
        m.release(s.ab);
        asked.doing(|| "compute")?;
        m.acquire(worker).await.doing(|| "wait for a worker")?;
        let served = serve(m, &s).await;
        m.release(worker);
        served?;
        s.done.with(|n| *n += 1);
    }
    Ok(())
}

async fn serve<M: Machine>(m: &mut M, s: &Site) -> Outcome {
    let op = m.op_begin("request");
    m.compute(s.cpu).await.doing(|| "compute")?;
    let fd = open(m, &s.page, OpenFlags::RDONLY).await?;
    m.fstat(fd).await.doing(|| format!("stat {}", s.page))?;
    m.read(fd, 0, s.size)
        .await
        .doing(|| format!("read {}", s.page))?;
    close(m, fd, &s.page).await?;
    m.append(s.log, s.line)
        .await
        .doing(|| "append to access.log")?;
    m.op_end(op, u64::from(s.size));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Trial;

    #[test]
    fn each_request_reads_the_page_and_logs_a_line() {
        let t = Trial::run("web", &[("requests", "1000"), ("workers", "7")]);
        assert_eq!(t.ops("request"), 1000);
        assert_eq!(t.calls("append"), 1000);
        assert_eq!(t.calls_on("read", "test.html"), 1000);
        assert_eq!(t.bytes_written(), 3064 + 85_000);
        assert_eq!(t.left_over(), 0);
    }

    #[test]
    fn one_worker_serves_one_request_at_a_time() {
        let t = Trial::run("web:profile=nginx", &[("requests", "1000")]);
        // A request takes CPU time, five calls, and the bytes of page and log line on the test
        // machine. The last digit is rounded.
        let us = 66.0 + 5.0 + 3.064 + 0.085;
        assert!((t.metric() - 1e6 / us).abs() < 50.0, "{}", t.metric());
    }

    #[test]
    fn client_is_one_thread_for_any_number_of_workers() {
        for connections in ["20", "100"] {
            let t = Trial::run(
                "web",
                &[
                    ("requests", "2000"),
                    ("client", "500us"),
                    ("connections", connections),
                ],
            );
            // The client never waits for the server, so only the CPU time of the client counts.
            let most = 1e6 / 500.0;
            assert!(
                t.metric() <= most && t.metric() > 0.97 * most,
                "{}",
                t.metric()
            );
        }
    }
}
