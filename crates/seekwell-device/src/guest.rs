//! The parameters of the disk of a virtual machine (guest). This crate only declares the
//! parameters. The crate of the block layer builds the disk, because a complete block layer with a
//! scheduler (that of the host) serves the guest's requests.

use crate::error::ParamError;
use crate::preset::{Def, Dim, Preset, nanos};
use crate::raid::text;
use crate::spec;
use seekwell_core::Nanos;

/// Every parameter of the kind `virtual`.
#[rustfmt::skip]
pub static DEFS: &[Def] = &[
    Def::new("over", Dim::Text("device"), Some("hdd:hitachi-7k500"), (0.0, 0.0),
        "the host's device; put an array in parentheses"),
    Def::new("host_scheduler", Dim::Text("scheduler, with :tunable=value"), Some("mq-deadline"),
        (0.0, 0.0), "scheduler of the host's queue, or of its array's members"),
    Def::new("depth", Dim::Count("requests"), Some("256"), (1.0, 4096.0),
        "requests per ring: 128 before QEMU 5.0, 256 since; 1: emulated IDE"),
    Def::new("queues", Dim::Count("queues"), Some("1"), (1.0, 64.0),
        "number of rings, which the guest sees as hardware queues"),
    Def::new("threads", Dim::Count("threads"), None, (1.0, 64.0),
        "number of the host's I/O threads; absent: one per ring (iothread-vq-mapping of QEMU)"),
    Def::new("exit", Dim::Time, Some("10us"), (0.0, 10.0),
        "time from the guest's notification to the host's thread"),
    Def::new("irq", Dim::Time, Some("10us"), (0.0, 10.0),
        "time from the host's completion to the guest's interrupt"),
    Def::new("thread", Dim::Time, Some("8us"), (0.0, 10.0),
        "CPU time of the I/O thread per request; requests are handled one after another"),
    Def::new("cache", Dim::Word(&["none", "writeback", "writethrough", "directsync", "unsafe"]),
        Some("none"), (0.0, 0.0), "QEMU's cache mode"),
    Def::new("host_memory", Dim::Bytes, Some("1024MiB"), (4096.0, 1e13),
        "size of the host's page cache for this disk, in the cached modes"),
    Def::new("copy", Dim::Rate, Some("5000"), (1.0, 1e6),
        "rate of copies to and from the page cache"),
    Def::new("dirty_background", Dim::Real("ratio"), Some("0.1"), (0.0, 1.0),
        "dirty fraction of the page cache at which the host writes back"),
    Def::new("dirty_limit", Dim::Real("ratio"), Some("0.2"), (0.001, 1.0),
        "dirty fraction of the page cache at which writers wait"),
    Def::new("dirty_expire", Dim::Time, Some("30s"), (1.0, 1e7),
        "age at which dirty data are written back"),
    Def::new("format", Dim::Word(&["raw", "qcow2", "thin"]), Some("raw"), (0.0, 0.0),
        "raw: a volume or a contiguous file; the other formats displace chunks"),
    Def::new("chunk", Dim::Bytes, Some("64KiB"), (4096.0, 1e9),
        "cluster of qcow2, chunk of a thin volume"),
    Def::new("aged", Dim::Real("ratio"), Some("0"), (0.0, 1.0),
        "probability that a chunk is displaced"),
    Def::new("l2_tables", Dim::Count("tables"), Some("16"), (1.0, 65_536.0),
        "qcow2: number of mapping tables in memory; each covers 512 MiB"),
    Def::new("reports", Dim::Word(&["rotating", "flash"]), Some("rotating"), (0.0, 0.0),
        "whether the guest sees a rotating medium; virtio-blk reports one by default"),
    Def::new("max_transfer", Dim::Bytes, Some("1MiB"), (4096.0, 64e6),
        "largest request"),
    Def::new("neighbours", Dim::Text("programs joined by +"), Some(""), (0.0, 0.0),
        "other programs on the same host device: random-reader, sequential-reader, random-writer"),
    Def::new("neighbour_depth", Dim::Count("requests"), Some("1"), (1.0, 1024.0),
        "number of requests that each neighbour keeps in flight"),
];

/// The cache modes of QEMU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheMode {
    /// O_DIRECT. A flush of the guest causes a flush on the host.
    None,
    /// Uses the page cache of the host. A flush of the guest writes the dirty pages back.
    Writeback,
    /// Uses the page cache of the host for reads. Every write reaches the medium before it
    /// completes.
    Writethrough,
    /// O_DIRECT. A flush follows every write.
    Directsync,
    /// Uses the page cache of the host. Flushes do nothing.
    Unsafe,
}

/// Mapping of the guest's sectors to sectors of the host's device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A guest sector has the same number on the host's device.
    Raw,
    /// Clusters can be displaced. Mapping tables tell where each cluster is.
    Qcow2,
    /// Chunks of a thin volume can be displaced.
    Thin,
}

/// Another program that runs on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbour {
    /// Reads 4 KiB at random addresses.
    RandomReader,
    /// Reads 128 KiB sequentially.
    SequentialReader,
    /// Writes 4 KiB at random addresses.
    RandomWriter,
}

/// The parameters of a guest's disk, converted to typed values.
#[derive(Debug, Clone)]
pub struct GuestParams {
    /// Preset name.
    pub name: String,
    /// Specification of the host's device.
    pub over: String,
    /// Scheduler of the host, with its tunables as in `mq-deadline:fifo_batch=1`. `None`: the host adds
    /// no queue of its own.
    pub host_scheduler: Option<String>,
    /// Number of requests that fit into one ring.
    pub depth: u32,
    /// Number of rings.
    pub queues: u32,
    /// Number of the host's I/O threads.
    pub threads: u32,
    /// Time from the guest to the host, per request.
    pub exit: Nanos,
    /// Time from the host to the guest (interrupt), per completion.
    pub irq: Nanos,
    /// CPU time of the I/O thread per request.
    pub thread: Nanos,
    /// Cache mode.
    pub cache: CacheMode,
    /// Size of the host's page cache in 4 KiB pages.
    pub pages: u64,
    /// Time to copy a 4 KiB page.
    pub copy_page: Nanos,
    /// Limits of dirty pages in the host's page cache: (background, hard).
    pub dirty: (u64, u64),
    /// Age at which the host writes a dirty page back.
    pub expire: Nanos,
    /// Mapping of the guest's sectors.
    pub format: Format,
    /// Size of a cluster or chunk, in sectors.
    pub chunk: u64,
    /// Fraction of chunks that are displaced, 0 to 1.
    pub aged: f64,
    /// Number of mapping tables kept in memory.
    pub tables: usize,
    /// Whether the disk reports a rotating medium.
    pub rotational: bool,
    /// Maximum size of a request, in sectors.
    pub max_sectors: u32,
    /// Other programs on the host.
    pub neighbours: Vec<Neighbour>,
    /// Number of requests that each neighbour keeps in flight.
    pub neighbour_depth: u32,
}

impl GuestParams {
    /// Converts a preset of kind `virtual`.
    pub fn from_preset(p: &Preset) -> Result<Self, ParamError> {
        let pages = (p.num("host_memory")? / 4096.0) as u64;
        let (background, limit) = (p.num("dirty_background")?, p.num("dirty_limit")?);
        if background > limit {
            return Err(ParamError::new(
                "dirty_background",
                format!(
                    "background write-back would start at {background}, above the limit of {limit}"
                ),
                "make dirty_background at most dirty_limit",
            ));
        }
        let neighbour = |word: &str| match word {
            "random-reader" => Ok(Neighbour::RandomReader),
            "sequential-reader" => Ok(Neighbour::SequentialReader),
            "random-writer" => Ok(Neighbour::RandomWriter),
            _ => Err(ParamError::new(
                "neighbours",
                format!("there is no neighbour \"{word}\""),
                "use random-reader, sequential-reader or random-writer, joined by +",
            )),
        };
        let over = spec::bare(p.word("over")).to_owned();
        if over.is_empty() {
            return Err(ParamError::new(
                "over",
                "a guest's disk needs a host device",
                "write over=KIND:NAME",
            ));
        }
        Ok(GuestParams {
            name: p.name.clone(),
            over,
            host_scheduler: text(p, "host_scheduler"),
            depth: p.num("depth")? as u32,
            queues: p.num("queues")? as u32,
            threads: p.num_opt("threads").unwrap_or(p.num("queues")?) as u32,
            exit: nanos(p.num("exit")?),
            irq: nanos(p.num("irq")?),
            thread: nanos(p.num("thread")?),
            cache: match p.word("cache") {
                "writeback" => CacheMode::Writeback,
                "writethrough" => CacheMode::Writethrough,
                "directsync" => CacheMode::Directsync,
                "unsafe" => CacheMode::Unsafe,
                _ => CacheMode::None,
            },
            pages: pages.max(64),
            copy_page: Nanos((4096e3 / p.num("copy")?) as u64),
            dirty: (
                (pages as f64 * background) as u64,
                ((pages as f64 * limit) as u64).max(8),
            ),
            expire: nanos(p.num("dirty_expire")?),
            format: match p.word("format") {
                "qcow2" => Format::Qcow2,
                "thin" => Format::Thin,
                _ => Format::Raw,
            },
            chunk: (p.num("chunk")? / 512.0) as u64,
            aged: p.num("aged")?,
            tables: p.num("l2_tables")? as usize,
            rotational: p.word("reports") == "rotating",
            max_sectors: (p.num("max_transfer")? / 512.0) as u32,
            neighbours: spec::split(p.word("neighbours"), '+')
                .into_iter()
                .filter(|w| !w.is_empty())
                .map(neighbour)
                .collect::<Result<_, _>>()?,
            neighbour_depth: p.num("neighbour_depth")? as u32,
        })
    }
}
