//! Seekwell as a library: the common interface for Rust programs, for the lab and for other
//! languages.
//!
//! A [`RunSpec`] contains everything that defines a run. The run returns a [`Record`], which
//! contains the specification. Specifications are made from command-line texts ([`spec`],
//! [`words`]) or from a file ([`RunSpec::from_toml`]).
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
//! [`run_all`] executes many runs in parallel. [`run_each`] does the same and returns each result
//! as soon as its run ends. A run that fails or panics does not affect other runs. A [`Cancel`]
//! token ends all runs; their records contain what was measured until then.
//!
//! A run with the substrate [`Substrate::Host`] uses a directory of this machine under its active
//! scheduler. All other runs are simulated.
//!
//! Programs can register schedulers, devices and workloads of their own ([`register_scheduler`],
//! [`register_device_kind`], [`register_device`], [`register_workload!`]). These are then listed,
//! found by name, compared and tested like the built-in ones.
//!
//! Statistics and reports are not part of this crate.

mod cancel;
mod hooks;
mod host;
mod many;
mod one;
mod sequence;

pub use cancel::Cancel;
pub use hooks::{Error, Hooks, Progress};
pub use host::IN_FORCE;
pub use many::{Many, Traces, run_all, run_each};
pub use one::run;
pub use sequence::{Between, Sequence, run_sequence};

pub use seekwell_core::result::Record;
pub use seekwell_core::spec::{
    BackgroundSpec, DeviceSpec, Fit, MachineSpec, QueueSpec, RunSpec, SchedulerSpec, SpecError,
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

/// Parsers for the command-line syntax.
pub mod words {
    pub use seekwell_sim::spec::cgroup::SETTINGS as CGROUP_SETTINGS;
    pub use seekwell_sim::spec::kernel::{
        Kernel, kernel, kernel_notes, shipped, version_for, version_here,
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
        LOOP, fio_command, trace, typed as workload, typed_beside as beside,
    };
}

/// The crates that are needed to write a scheduler, device or workload.
pub mod sdk {
    pub use seekwell_core as core;
    pub use seekwell_device as device;
    pub use seekwell_microscope as microscope;
    pub use seekwell_sched as sched;
    pub use seekwell_sim as sim;
    pub use seekwell_workload as workload;
}

/// Returns a run specification made from three texts:
///
/// - the workload: `fs-mark:files=20`, or the path of a fio job file;
/// - the device: `ssd:x25m-g2-160`, or the path of a preset file;
/// - the scheduler: `cfq-3.4:slice_idle=0`.
///
/// All other fields have default values and can be changed afterwards.
///
/// # Errors
/// All errors in the three texts.
pub fn spec(workload: &str, device: &str, scheduler: &str) -> Result<RunSpec, Error> {
    Ok(seekwell_sim::spec::words::run(workload, device, scheduler)?)
}

/// Registers a workload: its description and its script. The same script runs on simulated and real
/// machines.
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
