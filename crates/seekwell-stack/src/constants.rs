//! All constants of the kernel model, one value per kernel, with the origin of each value. No
//! constant depends on a scheduler.
//!
//! An origin such as "4.0 text" means that the behaviour was read in the sources of kernel 4.0 and
//! described in words. `Estimate` means that this constant was not measured.

use seekwell_core::Era;

/// The origin of a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From documentation, from source code, or counted on a running kernel.
    Source(&'static str),
    /// An estimate. The text gives the reasoning.
    Estimate(&'static str),
}

/// One row of the table of constants.
#[derive(Clone, Copy, Debug)]
pub struct Constant {
    /// Name of the constant. The name ends with the unit.
    pub name: &'static str,
    /// Values for the kernels 2.6.25, 3.4, 4.0 and 6.x, in this order.
    pub by_kernel: [u64; 4],
    /// Origin of the values.
    pub origin: Origin,
}

macro_rules! constants {
    ($($(#[doc = $doc:literal])+ $name:ident: [$a:expr, $b:expr, $c:expr, $d:expr], $origin:expr;)*) => {
        /// All constants of one kernel.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Constants {
            $($(#[doc = $doc])+ pub $name: u64,)*
        }
        /// All constants of all kernels.
        pub const CONSTANTS: &[Constant] = &[
            $(Constant { name: stringify!($name), by_kernel: [$a, $b, $c, $d], origin: $origin },)*
        ];
        impl Constants {
            fn column(i: usize) -> Self {
                Constants { $($name: [$a, $b, $c, $d][i],)* }
            }
        }
    };
}

use Origin::{Estimate, Source};

const MS: u64 = 1_000_000;

constants! {
    /// Fraction of dirtyable memory above which background writeback starts, percent.
    dirty_background_percent: [5, 10, 10, 10], Source("Documentation/sysctl/vm.txt of each kernel");
    /// Fraction of dirtyable memory at which tasks that dirty pages are throttled, percent.
    dirty_limit_percent: [10, 20, 20, 20], Source("Documentation/sysctl/vm.txt of each kernel");
    /// Period of the flusher thread, ns.
    dirty_writeback_ns: [5000 * MS, 5000 * MS, 5000 * MS, 5000 * MS], Source("vm.dirty_writeback_centisecs, default 500");
    /// Age at which dirty data are written back, ns.
    dirty_expire_ns: [30_000 * MS, 30_000 * MS, 30_000 * MS, 30_000 * MS], Source("vm.dirty_expire_centisecs, default 3000");
    /// Tasks over the dirty limit write back pages themselves (1), or are only slowed down (0).
    dirtier_writes: [1, 0, 0, 0], Source("IO-less dirty throttling, LWN 456904, merged in 3.2");
    /// Minimum number of pages written per visit to an inode.
    visit_pages: [1024, 1024, 1024, 1024], Source("MAX_WRITEBACK_PAGES; 3.4 and 4.0 text");
    /// Whether one visit to an inode may write as much as the device writes in half a second (1).
    /// The amount is rounded down to a multiple of `visit_pages`.
    visit_by_bandwidth: [0, 1, 1, 1], Source("3.4 text, writeback chunk");
    /// Number of parts of the dirty limit. One visit to an inode writes at most one part, or what
    /// the device writes in half a second, and then up to `visit_pages` more. 0: no such limit.
    visit_limit_parts: [0, 0, 0, 8], Source("DIRTY_SCOPE; 6.12 with 478 MiB: 12 MiB per visit, with 508 MiB: 16 MiB; older kernels were not compared");
    /// If dirty pages are contiguous, ext4 extends a visit to at most this number of pages.
    visit_run_pages: [0, 32_768, 0, 0], Source("ext4 max_writeback_mb_bump = 128, until 3.11");
    /// Time for which the flusher writes before it checks the dirty thresholds again, ns.
    batch_ns: [100 * MS, 100 * MS, 100 * MS, 100 * MS], Source("3.4 text: HZ / 10 per batch");
    /// Read-ahead window, pages.
    readahead_pages: [32, 32, 32, 32], Source("read_ahead_kb, default 128");
    /// Largest request that is read in one piece although it exceeds the read-ahead window, pages.
    readahead_request_pages: [32, 32, 32, 320], Source("bdi io_pages, since 4.10");
    /// Whether a window whose first page is its mark is read together with the next window.
    readahead_joined: [1, 1, 1, 0], Source("3.4 text; not on 6.18: reads of 256 KiB, tests/facts");
    /// Whether a miss on the page directly after the last window continues the read-ahead, even if
    /// the program did not read the page before.
    readahead_resumed: [1, 1, 1, 0], Source("on-demand read-ahead; not on 6.18, where a read every 16 KiB from 0 on takes 390 requests for 400: counted, effects");
    /// Whether a read counts as sequential if it starts at the page after the previous read, or one
    /// page later (1). With 0, it must start at the last page that was read, or one page later.
    readahead_prev_behind: [0, 0, 0, 1], Source("filemap_read, 5.12; 6.18: a page of every two from 1 MiB on takes 201 requests for 400, counted: effects");
    /// Whether cached pages directly before a missing page indicate a sequential stream. 0: never.
    /// 1: if there is at least one such page. 2: if there are more such pages than the read
    /// requests.
    readahead_context: [0, 1, 2, 2], Source("context readahead, 2.6.31; more conservative, 2cad40180197 in 3.12; 6.18: pages counted with mincore(2)");
    /// Largest bio of file data read, pages.
    read_bio_pages: [128, 128, 256, 256], Source("max_sectors_kb 512; BIO_MAX_PAGES 256; 6.18: bios of 1 MiB counted");
    /// Maximum number of folios in a bio of written file data.
    bio_vecs: [128, 128, 256, 256], Source("the same; BIO_MAX_VECS 256");
    /// Largest folio in the page cache of a file, pages. write() makes folios as large as the data
    /// of one call. Read-ahead makes folios four times larger with each window.
    folio_pages: [1, 1, 1, 512], Source("ext4 large folios, 6.16; requests of 6.18 by size of the call: tests/facts");
    /// Increase of the folio order from one read-ahead window to the next.
    folio_growth_order: [0, 0, 0, 2], Source("large folios for readahead, LWN 893512; 6.18: tests/facts");
    /// Whether write() waits for a page under writeback.
    stable_pages: [0, 1, 0, 0], Source("3.0 to 3.8; LWN 528031");
    /// The time from which tasks can again change a metadata block that is being logged. 1: after
    /// the log writes. 2: after the ordered data and the log writes. 3: when the log write of this
    /// block ends.
    shadow_rule: [1, 2, 3, 3], Source("3.4 and 4.0 text, jbd2 commit");
    /// Whether the kernel's usual file system allocates blocks at writeback instead of in write().
    delayed_allocation: [0, 1, 1, 1], Source("ext4(5), delalloc");
    /// Whether ext4 puts delayed data into unwritten blocks. The blocks are converted after the
    /// data have reached the disk, and no commit waits for them.
    unwritten_buffered: [0, 0, 0, 1], Source("dioread_nolock, the default since 5.6; ext4(5)");
    /// Whether one plug covers a whole batch of inodes, instead of one plug per inode.
    plug_batch: [0, 0, 0, 1], Source("writeback: plug writeback at a high level, 4.3");
    /// Whether the kernel's usual file system flushes the drive's cache.
    barriers: [0, 1, 1, 1], Source("ext3: barrier=0; ext4: barrier=1");
    /// Whether a flush is a barrier, as in early 2.6 kernels: no request may pass it.
    hard_barriers: [1, 0, 0, 0], Source("FLUSH/FUA replaced barriers in 2.6.37; LWN 400541");
    /// Journal commit interval, ns.
    commit_interval_ns: [5000 * MS, 5000 * MS, 5000 * MS, 5000 * MS], Source("ext4(5), commit=5");
    /// Size of the journal in blocks of 4 KiB, on a file system of at least 100 GB.
    journal_blocks: [32_768, 32_768, 32_768, 262_144], Source("mke2fs(8); e2fsprogs 1.43.2 and later up to 1 GiB");
    /// Best-effort I/O priority level of the journal thread, 0 (highest) to 7.
    journal_prio: [4, 3, 3, 3], Source("journal_ioprio=3, ext4(5); plain thread before");
    /// Whether writes of fsync and of the journal are marked SYNC.
    sync_marked: [0, 1, 1, 1], Source("WRITE_SYNC; 3.4 and 4.0 text");
    /// Whether the writes of fsync and of the journal are also marked NOIDLE.
    noidle_marked: [0, 1, 1, 1], Source("WRITE_SYNC = SYNC + NOIDLE until 4.9; SYNC without REQ_IDLE since");
    /// Whether the journal's writes are marked NOIDLE. Newer kernels do not mark them, because a
    /// journal write is usually followed by another.
    journal_noidle: [0, 1, 1, 0], Source("jbd2: REQ_SYNC | REQ_IDLE since 6.8 and in stable 6.1 and 6.12; rq-qos rule 5");
    /// Whether the flusher's writes that no task waits for are marked BACKGROUND.
    background_marked: [0, 0, 0, 1], Source("REQ_BACKGROUND, wbc_to_write_flags, 4.10 and later");
    /// Whether reads of directories and inodes are marked META.
    meta_marked: [1, 1, 1, 1], Source("ext4_bread: REQ_META");
    /// Whether reads of directories and inodes are also marked PRIO.
    prio_marked: [0, 1, 1, 1], Source("REQ_PRIO, 3.1 and later");
    /// Whether metadata writes to home locations are marked META and PRIO.
    home_marked: [0, 0, 1, 1], Source("BH_Meta and BH_Prio, 3.11 and later; WM, WSM in tests/facts");
    /// Whether journal blocks and records are marked META.
    journal_marked: [0, 0, 0, 1], Source("WSM of jbd2 counted on 6.18: tests/facts");
    /// Whether reads of bitmaps are marked META and PRIO.
    bitmaps_marked: [0, 0, 1, 1], Source("4.0 text");
    /// Whether file read-ahead is marked RAHEAD.
    rahead_marked: [0, 0, 0, 1], Source("readahead bios carry REQ_RAHEAD since 4.9");
    /// Whether fsync holds the inode's lock while it waits for the commit.
    fsync_locks: [1, 1, 0, 0], Source("3.4 text; ext4_sync_file dropped i_mutex in 3.12");
    /// Number of inode table blocks that are read together.
    inode_readahead_blocks: [1, 32, 32, 32], Source("ext4(5), inode_readahead_blks");
    /// Bytes of an inode on the disk.
    inode_bytes: [128, 256, 256, 256], Source("mke2fs.conf");
    /// Number of block groups whose bitmaps and inode tables are stored together (flex_bg).
    flex_groups: [1, 16, 16, 16], Source("mke2fs(8), flex_bg -G 16");
    /// Largest number of blocks in one allocation.
    alloc_blocks: [1, 2048, 2048, 2048], Source("mballoc, 8 MiB");
    /// Largest file that is allocated from a pool of its CPU, blocks.
    small_file_blocks: [0, 16, 16, 16], Source("mb_stream_req = 16, ext4(5)");
    /// Size of a CPU's pool for small files, blocks.
    pool_blocks: [0, 512, 512, 512], Source("mb_group_prealloc = 512, ext4(5)");
    /// Which closed files get exactly the blocks that they need, found by a search for each file.
    /// 0: none. 1: all. 2: files that are too large for a pool.
    closed_exact: [0, 1, 1, 2], Source("ext4: avoid group preallocation for closed files, 2.6.32, undone for small ones in 6.1; 6.12: large files of a batch lie end to end, docs/guest-evidence.md");
    /// Number of free chunks that this search (`closed_exact`) examines after it found one that is
    /// long enough.
    scan_chunks: [0, 10, 10, 10], Source("mb_min_to_scan, Documentation/filesystems/ext4");
    /// First reservation window of a file (ext3), blocks.
    window_first_blocks: [8, 8, 8, 8], Source("ext3 reservation, EXT3_DEFAULT_RESERVE_BLOCKS");
    /// Largest reservation window of a file (ext3), blocks.
    window_max_blocks: [1024, 1024, 1024, 1024], Source("ext3 reservation, EXT3_MAX_RESERVE_BLOCKS");
    /// Clock ticks per second. The times of a file change at most once per tick.
    hz: [250, 250, 250, 250], Source("Debian, Ubuntu and SUSE kernels");
    /// Shortest pause of a task that is throttled for dirty pages, ns.
    pause_min_ns: [0, 10 * MS, 10 * MS, 10 * MS], Source("3.4 text; LWN 456904");
    /// Longest pause of a task that is throttled for dirty pages, ns.
    pause_max_ns: [100 * MS, 200 * MS, 200 * MS, 200 * MS], Source("MAX_PAUSE; congestion_wait(HZ/10) before");
    /// Period over which the bandwidth is averaged, ns.
    bandwidth_period_ns: [3000 * MS, 3000 * MS, 3000 * MS, 3000 * MS], Source("3.4 text: 3 s");
    /// Interval between two updates of the bandwidth, ns.
    bandwidth_step_ns: [200 * MS, 200 * MS, 200 * MS, 200 * MS], Source("3.4 text: 200 ms");
    /// Bandwidth that is assumed at the start, pages per second.
    bandwidth_first_pages: [25_600, 25_600, 25_600, 25_600], Source("3.4 text: INIT_BW = 100 MB/s");
    /// Number of pages that a task dirties before it first checks the dirty limits.
    first_check_pages: [32, 32, 32, 32], Source("ratelimit of balance_dirty_pages, 3.2 and later: 128 KiB");
    /// Difference between misses and hits of mapped reads above which the accesses count as random.
    mapped_misses: [100, 100, 100, 100], Source("MMAP_LOTSAMISS");
    /// Largest piece of a read after posix_fadvise(RANDOM), pages.
    random_read_pages: [512, 512, 512, 512], Source("force_page_cache_readahead: 2 MiB");
    /// Largest bio of a direct transfer (O_DIRECT), pages.
    direct_bio_pages: [256, 256, 256, 256], Source("BIO_MAX_PAGES");
    /// Largest discard, sectors.
    discard_sectors: [16_384, 16_384, 16_384, 16_384], Estimate("8 MiB, as many drives say");
    /// Number of metadata blocks per descriptor block of the journal.
    descriptor_blocks: [250, 250, 250, 250], Estimate("4 KiB of tags of 8 to 16 bytes: 254 to 510");
    /// Number of blocks that a checkpoint of the journal writes at once.
    checkpoint_blocks: [64, 64, 64, 64], Source("JBD2_NR_BATCH");
    /// Number of inodes per block group.
    group_inodes: [8192, 8192, 8192, 8192], Source("mke2fs.conf: inode_ratio = 16384");
    /// Number of clean pages that are never evicted, so that pages read ahead survive until they
    /// are used, even if all other pages are dirty.
    kept_pages: [160, 160, 160, 160], Estimate("five windows");
    /// CPU time per entry of a directory listing, ns.
    entry_ns: [100, 100, 100, 100], Estimate("0.1 us");
    /// Memory not available to the page cache, MiB.
    fixed_use_mib: [350, 800, 800, 900], Estimate("a desktop: of 4 GiB, 3.0-3.3 GiB remain");
    /// CPU time of a system call without further work, ns.
    call_ns: [600, 500, 400, 400], Estimate("0.5-1 us on machines of each time");
    /// CPU time to copy a page, ns.
    copy_page_ns: [500, 400, 350, 250], Estimate("0.25-0.5 us");
    /// CPU time to create a page of the cache in write(), ns. It covers memory, tree, lists, the
    /// reservation of a block and a journal handle. It does not cover the copy of the data.
    page_new_ns: [1600, 1500, 1300, 1100], Estimate("1.7 times the time of call and copy: on 6.18 \
                                                     with ext4 and 4 KiB per call, a new page \
                                                     took 5.1 us and an existing page 1.9 us");
    /// CPU time to drop one page of a removed file, ns.
    page_drop_ns: [700, 600, 500, 400], Estimate("0.65 times the time of call and copy: unlink() \
                                                  took 1.2 us per page in the same trial");
    /// CPU time to look up a name, ns.
    lookup_ns: [1000, 800, 700, 600], Estimate("open and close of a cached file: 1-2 us");
    /// CPU time to make or remove a file, ns.
    create_ns: [12_000, 10_000, 9_000, 8_000], Estimate("5-15 us");
    /// CPU time to make a directory or to rename, ns.
    mkdir_ns: [25_000, 20_000, 18_000, 15_000], Estimate("10-30 us");
    /// CPU time to build and submit one bio, ns.
    bio_ns: [2000, 1500, 1500, 1000], Estimate("1-2 us");
    /// CPU time of a thousand instructions of an I/O scheduler, ns.
    instructions_ns: [2000, 1500, 1500, 1000], Estimate("kernel code with its cache misses: an \
                                                         instruction in three cycles at 3 GHz; \
                                                         slower cores in earlier eras, as for \
                                                         bio_ns");
    /// CPU time of a page fault, ns.
    fault_ns: [1000, 700, 600, 500], Estimate("0.5-1 us");
    /// CPU time after which a task loses its core if other tasks want it, ns. Checked between
    /// calls.
    slice_ns: [100 * MS, 4 * MS, 4 * MS, 4 * MS], Estimate("O(1) scheduler 100 ms; CFS and EEVDF \
                                                            look at each clock tick, HZ 250: on \
                                                            6.18, each of two or four readers of \
                                                            cached files on one core runs for 3.9 \
                                                            ms at a time");
    /// Largest amount of CPU time by which a waking task may be behind the others, ns.
    sleeper_credit_ns: [20 * MS, 6 * MS, 6 * MS, 0], Source("CFS: sched_latency of 2.6.24; half of it with GENTLE_FAIR_SLEEPERS, two to four cores; EEVDF: none");
    /// A waking task preempts a running task that is ahead by more than this CPU time, ns.
    wakeup_granularity_ns: [10 * MS, 2 * MS, 2 * MS, 700_000], Source("kernel.sched_wakeup_granularity_ns \
                                                                       of 2.6.24, and of 3.4 with \
                                                                       two to four cores; EEVDF \
                                                                       of 6.18: a running task is \
                                                                       not preempted for 0.7 ms");
}

/// vm.dirty_background_ratio and vm.dirty_ratio of 2.6.18.
const RATIOS_2_6_18: (u64, u64) = (10, 40);

impl Constants {
    /// Returns the constants of a kernel.
    pub fn for_era(era: Era) -> Self {
        let mut c = Self::column(match era {
            Era::K2_6_18 | Era::K2_6_24 => 0,
            Era::K3_4 => 1,
            Era::K4_0 => 2,
            Era::Mq6_1 | Era::Mq | Era::Mq6_16 | Era::Mq6_18 => 3,
        });
        // ext4 has large folios since 6.16.
        if era.is_mq() && era < Era::Mq6_16 {
            (c.folio_pages, c.readahead_joined, c.readahead_resumed) = (1, 1, 1);
        }
        if era == Era::K2_6_18 {
            (c.dirty_background_percent, c.dirty_limit_percent) = RATIOS_2_6_18;
        }
        c
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_name_no_scheduler_and_have_an_origin() {
        let schedulers = [
            "cfq",
            "deadline",
            "noop",
            "bfq",
            "kyber",
            "anticipatory",
            "row",
            "sio",
            "vr_",
            "zen",
            "fiops",
            "adios",
            "elevator",
        ];
        for c in CONSTANTS {
            let origin = match c.origin {
                Origin::Source(o) | Origin::Estimate(o) => o,
            };
            assert!(origin.len() > 5, "{}: where does it come from?", c.name);
            let text = format!("{} {origin}", c.name).to_lowercase();
            for s in schedulers {
                let words = || text.split(|c: char| !c.is_ascii_alphanumeric());
                assert!(words().all(|w| w != s), "{}: {s}", c.name);
            }
        }
        assert!(CONSTANTS.len() > 40);
    }

    /// Collects the source files of the crate, without tests.
    fn sources(dir: &std::path::Path, out: &mut Vec<(String, String)>) {
        for e in std::fs::read_dir(dir).expect("a directory of sources") {
            let path = e.expect("an entry").path();
            let name = path.to_string_lossy().into_owned();
            if path.is_dir() {
                if !name.ends_with("tests") {
                    sources(&path, out);
                }
            } else if !name.ends_with("constants.rs") {
                out.push((name, std::fs::read_to_string(&path).expect("a source")));
            }
        }
    }

    /// Names of numbers that do not differ between kernels: identifiers and on-disk formats.
    const SHAPES: &[&str] = &[
        "NONE",
        "NIL",
        "NEVER",
        "FREE",
        "EMPTY",
        "NO_PAGES",
        "PLACES",
        "KINDS",
        "NEAR",
        "NO_TAG",
        "K",
        "LEAF",
        "NODE",
        "SLOT_BITS",
        "CACHED_MAX",
        "DEVICE_FD",
        "DEVICE_DIRECT_FD",
        "BDEV",
        "ROOT",
        "GROUP",
        "BLOCK_SECTORS",
        "SUPERBLOCK",
        "ALIGN",
        "STEPS",
        "BUDDY_MAX_ORDER",
        "FIRST_USER_TASK",
        "FLUSHER",
        "JOURNAL",
        "CONVERTER",
        "PDFLUSH",
        "PDFLUSH_PERIODIC",
        "DEVICE",
        "DEVICE_DIRECT",
    ];

    fn constants_outside_the_table(text: &str) -> Vec<String> {
        let flags = text
            .find("mod flag {")
            .map_or(0..0, |at| at..at + text[at..].find("\n}").unwrap_or(0));
        let lines = text
            .match_indices("const ")
            .filter(|m| !flags.contains(&m.0));
        let names = lines.filter_map(|(at, _)| {
            let (name, rest) = text[at + 6..].split_once(':')?;
            let upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
            let is = !name.is_empty() && name.chars().all(upper) && rest.contains(" = ");
            is.then(|| name.to_owned())
        });
        names.filter(|n| !SHAPES.contains(&n.as_str())).collect()
    }

    #[test]
    fn kernel_constants_are_only_in_the_table() {
        let mut all = Vec::new();
        let src = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        sources(&src, &mut all);
        assert!(all.len() > 20);
        for (name, text) in &all {
            let code = text
                .split("#[cfg(test)]\nmod tests")
                .next()
                .unwrap_or_default();
            assert_eq!(
                constants_outside_the_table(code),
                Vec::<String>::new(),
                "{name}: belongs into the table"
            );
        }
        // This test must find such numbers.
        assert_eq!(
            constants_outside_the_table("    const WAIT_NS: u64 = 5;\nconst GROUP: u32 = 1;"),
            ["WAIT_NS"]
        );
    }

    #[test]
    fn constants_follow_the_kernel_version() {
        let of = |e| Constants::for_era(e);
        assert_eq!(of(Era::K2_6_18).dirty_limit_percent, 40);
        assert_eq!(of(Era::K2_6_24).dirty_limit_percent, 10);
        assert_eq!(of(Era::K3_4).stable_pages, 1);
        assert_eq!(of(Era::K4_0).stable_pages, 0);
        // Since 6.16, folios are larger and windows are read separately.
        let mut before = of(Era::Mq6_18);
        (before.folio_pages, before.readahead_joined) = (1, 1);
        before.readahead_resumed = 1;
        assert_eq!([of(Era::Mq6_1), of(Era::Mq)], [before.clone(), before]);
        assert_eq!(of(Era::Mq6_16), of(Era::Mq6_18));
    }
}
