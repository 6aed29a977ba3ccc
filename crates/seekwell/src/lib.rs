//! Seekwell as a library: the one way in that a Rust program, the lab and other languages use.
//!
//! A run is one value, a [`RunSpec`]; running it gives a [`Record`], which embeds it. The words of
//! the command line make one ([`spec`], [`words`]), and so does a file ([`RunSpec::from_toml`]).
//!
//! ```
//! fn main() -> Result<(), seekwell::Error> {
//!     for scheduler in ["noop", "deadline:fifo_batch=1", "cfq"] {
//!         let mut spec = seekwell::spec("fs-mark:files=10", "hdd:hitachi-7k200", scheduler)?;
//!         spec.queue.nr_requests = Some(64);
//!         let record = seekwell::run(&spec, seekwell::Hooks::default())?;
//!         let metric = record.metric.unwrap_or_default();
//!         println!("{scheduler}: {:.1} {}", metric.value, metric.unit);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! Many runs go side by side with [`run_all`] or, one at a time as they end, [`run_each`]: one that
//! fails, or even panics, takes none of the others with it, and a [`Cancel`] ends them all with
//! what they measured until then.
//!
//! A run whose substrate is [`Substrate::Host`] goes on in a directory of this machine, under the
//! scheduler that is in force there; everything else is simulated.
//!
//! Schedulers, devices and workloads of your own are registered ([`register_scheduler`],
//! [`register_device_kind`], [`register_device`], [`register_workload!`]) and are from then on
//! found by name, listed, compared and tested like those of the tree.
//!
//! Left out: how results are judged and shown; that is for the floors above.

mod host;
mod many;
mod one;
mod sequence;

pub use host::IN_FORCE;
pub use many::{Cancel, Many, Traces, run_all, run_each};
pub use one::{Error, Hooks, Progress, run};
pub use sequence::{Between, Sequence, run_sequence};

pub use seekwell_core::result::Record;
pub use seekwell_core::spec::{
    BesideSpec, DeviceSpec, Fit, MachineSpec, QueueSpec, RunSpec, SchedulerSpec, SpecError,
    SpecErrors, Stream, Substrate, WorkloadSpec,
};
pub use seekwell_core::{Event, event, result};
pub use seekwell_device::{
    register_kind as register_device_kind, register_preset as register_device,
};
pub use seekwell_sched::register as register_scheduler;
pub use seekwell_sim::recording::{MOST_EVENTS, Recording, Store, Window};
pub use seekwell_sim::spec::{aligned, checked, plan};
pub use seekwell_sim::{Listen, Watch};
pub use seekwell_workload::register as register_script;

/// Reads the notations of the command line, part by part.
pub mod words {
    pub use seekwell_sim::spec::cgroup::SETTINGS as CGROUP_SETTINGS;
    pub use seekwell_sim::spec::kernel::{
        Kernel, kernel, said as kernel_said, shipped, version_here,
    };
    pub use seekwell_sim::spec::machine::{
        Machine, Sourced, Typed as TypedMachine, WORDS as MACHINE_WORDS, Word, machines,
        named as named_machine, of_kernel, typed as machine,
    };
    pub use seekwell_sim::spec::scheduler::{
        Found, Typed as TypedScheduler, assignment, list as schedulers, list_in as schedulers_in,
        named, spread, typed as scheduler,
    };
    pub use seekwell_sim::spec::words::device;
    pub use seekwell_sim::spec::workload::{
        LOOP, trace, typed as workload, typed_beside as beside,
    };
}

/// What a scheduler, a device or a workload from outside is written with.
pub mod sdk {
    pub use seekwell_core as core;
    pub use seekwell_device as device;
    pub use seekwell_microscope as microscope;
    pub use seekwell_sched as sched;
    pub use seekwell_sim as sim;
    pub use seekwell_workload as workload;
}

/// A run of three words: workload (`fs-mark:files=20`, or the path of a fio job file), device
/// (`ssd:x25m-g2-160`, or the path of a preset file) and scheduler (`cfq-3.4:slice_idle=0`).
/// Everything else is as usual; change the fields for more.
///
/// # Errors
/// All that is wrong with the three.
pub fn spec(workload: &str, device: &str, scheduler: &str) -> Result<RunSpec, Error> {
    Ok(seekwell_sim::spec::words::run(workload, device, scheduler)?)
}

/// Registers a workload of your own: its description, and its script, which is written once for
/// any machine.
///
/// ```
/// use seekwell::sdk::workload::{Context, Machine, Needs, Outcome, Params, Workload};
///
/// static IDLE: Workload = Workload {
///     name: "idle",
///     summary: "does nothing, for a second",
///     metric: "none",
///     stresses: "nothing",
///     source: "this page",
///     params: &[],
///     profiles: &[],
///     needs: Needs::Directory,
///     space: |_| 0,
///     check: |_| Ok(()),
/// };
/// async fn idle<M: Machine>(m: &mut M, _: &Params, _dir: &str) -> Outcome {
///     let second = seekwell::sdk::core::Nanos::from_secs(1);
///     m.sleep(second).await.doing(|| "sleep")
/// }
/// seekwell::register_workload!(&IDLE, idle)?;
/// # Ok::<(), seekwell::sdk::workload::RegisterError>(())
/// ```
#[macro_export]
macro_rules! register_workload {
    ($workload:expr, $script:path) => {
        $crate::register_script(
            $crate::sdk::workload::Script::new($workload)
                .on::<$crate::sdk::sim::world::SimMachine>(|m, p, dir| {
                    ::std::boxed::Box::pin($script(m, p, dir))
                }),
        )
    };
}
