//! Prints a table of the gain from sorting requests before they are striped over several disks. The
//! requests are sorted by an ideal elevator and by deadline.

use seekwell_device::open;
use seekwell_evidence::validation::backlog::{CELLS, Policy, run};

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let n = std::env::args().nth(1).map_or(Ok(6_000), |a| a.parse())?;
    println!(
        "disks out depth ncq |      noop p99 |    C-LOOK p99 |  deadline p99 | gain published"
    );
    for (cell, published) in CELLS {
        let of = |policy| {
            let r = run(cell, policy, open(&cell.device(), 13)?, n)?;
            let p99 = r.read.latency.percentile_ns(99.0) as f64 / 1e6;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>((r.iops(), p99))
        };
        let (noop, clook, deadline) =
            (of(Policy::Noop)?, of(Policy::Clook)?, of(Policy::Deadline)?);
        println!(
            "{:5} {:3} {:5} {:3} | {:6.1} {:6.0} | {:6.1} {:6.0} | {:6.1} {:6.0} | {:.2} {published}",
            cell.disks,
            cell.outstanding,
            cell.depth,
            cell.ncq,
            noop.0,
            noop.1,
            clook.0,
            clook.1,
            deadline.0,
            deadline.1,
            clook.0 / noop.0
        );
    }
    Ok(())
}
