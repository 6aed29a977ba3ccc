//! What the suite wants of every scheduler, of those in the tree.

use seekwell_sched::SchedulerInfo;

#[path = "suite/mq.rs"]
mod suite;

/// Whom the suite is about; a scheduler from outside the tree runs it over itself.
fn registered() -> &'static [SchedulerInfo] {
    seekwell_sched::registry()
}

/// Two hardware queues that were given nothing looked again every 3 ms and, each time, put off the
/// third, whose request had been refused: it was never issued.
#[test]
fn rule_26_a_queue_that_waits_to_run_again_is_not_put_off() {
    let setup = Setup {
        which: multi_queue()
            .iter()
            .position(|v| (v.0.name, v.1) == ("adios", "3.0.1"))
            .expect("a version"),
        hz: 100,
        depth: 1,
        max_sectors: 16,
        accepts: 1,
        budget: false,
        hctxs: 3,
        cache: true,
        fua: false,
        queueable: false,
        nomerges: 0,
    };
    let io = |kind, n, cpu| Step::Io {
        task: 0,
        kind,
        place: 0,
        n,
        cpu,
        wait_us: 0,
    };
    let steps = [
        Step::Tunable(7386849395247543900, false),
        io(0, 3, 0),
        io(3, 1, 0),
        Step::Pause(2100),
        io(0, 3, 3),
        io(6, 1, 0),
        io(0, 1, 2),
    ];
    let mut w = World::new(&setup);
    for (i, s) in steps.iter().enumerate() {
        w.apply(i, s);
    }
    w.finish("adios on three queues");
}
