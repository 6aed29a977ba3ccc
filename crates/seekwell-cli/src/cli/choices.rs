//! Long help of options. It lists the possible values, which come from the registries.

use seekwell_lab::usual::{IN_2012, TODAY};

/// Returns whether the command line asks for help or manual pages. Only then the names of all
/// devices are read from their presets, because this takes milliseconds.
fn asked() -> bool {
    let told = ["--help", "help", "man"];
    // `args_os`: a file name that is not valid UTF-8 must not end the program.
    std::env::args_os().any(|a| a.to_str().is_some_and(|a| told.contains(&a)))
}

/// Returns the help of `--device`; `long` selects the text for `--help`.
pub(super) fn devices(long: bool) -> String {
    let mut text = "Modelled device; may be repeated".to_owned();
    if !long {
        return text;
    }
    text += &format!(
        ". Changes follow commas (hdd:hitachi-7k200,write_cache=no). The path of a preset file is \
         accepted too [default: {}; for run and replay {}; for 2012 {}].",
        TODAY.devices.join(", "),
        TODAY.device,
        IN_2012.devices.join(", ")
    );
    if !asked() {
        return text;
    }
    text += "\n\nDevices (details: seekwell devices NAME):";
    for d in seekwell_device::catalogue() {
        text += &format!("\n  {}: {}", d.name, d.summary);
    }
    text += "\n\nParameters that can be changed, by kind:";
    for k in seekwell_device::kinds() {
        let keys: Vec<&str> = k.defs.iter().map(|d| d.key).collect();
        text += &format!("\n  {}: {}", k.name, keys.join(", "));
    }
    text
}

/// Returns the help of `--schedulers`; `long` selects the text for `--help`.
pub(super) fn schedulers(long: bool) -> String {
    let mut text = "Schedulers: mq-deadline,bfq-v7r8, or all".to_owned();
    if long {
        text = format!(
            "Schedulers by name, with optional version and tunables (bfq-v7r8, \
             deadline:fifo_batch=1:read_expire=50), or all, single-queue, blk-mq [default: {}; for 2012 \
             {}].",
            TODAY.schedulers, IN_2012.schedulers
        );
        text += "\n\nNAME means the first version that `seekwell schedulers` lists. NAME-VERSION means \
                 another version: bfq is the current one, bfq-v7r8 that of 3.x kernels and phones. +LIST \
                 adds LIST to the default list. The first scheduler of LIST is the reference. Without \
                 LIST, or with +LIST, the reference is the one that kernels choose for the device. \
                 --scheduler means the same as --schedulers.";
    }
    text
}

/// Returns the long help of `--cgroup`.
pub(super) fn cgroup() -> String {
    let mut text = "Cgroup of the modelled machine, with its tasks and limits: \
                    bulk:tasks=writer:wbps=2M:riops=100. The cgroup bulk/copy is a child of bulk. May \
                    be repeated. Task names are the last part of `main/NAME` in events and JSON; a \
                    number at the end may be omitted. Writes of the page cache belong to the root \
                    cgroup."
        .to_owned();
    text += "\n\nSettings:";
    for s in seekwell::words::CGROUP_SETTINGS {
        text += &format!("\n  {}={}: {}", s.name, s.values, s.help);
    }
    text
}

/// Returns the long help of the argument WORKLOAD of `run`.
pub(super) fn workloads() -> String {
    listed(
        "Workload, with parameters after a colon (fs-mark:files=100,workers=4), or the path of a fio \
         job file (NAME.fio).",
    )
}

/// Returns the long help of `--workload` of `compare`.
pub(super) fn compared() -> String {
    listed(&format!(
        "Workload, with parameters after a colon (fs-mark:files=100,workers=4), or the path of a fio \
         job file (NAME.fio); may be repeated. Names without parameters may form one list \
         (--workloads hdparm,seeker) [default: {}; for 2012 {}].",
        TODAY.workloads.join(" "),
        IN_2012.workloads.join(" ")
    ))
}

/// Returns the long help of `--workload` of `recommend`, where a workload has a weight.
pub(super) fn weighted() -> String {
    listed(
        "Workload with its weight [1] (pgbench=3, fs-mark:files=100=0.5); may be repeated. With \
         results, only the named workloads count.",
    )
}

fn listed(what: &str) -> String {
    let mut text = what.to_owned();
    text += "\n\nWorkloads and their parameters (details: seekwell workloads NAME):";
    for w in seekwell_workload::workloads() {
        let names: Vec<&str> = w.params.iter().map(|p| p.name).collect();
        text += &format!("\n  {}: {}", w.name, names.join(", "));
    }
    text
}

/// Returns the long help of `--machine`.
pub(super) fn machine() -> String {
    let mut text = "Modelled machine: a name, or settings, or a name and changes to it: \
                    laptop,memory=8G,cpu=0.6,data=writeback,limit=30."
        .to_owned();
    text += "\n\nMachines (details: seekwell machines NAME):";
    for m in seekwell::words::machines() {
        text += &format!("\n  {}: {}", m.name, m.summary);
    }
    text += "\n\nSettings, with their values and the [default]:";
    for w in seekwell::words::MACHINE_WORDS {
        let values = match w.values {
            "" => String::new(),
            values => format!(" ({values})"),
        };
        text += &format!("\n  {}{values}: {}", w.name, w.help);
    }
    text
}

/// Returns the long help of `--mode`.
pub(super) fn modes() -> String {
    let mut text = "Timing of the replay.".to_owned();
    for (example, mode) in seekwell_trace::ReplayMode::EXAMPLES {
        text += &format!("\n\n{example}: {}", mode.explain());
    }
    text
}
