//! Arguments of `predict`.

use super::{Output, budget};
use clap::{Args, ValueEnum, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  seekwell predict /var/lib/postgresql -w pgbench
  sudo seekwell predict /srv -- rsync -a /srv/www /srv/copy
  sudo seekwell predict /srv -w fs-mark:files=200 -d ./mine.toml --verify --confirm sda
  seekwell predict --record
All options: seekwell predict --help";

/// When a recorded command ends.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// When its work is done.
    Work,
    /// After a fixed time.
    Time,
}

const VERIFYING: &str = "For real";

/// Arguments of `predict`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Predict {
    /// Directory, file or device whose scheduler is in question
    #[arg(value_hint = ValueHint::AnyPath, required_unless_present_any = ["of", "record"])]
    pub path: Option<PathBuf>,
    /// Workload; may be repeated
    ///
    /// A script from `seekwell workloads` or a fio job file [default: the workloads of
    /// `seekwell compare`]. A program itself cannot be simulated. If a script has its name
    /// (pgbench), the script is simulated instead. Otherwise, record the program as COMMAND.
    #[arg(long, short, value_name = "WORK")]
    pub workload: Vec<String>,
    /// Schedulers, separated by commas [default: all that the device offers]
    #[arg(long, short, value_name = "LIST")]
    pub schedulers: Option<String>,
    /// Preset of the disk
    ///
    /// A file that `seekwell calibrate` wrote for this disk, or a name from `seekwell devices`
    /// [default: the preset that is nearest to the disk, which is another disk].
    #[arg(long, short, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Calibrate the disk first; reads only
    ///
    /// It takes up to 3 minutes and needs the right to read the device. The preset is written to
    /// the current directory, for later predictions with --device.
    #[arg(long, conflicts_with = "device")]
    pub calibrate: bool,
    /// Predict and score the stored results of `compare --host`
    ///
    /// The workloads, schedulers and settings are those of the results. Nothing runs on the disk.
    /// The scores are not added to the record.
    #[arg(long, value_name = "RESULTS", value_hint = ValueHint::DirPath,
        conflicts_with_all = ["path", "workload", "schedulers", "verify", "calibrate"])]
    pub of: Option<PathBuf>,
    /// Print the scores of all verified predictions of this machine
    ///
    /// Each prediction that --verify or `compare --with-sim` measured has one line in the record:
    /// /var/lib/seekwell/predictions.jsonl for root, and ~/.local/state/seekwell for users.
    /// SEEKWELL_STATE_DIR names another directory.
    #[arg(long, conflicts_with_all = ["path", "workload", "schedulers", "device", "verify", "calibrate", "of"])]
    pub record: bool,
    /// Command to record once, after -- (root)
    ///
    /// COMMAND runs under the active scheduler; no setting changes. Its block requests on the device
    /// below PATH are recorded and repeated in the simulation.
    #[arg(last = true, value_name = "COMMAND",
        conflicts_with_all = ["workload", "of", "record", "verify"])]
    pub command: Vec<OsString>,
    /// How COMMAND ends [default: `time` if its arguments state a running time, else `work`]
    ///
    /// A command that ends when its work is done is judged by the time for this work. A command that
    /// runs for a fixed time is judged by the rate and the latency of its requests.
    #[arg(long, value_name = "WHEN", requires = "command")]
    pub ends: Option<Ends>,
    /// Measure the prediction on the disk (root), and score it
    ///
    /// It runs `compare --host` with the same workloads and schedulers, restores the settings, and
    /// adds the scores to the record.
    #[arg(long, help_heading = VERIFYING)]
    pub verify: bool,
    /// With --verify: confirm the device by name, without a question
    #[arg(long, value_name = "DEVICE", requires = "verify", help_heading = VERIFYING)]
    pub confirm: Option<String>,
    /// With --verify: number of blocks [default: 5 to 20, until the result is clear]
    #[arg(long, value_name = "N", requires = "verify", help_heading = VERIFYING)]
    pub repeats: Option<u32>,
    /// With --verify: start no new block after TIME (90s, 10m)
    #[arg(long, value_name = "TIME", requires = "verify", value_parser = budget, help_heading = VERIFYING)]
    pub budget: Option<f64>,
    /// With --verify: folder for the results
    #[arg(long, value_name = "DIR", requires = "verify", value_hint = ValueHint::DirPath, help_heading = VERIFYING)]
    pub results: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}
