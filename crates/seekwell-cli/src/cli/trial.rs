//! Arguments of `trial`.

use super::{Output, seconds};
use clap::{Args, ValueHint};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  sudo seekwell trial /var/lib/postgresql --for 30m
  sudo seekwell trial /srv --for 2h -s mq-deadline,bfq --metric 'read p99'
  sudo seekwell trial /srv --metric 'rate,name=tps:psql -Atc \"select sum(xact_commit)
    from pg_stat_database\"'
  sudo seekwell trial /srv --stop
  seekwell trial --simulated -d hdd:st2000dm006 -w interactive --for 30m
All options: seekwell trial --help";

const SAFETY: &str = "Safety";
const METHOD: &str = "Method";
const SIMULATION: &str = "Simulation";
const RESULTS: &str = "Results";

/// Arguments of `trial`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Trial {
    /// Directory or device to run the trial on
    #[arg(value_hint = ValueHint::AnyPath, required_unless_present = "simulated")]
    pub path: Option<PathBuf>,
    /// Time for the whole trial
    #[arg(long = "for", value_name = "TIME", default_value = "30m", value_parser = seconds)]
    pub time_s: f64,
    /// Schedulers, separated by commas [default: all that the device offers]
    ///
    /// Tunables follow a colon: bfq:low_latency=0:slice_idle=0,mq-deadline.
    #[arg(long, short, value_name = "LIST")]
    pub schedulers: Option<String>,
    /// Metric that decides; may be repeated
    ///
    /// Each metric gets its own verdict, and a recommendation weighs them equally. The guard watches
    /// the first one. Built-in metrics: read
    /// mean, read p99, write mean, write p99, IOPS, throughput. Metrics of your own: `rate:SOURCE`
    /// is a counter whose increase per second is measured. `value,lower:SOURCE` (or higher) is a
    /// number that is averaged. `,name=NAME` before the colon sets the name. SOURCE is a shell
    /// command that prints a number, `http://HOST:PORT/PATH SERIES` in the text format of
    /// Prometheus, or `log:FILE REGEX` with one group in REGEX. Default: the mean latency of reads
    /// (of writes, if reads are rare), its p99 if measured, the mean latency of the other direction, and
    /// IOPS.
    #[arg(long, value_name = "METRIC")]
    pub metric: Vec<String>,
    /// Length of a period [default: from the noise of the baseline]
    #[arg(long, value_name = "TIME", value_parser = seconds, help_heading = METHOD)]
    pub period: Option<f64>,
    /// Time after each switch that does not count
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = seconds, help_heading = METHOD)]
    pub washout: f64,
    /// Time under the current scheduler before the first switch
    ///
    /// It shows the noise. The guard compares the first metric with it [default: a tenth of --for,
    /// 20 s to 5 min].
    #[arg(long, value_name = "TIME", value_parser = seconds, help_heading = METHOD)]
    pub baseline: Option<f64>,
    /// Stop when every comparison is decided
    ///
    /// The intervals are wider, so that repeated looks do not cause false claims.
    #[arg(long, help_heading = METHOD)]
    pub until_decided: bool,
    /// Seed of the random order
    #[arg(long, value_name = "SEED", default_value_t = 1, help_heading = METHOD)]
    pub seed: u64,
    /// Measure without BPF: no percentiles
    #[arg(long, help_heading = METHOD, hide_short_help = true)]
    pub no_bpf: bool,
    /// End a period if the first metric is N times worse than the baseline; 0 disables it
    #[arg(long, value_name = "N", default_value_t = 3.0, help_heading = SAFETY)]
    pub guard: f64,
    /// Time for which the metric must stay that bad before the guard acts
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = seconds, help_heading = SAFETY)]
    pub guard_for: f64,
    /// Confirm the device by name, if it holds the root file system
    #[arg(long, value_name = "DEVICE", help_heading = SAFETY)]
    pub confirm: Option<String>,
    /// End the running trial of this device
    ///
    /// The trial restores the settings. The results of the complete periods appear in its own terminal.
    #[arg(long, help_heading = SAFETY, conflicts_with_all = ["schedulers", "metric", "until_decided"])]
    pub stop: bool,
    /// Run the trial on a simulated machine, to plan it
    ///
    /// No time passes and no device is changed. The programs of --workload run at the same time. A
    /// program with a duration runs for the whole trial, and others restart when they end.
    #[arg(long, help_heading = SIMULATION, conflicts_with_all = ["path", "stop", "confirm", "no_bpf"])]
    pub simulated: bool,
    /// Simulated device [default: hdd:st2000dm006]
    #[arg(long, short, value_name = "DEVICE", help_heading = SIMULATION)]
    pub device: Option<String>,
    /// Work of the simulated machine; may be repeated [default: interactive]
    #[arg(long, short, value_name = "WORK", help_heading = SIMULATION)]
    pub workload: Vec<String>,
    /// Folder for the results [default: results/trial]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = RESULTS)]
    pub results: Option<PathBuf>,
    /// Write a report page to FILE
    #[arg(long, value_name = "FILE.html", value_hint = ValueHint::FilePath, help_heading = RESULTS)]
    pub report: Option<PathBuf>,
    /// Print every metric
    #[arg(long, help_heading = RESULTS, conflicts_with = "json")]
    pub details: bool,
    /// Print one JSON document
    #[arg(long, help_heading = RESULTS)]
    pub json: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}
