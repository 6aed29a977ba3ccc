//! What may stand behind an option, from the registries: the help of options.

use seekwell_lab::usual::{IN_2012, TODAY};

/// Names of devices are in presets, and reading all of them takes milliseconds that no run has to
/// spare: only who asks for help, or makes pages of it, is told.
fn asked() -> bool {
    let told = ["--help", "help", "man"];
    // Of the system's own kind: a name that is no text is somebody's file, and no reason to end.
    std::env::args_os().any(|a| a.to_str().is_some_and(|a| told.contains(&a)))
}

/// `--device`; `long`: all about it.
pub(super) fn devices(long: bool) -> String {
    let mut text = "Modelled device; may be repeated".to_owned();
    if !long {
        return text;
    }
    text += &format!(
        ". With changes behind commas (hdd:hitachi-7k200,write_cache=no), or the path of a preset file \
         [default: {}; of run and replay {}; of 2012 {}].",
        TODAY.devices.join(", "),
        TODAY.device,
        IN_2012.devices.join(", ")
    );
    if !asked() {
        return text;
    }
    text += "\n\nDevices (all about one: seekwell devices NAME):";
    for d in seekwell_device::catalogue() {
        text += &format!("\n  {}: {}", d.name, d.summary);
    }
    text += "\n\nWhat may be changed, by kind:";
    for k in seekwell_device::kinds() {
        let keys: Vec<&str> = k.defs.iter().map(|d| d.key).collect();
        text += &format!("\n  {}: {}", k.name, keys.join(", "));
    }
    text
}

/// `--schedulers`; `long`: all about it.
pub(super) fn schedulers(long: bool) -> String {
    let mut text = "Schedulers: mq-deadline,bfq-v7r8, or all".to_owned();
    if long {
        text = format!(
            "Schedulers by name, with version and tunables where wanted (bfq-v7r8, \
             deadline:fifo_batch=1:read_expire=50), or all, single-queue, blk-mq [default: {}; of 2012 \
             {}].",
            TODAY.schedulers, IN_2012.schedulers
        );
        text += "\n\nNAME alone is the first version that `seekwell schedulers` lists, NAME-VERSION \
                 another (bfq is that of today, bfq-v7r8 that of 3.x kernels and phones). +LIST: the \
                 default's and these. --scheduler means the same. The others are compared with the first \
                 of LIST; without LIST with the one that kernels choose for the device.";
    }
    text
}

/// All about `--cgroup`.
pub(super) fn cgroup() -> String {
    let mut text = "A cgroup of the modelled machine, the tasks in it and its limits, as in \
                    bulk:tasks=writer:wbps=2M:riops=100; bulk/copy lies in bulk. May be repeated. \
                    Tasks have the names that `main/NAME` in events and JSON ends with (a number \
                    behind it may be left out); what the page cache writes is the root's."
        .to_owned();
    text += "\n\nSettings:";
    for s in seekwell::words::CGROUP_SETTINGS {
        text += &format!("\n  {}={}: {}", s.name, s.values, s.help);
    }
    text
}

/// All about workloads.
pub(super) fn workloads() -> String {
    listed(
        "Workload, with parameters behind a colon (fs-mark:files=100,workers=4), or the path of a fio \
         job file (NAME.fio).",
    )
}

/// All about the workloads of `compare`.
pub(super) fn compared() -> String {
    listed(&format!(
        "Workload, with parameters behind a colon (fs-mark:files=100,workers=4), or the path of a fio \
         job file (NAME.fio); may be repeated. Names alone may stand in one list (--workloads \
         hdparm,seeker) [default: {}; of 2012 {}].",
        TODAY.workloads.join(" "),
        IN_2012.workloads.join(" ")
    ))
}

/// The same of one with its weight.
pub(super) fn weighted() -> String {
    listed(
        "Workload with its weight [1] (pgbench=3, fs-mark:files=100=0.5); may be repeated. Of results \
         only those named count.",
    )
}

fn listed(what: &str) -> String {
    let mut text = what.to_owned();
    text += "\n\nWorkloads and their parameters (all about one: seekwell workloads NAME):";
    for w in seekwell_workload::workloads() {
        let names: Vec<&str> = w.params.iter().map(|p| p.name).collect();
        text += &format!("\n  {}: {}", w.name, names.join(", "));
    }
    text
}

/// All about `--machine`.
pub(super) fn machine() -> String {
    let mut text =
        "The modelled machine: the name of one, words that change it or say what it is, \
                    or both, as in laptop,memory=8G,cpu=0.6,data=writeback,limit=30."
            .to_owned();
    text += "\n\nMachines (all about one: seekwell machines NAME):";
    for m in seekwell::words::machines() {
        text += &format!("\n  {}: {}", m.name, m.summary);
    }
    text += "\n\nWords, with what may stand behind = and the usual value:";
    for w in seekwell::words::MACHINE_WORDS {
        let values = match w.values {
            "" => String::new(),
            values => format!(" ({values})"),
        };
        text += &format!("\n  {}{values}: {}", w.name, w.help);
    }
    text
}

/// All about `--mode`.
pub(super) fn modes() -> String {
    let mut text = "Timing of the replay.".to_owned();
    for (example, mode) in seekwell_trace::ReplayMode::EXAMPLES {
        text += &format!("\n\n{example}: {}", mode.explain());
    }
    text
}
