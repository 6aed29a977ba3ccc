//! After warm-up, operations in a simulated world allocate nothing: three times as many operations
//! need hardly more allocations.

use allocation_counter::measure;
use seekwell_core::{Nanos, OpenFlags};
use seekwell_sim::Setup;
use seekwell_sim::world::{Drive, SimMachine, WorldSetup, run_script};
use seekwell_workload::{Context, Machine, Outcome};

/// Operations of the short run; the long run has three times as many.
const OPS: u64 = 4_000;
/// Additional allocations that the long run may have: vectors that double a few times.
const GROWTH: u64 = 16;

fn run<F, Fut>(scheduler: &str, ops: u64, body: F) -> u64
where
    F: Fn(SimMachine, u64) -> Fut + Copy + 'static,
    Fut: Future<Output = Outcome> + 'static,
{
    let setup = Setup {
        device: "constant:depth=32,service_us=100".to_owned(),
        scheduler: scheduler.to_owned(),
        ..Setup::default()
    };
    let world = WorldSetup::new(setup).expect("a known scheduler");
    let mut drive = Drive::open(&world.setup).expect("a device");
    let counted = measure(|| {
        let ran = run_script("allocations", &world, &mut drive, |m| body(m, ops));
        assert!(ran.expect("it runs").stopped.is_none());
    });
    counted.count_total
}

fn assert_no_more_allocations<F, Fut>(what: &str, scheduler: &str, body: F)
where
    F: Fn(SimMachine, u64) -> Fut + Copy + 'static,
    Fut: Future<Output = Outcome> + 'static,
{
    let (short, long) = (run(scheduler, OPS, body), run(scheduler, 3 * OPS, body));
    println!("{what} under {scheduler}: {short} allocations, {long} for three times as many");
    assert!(
        long < short + GROWTH,
        "{what} under {scheduler}: {short} allocations for {OPS} operations, {long} for three times as many"
    );
}

async fn compute(mut m: SimMachine, ops: u64) -> Outcome {
    for _ in 0..ops {
        let op = m.op_begin("step");
        m.compute(Nanos(500)).await.doing(|| "compute")?;
        m.op_end(op, 0);
    }
    Ok(())
}

async fn direct(mut m: SimMachine, ops: u64) -> Outcome {
    let fd = m.open_device(OpenFlags::DIRECT).await.doing(|| "open")?;
    for k in 0..ops {
        let op = m.op_begin("read");
        m.read(fd, k % 100_000 * 8192, 4096)
            .await
            .doing(|| "read")?;
        m.op_end(op, 4096);
    }
    Ok(())
}

async fn cached(mut m: SimMachine, ops: u64) -> Outcome {
    let fd = m.open("file", OpenFlags::CREATE).await.doing(|| "open")?;
    for k in 0..ops {
        let op = m.op_begin("both");
        m.write(fd, k % 64 * 4096, 4096).await.doing(|| "write")?;
        m.read(fd, k % 64 * 4096, 4096).await.doing(|| "read")?;
        m.op_end(op, 4096);
    }
    Ok(())
}

async fn fsync(mut m: SimMachine, ops: u64) -> Outcome {
    let fd = m.open("file", OpenFlags::CREATE).await.doing(|| "open")?;
    for k in 0..ops {
        let op = m.op_begin("overwrite");
        m.write(fd, k % 64 * 4096, 4096).await.doing(|| "write")?;
        m.fsync(fd).await.doing(|| "fsync")?;
        m.op_end(op, 4096);
    }
    Ok(())
}

#[test]
fn compute_steps_and_cached_calls_allocate_nothing() {
    assert_no_more_allocations("computing", "deadline", compute);
    assert_no_more_allocations("cached calls", "deadline", cached);
}

#[test]
fn device_reads_allocate_nothing() {
    for s in crate::registered() {
        assert_no_more_allocations("direct reads", s.name, direct);
    }
}

#[test]
fn fsyncs_allocate_nothing() {
    for s in crate::registered() {
        assert_no_more_allocations("fsyncs", s.name, fsync);
    }
}

/// Checks the counter: a script with an allocation per operation must be detected.
#[test]
fn allocating_script_is_detected() {
    async fn names(mut m: SimMachine, ops: u64) -> Outcome {
        for k in 0..ops {
            std::hint::black_box(format!("{k}"));
            m.compute(Nanos(500)).await.doing(|| "compute")?;
        }
        Ok(())
    }
    let (short, long) = (run("noop", OPS, names), run("noop", 3 * OPS, names));
    assert!(long >= short + 2 * OPS);
}
