//! What a simulated operation costs: script, executor and kernel model together.

use crate::scenario::{Scenario, named};
use seekwell_core::{Nanos, OpenFlags};
use seekwell_sim::Setup;
use seekwell_sim::world::{Drive, SimMachine, WorldSetup, run_script};
use seekwell_workload::{Context, How, Machine, Outcome};

const TASKS: u64 = 4;

fn setup() -> WorldSetup {
    let setup = Setup {
        device: "constant:depth=32,service_us=100".to_owned(),
        scheduler: "deadline".to_owned(),
        ..Setup::default()
    };
    WorldSetup::new(setup).expect("a known scheduler")
}

/// So many operations by four tasks; each does its share by `body`.
fn tasks<F, Fut>(ops: u64, body: F) -> u64
where
    F: Fn(SimMachine, u64) -> Fut + Copy + Send + 'static,
    Fut: Future<Output = Outcome> + 'static,
{
    let setup = setup();
    let mut drive = Drive::open(&setup.setup).expect("a device");
    let ran = run_script(
        "bench",
        &setup,
        &mut drive,
        async move |mut m: SimMachine| {
            let mut joins = Vec::new();
            for k in 0..TASKS {
                let script = move |m| body(m, ops / TASKS);
                let j = m.spawn(How::named(format!("w{k}")), script).await;
                joins.push(j.doing(|| "spawn")?);
            }
            for j in joins {
                m.join(j).await?;
            }
            Ok(())
        },
    );
    let ran = ran.expect("it runs");
    assert!(ran.stopped.is_none(), "{:?}", ran.stopped);
    ran.record.duration_ns ^ ran.record.operations.iter().map(|o| o.bytes).sum::<u64>()
}

/// A step of a program that needs the kernel's clock and cores only.
async fn compute(mut m: SimMachine, ops: u64) -> Outcome {
    for _ in 0..ops {
        let op = m.op_begin("step");
        m.compute(Nanos(500)).await.doing(|| "compute")?;
        m.op_end(op, 0);
    }
    Ok(())
}

/// A direct read, all the way to the device and back.
async fn direct(mut m: SimMachine, ops: u64) -> Outcome {
    let fd = m.open_device(OpenFlags::DIRECT).await.doing(|| "open")?;
    for k in 0..ops {
        let op = m.op_begin("read");
        m.read(fd, k * 8192, 4096).await.doing(|| "read")?;
        m.op_end(op, 4096);
    }
    Ok(())
}

/// All of them.
pub fn all() -> Vec<Scenario> {
    vec![
        named(
            "world-step",
            "4 tasks of a simulated world, steps of 500 ns on 4 cores",
            2_000_000,
            |ops| tasks(ops, compute),
        ),
        named(
            "world-direct",
            "4 tasks of a simulated world, direct reads over deadline and a constant device",
            400_000,
            |ops| tasks(ops, direct),
        ),
    ]
}
