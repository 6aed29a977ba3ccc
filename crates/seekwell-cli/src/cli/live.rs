//! Arguments of the commands that put a modelled disk under the running kernel.

use super::{Output, service_us};
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Arguments of `serve`.
#[derive(Args, Debug)]
pub struct Serve {
    /// Empty directory to mount at
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub fuse: PathBuf,
    /// Modelled device, from `seekwell devices`, with changes behind commas, or the path of a
    /// preset file
    #[arg(
        long,
        short,
        value_name = "DEVICE",
        default_value = "hdd:hitachi-7k200"
    )]
    pub device: String,
    /// Size of the file, with K, M, G or T; at most the device's [default: the device's]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub size: Option<u64>,
    /// Keep the data in this sparse file, which is made if need be [default: memory, lost at the
    /// end]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub backing: Option<PathBuf>,
    /// Latency of the way itself, taken off each completion, in microseconds [default: measured;
    /// 0 on a spinning disk]
    #[arg(long, value_name = "US", value_parser = service_us)]
    pub floor_us: Option<f64>,
    /// Write each command with its arrival and the model's completion time to FILE, a CSV that
    /// `seekwell replay` reads
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub log: Option<PathBuf>,
    /// Put a scheduler and its block layer in front of the device, with version and tunables where
    /// wanted (cfq-3.4:slice_idle=0) [default: no layer; commands go to the device as they come]
    #[arg(long, short, value_name = "SCHEDULER")]
    pub scheduler: Option<String>,
    /// Requests the block layer holds [default: the layer's own]
    #[arg(long, value_name = "N", requires = "scheduler")]
    pub nr_requests: Option<u32>,
    /// Serve a device that is too fast to be delivered in time
    #[arg(long)]
    pub force: bool,
    /// Seed of the device's random stream
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// End when standard input does: when the program that started it is gone
    #[arg(long, hide = true)]
    pub until_eof: bool,
    /// Print the account as one JSON document
    #[arg(long)]
    pub json: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
}

/// `4096`, `512K`, `20G`: bytes, in powers of 1024.
fn bytes(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((i, c)) if c.is_ascii_alphabetic() => {
            let shift = match c.to_ascii_uppercase() {
                'K' => 10,
                'M' => 20,
                'G' => 30,
                'T' => 40,
                _ => return Err(format!("`{c}` is none of K, M, G, T")),
            };
            (&text[..i], shift)
        }
        _ => (text, 0),
    };
    let n: u64 = digits
        .parse()
        .map_err(|_| "write a number of bytes, for instance 512M or 20G".to_owned())?;
    n.checked_mul(1 << shift)
        .ok_or_else(|| "more than any disk has".to_owned())
}

/// Arguments of `check-worlds`.
#[derive(Args, Debug)]
pub struct CheckWorlds {
    /// Workloads with their parameters (fs-mark:files=100,size=16KiB) [default: seven, two minutes]
    pub workloads: Vec<String>,
    /// Modelled device
    #[arg(
        long,
        short,
        value_name = "DEVICE",
        default_value = "hdd:hitachi-7k200"
    )]
    pub device: String,
    /// Scheduler of the kernel on the loop device [default: the one in force]
    #[arg(long, short, value_name = "NAME")]
    pub scheduler: Option<String>,
    /// Size of the disk, with K, M, G or T
    #[arg(long, value_name = "BYTES", value_parser = bytes, default_value = "4G")]
    pub size: u64,
    /// Changes to the simulated machine (memory=2G,cores=2,without=readahead); it has the memory
    /// and the cores of this one
    #[arg(long, value_name = "OPTIONS", default_value = "")]
    pub machine: String,
    /// Straight on a loop device over a file, without the modelled disk: reported, not judged
    #[arg(long)]
    pub raw: bool,
    /// Keep the kernel's block traces in this directory, which is made if it is not there
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub keep: Option<PathBuf>,
    /// Seed of every random stream
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Where to
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `verify-kernel`.
#[derive(Args, Debug)]
pub struct VerifyKernel {
    /// mq-deadline, kyber or bfq [default: all that the kernel has]
    pub schedulers: Vec<String>,
    /// Batches of each kind; each is submitted twice
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Seed of the batches
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON document
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Print a document in Markdown: docs/fidelity.md is made by it
    #[arg(long)]
    pub markdown: bool,
    /// With --markdown: replay recorded decisions, too, of all files in DIR and DIR/mq
    #[arg(long, value_name = "DIR", requires = "markdown", value_hint = ValueHint::DirPath)]
    pub recorded: Option<PathBuf>,
    /// Where to
    #[command(flatten)]
    pub output: Output,
}
