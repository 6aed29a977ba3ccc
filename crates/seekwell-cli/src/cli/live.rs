//! Arguments of the commands that use a modelled disk or test devices with the running kernel.

use super::Output;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Arguments of `serve`.
#[derive(Args, Debug)]
pub struct Serve {
    /// Empty directory to mount the file system on
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub fuse: PathBuf,
    /// Modelled device, from `seekwell devices`, with changes after commas, or the path of a preset
    /// file
    #[arg(
        long,
        short,
        value_name = "DEVICE",
        default_value = "hdd:hitachi-7k200"
    )]
    pub device: String,
    /// Size of the file, with K, M, G or T; at most the device's size [default: the device's size]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub size: Option<u64>,
    /// Store the data in this sparse file, which is created if necessary [default: memory, lost at
    /// the end]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub backing: Option<PathBuf>,
    /// Latency of the FUSE path in microseconds, which is subtracted from the time of each request
    /// [default: measured; 0 for a spinning disk]
    #[arg(long, value_name = "US", value_parser = service_us)]
    pub floor_us: Option<f64>,
    /// Write each disk command with its arrival time and modelled completion time to FILE, as a CSV
    /// for `seekwell replay`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub log: Option<PathBuf>,
    /// Model this scheduler and its block layer in front of the device, with optional version and
    /// tunables (cfq-3.4:slice_idle=0) [default: no block layer; commands go straight to the
    /// device]
    #[arg(long, short, value_name = "SCHEDULER")]
    pub scheduler: Option<String>,
    /// Number of requests in the modelled block layer (nr_requests) [default: the layer's]
    #[arg(long, value_name = "N", requires = "scheduler")]
    pub nr_requests: Option<u32>,
    /// Serve the device even if it is too fast to complete requests on time
    #[arg(long)]
    pub force: bool,
    /// Seed of the device's random numbers
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Stop when standard input ends, because the program that started this one has then ended
    #[arg(long, hide = true)]
    pub until_eof: bool,
    /// Print the final report as one JSON document
    #[arg(long)]
    pub json: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}

/// Parses a number of bytes such as `4096`, `512K` or `20G`; units are powers of 1024.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((i, c)) if c.is_ascii_alphabetic() => {
            let shift = match c.to_ascii_uppercase() {
                'K' => 10,
                'M' => 20,
                'G' => 30,
                'T' => 40,
                _ => return Err(format!("\"{c}\" is not a unit; use K, M, G or T")),
            };
            (&text[..i], shift)
        }
        _ => (text, 0),
    };
    let n: u64 = digits
        .parse()
        .map_err(|_| "write a number of bytes, for example 512M or 20G".to_owned())?;
    n.checked_mul(1 << shift)
        .ok_or_else(|| "the size is too large".to_owned())
}

/// Arguments of `check-worlds`.
#[derive(Args, Debug)]
pub struct CheckWorlds {
    /// Workloads with their parameters (fs-mark:files=100,size=16KiB) [default: seven workloads,
    /// about two minutes]
    pub workloads: Vec<String>,
    /// Modelled device
    #[arg(
        long,
        short,
        value_name = "DEVICE",
        default_value = "hdd:hitachi-7k200"
    )]
    pub device: String,
    /// Scheduler to set on the loop device, with its name in the kernel [default: the current one]
    #[arg(long, short, value_name = "NAME")]
    pub scheduler: Option<String>,
    /// Size of the disk, with K, M, G or T
    #[arg(long, value_name = "BYTES", value_parser = bytes, default_value = "4G")]
    pub size: u64,
    /// Changes to the simulated machine (memory=2G,cores=2,without=readahead). By default, it has
    /// the memory and cores of this machine
    #[arg(long, value_name = "OPTIONS", default_value = "")]
    pub machine: String,
    /// Use a loop device over a plain file, without the modelled disk. The differences are
    /// reported, but not judged
    #[arg(long)]
    pub raw: bool,
    /// Store the kernel's block traces in this directory, which is created if necessary
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub keep: Option<PathBuf>,
    /// Seed of all random numbers
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `verify-kernel`.
#[derive(Args, Debug)]
pub struct VerifyKernel {
    /// mq-deadline, kyber or bfq [default: all that the kernel has]
    pub schedulers: Vec<String>,
    /// Number of batches of each kind; each batch is submitted twice
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Seed of the batches
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON document
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Print Markdown; docs/fidelity.md is the output
    #[arg(long)]
    pub markdown: bool,
    /// With --markdown: also replay the decisions recorded in DIR and DIR/mq
    #[arg(long, value_name = "DIR", requires = "markdown", value_hint = ValueHint::DirPath)]
    pub recorded: Option<PathBuf>,
    /// Output file
    #[command(flatten)]
    pub output: Output,
}

/// Parses a service time in microseconds.
pub(super) fn service_us(text: &str) -> Result<f64, String> {
    let us: f64 = text
        .parse()
        .map_err(|_| "not a number of microseconds".to_owned())?;
    if us.is_finite() && (0.0..=1e9).contains(&us) {
        Ok(us)
    } else {
        Err("outside 0..=1000000000 microseconds".to_owned())
    }
}
