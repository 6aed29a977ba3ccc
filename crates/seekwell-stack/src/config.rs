//! What is modelled: kernel, memory, cores, file system, and switches that take a mechanism out.

use seekwell_core::Era;

/// CPU time of what the kernel does for a program, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuCosts {
    /// Any call.
    pub call_ns: u64,
    /// Copying one 4 KiB page.
    pub copy_page_ns: u64,
    /// Building and submitting one bio.
    pub bio_ns: u64,
    /// Round-robin slice when more tasks want to run than there are cores.
    pub slice_ns: u64,
}

/// A modelled machine above its disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Kernel.
    pub era: Era,
    /// Cores.
    pub cores: u16,
    /// CPU costs.
    pub cpu: CpuCosts,
    /// Batches of bios are plugged. Off: an ablation.
    pub plugging: bool,
    /// Keep [`crate::Mark`]s.
    pub marks: bool,
}

impl Config {
    /// A machine of a kernel's time.
    pub fn new(era: Era) -> Self {
        Config {
            era,
            cores: 4,
            cpu: CpuCosts {
                call_ns: 500,
                copy_page_ns: 300,
                bio_ns: 1_000,
                slice_ns: 4_000_000,
            },
            plugging: true,
            marks: true,
        }
    }
}
