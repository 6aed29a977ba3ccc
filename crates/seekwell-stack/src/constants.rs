//! Every constant of the model, by kernel, with where it comes from. None names a scheduler or
//! depends on one.
//!
//! "4.0 text" and the like mean that the behaviour was read in that kernel's sources and written
//! down in words; `Estimate` means that nobody measured it for this purpose.

use seekwell_core::Era;

/// Where a constant comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Documentation, source text or a running kernel.
    Source(&'static str),
    /// Fitted: on what, and the figures.
    FittedOn(&'static str),
    /// Judgement.
    Estimate(&'static str),
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Constant {
    /// Name; its unit comes last.
    pub name: &'static str,
    /// For 2.6.25, 3.4, 4.0 and 6.x.
    pub by_kernel: [u64; 4],
    /// Where it comes from.
    pub origin: Origin,
}

macro_rules! constants {
    ($($(#[doc = $doc:literal])+ $name:ident: [$a:expr, $b:expr, $c:expr, $d:expr], $origin:expr;)*) => {
        /// The constants of one kernel.
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
    /// Background writeback starts above this share of dirtyable memory, percent.
    dirty_background_percent: [5, 10, 10, 10], Source("Documentation/sysctl/vm.txt of each kernel");
    /// Dirtiers are held at this share of dirtyable memory, percent.
    dirty_limit_percent: [10, 20, 20, 20], Source("Documentation/sysctl/vm.txt of each kernel");
    /// Period of the flusher, ns.
    dirty_writeback_ns: [5000 * MS, 5000 * MS, 5000 * MS, 5000 * MS], Source("vm.dirty_writeback_centisecs, default 500");
    /// Age at which data are old, ns.
    dirty_expire_ns: [30_000 * MS, 30_000 * MS, 30_000 * MS, 30_000 * MS], Source("vm.dirty_expire_centisecs, default 3000");
    /// Dirtiers write themselves (1) or are only slowed (0).
    dirtier_writes: [1, 0, 0, 0], Source("IO-less dirty throttling, LWN 456904, merged in 3.2");
    /// Pages written in one visit to an inode, at least.
    visit_pages: [1024, 1024, 1024, 1024], Source("MAX_WRITEBACK_PAGES; 3.4 and 4.0 text");
    /// A visit also lasts half a second of measured bandwidth (1), rounded down to whole minima.
    visit_by_bandwidth: [0, 1, 1, 1], Source("3.4 text, writeback chunk");
    /// ext4 goes on in one visit while dirty pages are contiguous, up to this many pages.
    visit_run_pages: [0, 32_768, 0, 0], Source("ext4 max_writeback_mb_bump = 128, until 3.11");
    /// The flusher looks at the thresholds again after so much writing, ns.
    batch_ns: [100 * MS, 100 * MS, 100 * MS, 100 * MS], Source("3.4 text: HZ / 10 per batch");
    /// Read-ahead window, pages.
    readahead_pages: [32, 32, 32, 32], Source("read_ahead_kb, default 128");
    /// A request above the window is read whole, up to this many pages.
    readahead_request_pages: [32, 32, 32, 320], Source("bdi io_pages, since 4.10");
    /// A window whose first page is its mark and the next one are read as one.
    readahead_joined: [1, 1, 1, 0], Source("3.4 text; not on 6.18: reads of 256 KiB, tests/facts");
    /// An absent page right behind the last window goes on with it, be it the next that is read or
    /// not.
    readahead_resumed: [1, 1, 1, 0], Source("on-demand read-ahead; not on 6.18, where a read every 16 KiB from 0 on takes 390 requests for 400: counted, effects");
    /// What follows is told from the page behind the last read, not from its last one: a page may be
    /// left out.
    readahead_prev_behind: [0, 0, 0, 1], Source("filemap_read, 5.12; 6.18: a page of every two from 1 MiB on takes 201 requests for 400, counted: effects");
    /// Cached pages right before an absent one tell of a stream: 0 never, 1 if there is any, 2 if
    /// there are more than are asked for.
    readahead_context: [0, 1, 2, 2], Source("context readahead, 2.6.31; more conservative, 2cad40180197 in 3.12; 6.18: pages counted with mincore(2)");
    /// Largest bio of file data read, pages.
    read_bio_pages: [128, 128, 256, 256], Source("max_sectors_kb 512; BIO_MAX_PAGES 256; 6.18: bios of 1 MiB counted");
    /// Folios in a bio of file data written, at most.
    bio_vecs: [128, 128, 256, 256], Source("the same; BIO_MAX_VECS 256");
    /// Largest folio of a file's cache, pages: write() makes as large ones as a call fills, reading
    /// ahead four times as large ones with each window.
    folio_pages: [1, 1, 1, 512], Source("ext4 large folios, 6.16; requests of 6.18 by size of the call: tests/facts");
    /// Order by which folios grow from one window of read-ahead to the next.
    folio_growth_order: [0, 0, 0, 2], Source("large folios for readahead, LWN 893512; 6.18: tests/facts");
    /// write() waits for a page under writeback.
    stable_pages: [0, 1, 0, 0], Source("3.0 to 3.8; LWN 528031");
    /// Logged blocks stay blocked until: 1 their log writes ended; 2 ordered data and log writes
    /// ended; 3 each its own write ended.
    shadow_rule: [1, 2, 3, 3], Source("3.4 and 4.0 text, jbd2 commit");
    /// The usual file system allocates at writeback.
    delayed_allocation: [0, 1, 1, 1], Source("ext4(5), delalloc");
    /// ext4's delayed data go into unwritten blocks: converted when they are there, and no commit
    /// waits for them.
    unwritten_buffered: [0, 0, 0, 1], Source("dioread_nolock, the default since 5.6; ext4(5)");
    /// One plug over a whole batch of inodes, not one for each.
    plug_batch: [0, 0, 0, 1], Source("writeback: plug writeback at a high level, 4.3");
    /// The usual file system flushes the drive's cache.
    barriers: [0, 1, 1, 1], Source("ext3: barrier=0; ext4: barrier=1");
    /// Flushes are 2.6 barriers: nothing passes.
    hard_barriers: [1, 0, 0, 0], Source("FLUSH/FUA replaced barriers in 2.6.37; LWN 400541");
    /// Journal commit interval, ns.
    commit_interval_ns: [5000 * MS, 5000 * MS, 5000 * MS, 5000 * MS], Source("ext4(5), commit=5");
    /// Journal, blocks of 4 KiB, on a file system of 100 GB and more.
    journal_blocks: [32_768, 32_768, 32_768, 262_144], Source("mke2fs(8); e2fsprogs 1.43.2 and later up to 1 GiB");
    /// Best-effort level of the journal thread.
    journal_prio: [4, 3, 3, 3], Source("journal_ioprio=3, ext4(5); plain thread before");
    /// Writes of fsync and of the journal are marked sync.
    sync_marked: [0, 1, 1, 1], Source("WRITE_SYNC; 3.4 and 4.0 text");
    /// ... and NOIDLE.
    noidle_marked: [0, 1, 1, 1], Source("WRITE_SYNC = SYNC + NOIDLE until 4.9; SYNC without REQ_IDLE since");
    /// The journal's are not: more of them follow.
    journal_noidle: [0, 1, 1, 0], Source("jbd2: REQ_SYNC | REQ_IDLE since 6.8 and in stable 6.1 and 6.12; rq-qos rule 5");
    /// What flushers write and nobody waits for is marked BACKGROUND.
    background_marked: [0, 0, 0, 1], Source("REQ_BACKGROUND, wbc_to_write_flags, 4.10 and later");
    /// Reads of directories and inodes are marked META.
    meta_marked: [1, 1, 1, 1], Source("ext4_bread: REQ_META");
    /// ... and PRIO.
    prio_marked: [0, 1, 1, 1], Source("REQ_PRIO, 3.1 and later");
    /// Metadata written home are marked META and PRIO.
    home_marked: [0, 0, 1, 1], Source("BH_Meta and BH_Prio, 3.11 and later; WM, WSM in tests/facts");
    /// Journal blocks and records are marked META.
    journal_marked: [0, 0, 0, 1], Source("WSM of jbd2 counted on 6.18: tests/facts");
    /// Reads of bitmaps are marked as well.
    bitmaps_marked: [0, 0, 1, 1], Source("4.0 text");
    /// File read-ahead is marked RAHEAD.
    rahead_marked: [0, 0, 0, 1], Source("readahead bios carry REQ_RAHEAD since 4.9");
    /// fsync holds the inode's lock while it waits for the commit.
    fsync_locks: [1, 1, 0, 0], Source("3.4 text; ext4_sync_file dropped i_mutex in 3.12");
    /// Blocks of an inode table read together.
    inode_readahead_blocks: [1, 32, 32, 32], Source("ext4(5), inode_readahead_blks");
    /// Bytes of an inode on the disk.
    inode_bytes: [128, 256, 256, 256], Source("mke2fs.conf");
    /// Groups whose bitmaps and inode tables lie together.
    flex_groups: [1, 16, 16, 16], Source("mke2fs(8), flex_bg -G 16");
    /// Largest piece of one allocation, blocks.
    alloc_blocks: [1, 2048, 2048, 2048], Source("mballoc, 8 MiB");
    /// Files of at most so many blocks come from a pool per CPU.
    small_file_blocks: [0, 16, 16, 16], Source("mb_stream_req = 16, ext4(5)");
    /// Size of that pool's pieces, blocks.
    pool_blocks: [0, 512, 512, 512], Source("mb_group_prealloc = 512, ext4(5)");
    /// Closed files get just the blocks they need, found anew for each, not those of a pool.
    closed_exact: [0, 1, 1, 0], Source("ext4: avoid group preallocation for closed files, 2.6.32, undone for small ones in 6.1; 6.18: files of a batch lie end to end");
    /// Free chunks looked at for them once one is long enough.
    scan_chunks: [0, 10, 10, 10], Source("mb_min_to_scan, Documentation/filesystems/ext4");
    /// First and largest reservation window (ext3), blocks.
    window_first_blocks: [8, 8, 8, 8], Source("ext3 reservation, EXT3_DEFAULT_RESERVE_BLOCKS");
    /// Largest reservation window, blocks.
    window_max_blocks: [1024, 1024, 1024, 1024], Source("ext3 reservation, EXT3_MAX_RESERVE_BLOCKS");
    /// Ticks a second (times of files change with the tick).
    hz: [250, 250, 250, 250], Source("Debian, Ubuntu and SUSE kernels");
    /// Shortest and longest pause of a slowed dirtier, ns.
    pause_min_ns: [0, 10 * MS, 10 * MS, 10 * MS], Source("3.4 text; LWN 456904");
    /// Longest pause, ns.
    pause_max_ns: [100 * MS, 200 * MS, 200 * MS, 200 * MS], Source("MAX_PAUSE; congestion_wait(HZ/10) before");
    /// Bandwidth is averaged over this, ns.
    bandwidth_period_ns: [3000 * MS, 3000 * MS, 3000 * MS, 3000 * MS], Source("3.4 text: 3 s");
    /// Bandwidth is updated this often, ns.
    bandwidth_step_ns: [200 * MS, 200 * MS, 200 * MS, 200 * MS], Source("3.4 text: 200 ms");
    /// Bandwidth assumed at first, pages a second.
    bandwidth_first_pages: [25_600, 25_600, 25_600, 25_600], Source("3.4 text: INIT_BW = 100 MB/s");
    /// Pages after which a dirtier first looks at the limits.
    first_check_pages: [32, 32, 32, 32], Source("ratelimit of balance_dirty_pages, 3.2 and later: 128 KiB");
    /// Misses of mapped reads, less hits, above which they count as random.
    mapped_misses: [100, 100, 100, 100], Source("MMAP_LOTSAMISS");
    /// Largest piece of a read after posix_fadvise(RANDOM), pages.
    random_read_pages: [512, 512, 512, 512], Source("force_page_cache_readahead: 2 MiB");
    /// Largest bio of a direct transfer, pages.
    direct_bio_pages: [256, 256, 256, 256], Source("BIO_MAX_PAGES");
    /// Largest discard, sectors.
    discard_sectors: [16_384, 16_384, 16_384, 16_384], Estimate("8 MiB, as many drives say");
    /// Metadata blocks that a descriptor block of the journal names.
    descriptor_blocks: [250, 250, 250, 250], Estimate("4 KiB of tags of 8 to 16 bytes: 254 to 510");
    /// Blocks a checkpoint of the journal writes at once.
    checkpoint_blocks: [64, 64, 64, 64], Source("JBD2_NR_BATCH");
    /// Inodes of a block group.
    group_inodes: [8192, 8192, 8192, 8192], Source("mke2fs.conf: inode_ratio = 16384");
    /// Clean pages that are never evicted: what is being read ahead must live until it is read,
    /// even if all else is dirty.
    kept_pages: [160, 160, 160, 160], Estimate("five windows");
    /// CPU time of an entry of a directory listing, ns.
    entry_ns: [100, 100, 100, 100], Estimate("0.1 us");
    /// Memory not available to the page cache, MiB.
    fixed_use_mib: [350, 800, 800, 900], Estimate("a desktop: 4 GiB leave 3.0-3.3 GiB");
    /// CPU time of any call, ns.
    call_ns: [600, 500, 400, 400], Estimate("0.5-1 us on machines of each time");
    /// Copying a page, ns.
    copy_page_ns: [500, 400, 350, 250], Estimate("0.25-0.5 us");
    /// Making a page of a file's cache that write() fills, beside the copy, ns: memory, tree, lists,
    /// reservation of a block, a handle of the journal.
    page_new_ns: [1600, 1500, 1300, 1100], Estimate("call and copy times 1.7: on 6.18 with ext4, 4 KiB a call, a new page took 5.1 us where an old one took 1.9");
    /// Dropping a page of a file that goes, ns.
    page_drop_ns: [700, 600, 500, 400], Estimate("call and copy times 0.65: unlink() took 1.2 us a page in the same trial");
    /// Looking up a name, ns.
    lookup_ns: [1000, 800, 700, 600], Estimate("open and close of a cached file: 1-2 us");
    /// Making or removing a file, ns.
    create_ns: [12_000, 10_000, 9_000, 8_000], Estimate("5-15 us");
    /// Making a directory or renaming, ns.
    mkdir_ns: [25_000, 20_000, 18_000, 15_000], Estimate("10-30 us");
    /// Building and submitting one bio, ns.
    bio_ns: [2000, 1500, 1500, 1000], Estimate("1-2 us");
    /// A thousand instructions of a scheduler, ns.
    instructions_ns: [2000, 1500, 1500, 1000], Estimate("kernel code with its cache misses: an instruction in three cycles at 3 GHz; slower cores before, as bio_ns has them");
    /// A page fault, ns.
    fault_ns: [1000, 700, 600, 500], Estimate("0.5-1 us");
    /// How long a task keeps a core that others want, from call to call, ns.
    slice_ns: [100 * MS, 4 * MS, 4 * MS, 4 * MS], Estimate("O(1) scheduler 100 ms; CFS and EEVDF look at each clock tick, HZ 250: on 6.18 two and four readers of cached files on one core have 3.9 ms each before they are switched");
    /// How far behind the others in CPU time who slept comes back at most, ns.
    sleeper_credit_ns: [20 * MS, 6 * MS, 6 * MS, 0], Source("CFS: sched_latency of 2.6.24; half of it with GENTLE_FAIR_SLEEPERS, two to four cores; EEVDF: none");
    /// Who wakes up takes a core from a task that had so much more CPU time, ns.
    wakeup_granularity_ns: [10 * MS, 2 * MS, 2 * MS, 700_000], Source("kernel.sched_wakeup_granularity_ns of 2.6.24, and of 3.4 with two to four cores; EEVDF of 6.18: who has a core is protected for 0.7 ms");
}

/// vm.dirty_background_ratio and vm.dirty_ratio of 2.6.18.
const RATIOS_2_6_18: (u64, u64) = (10, 40);

impl Constants {
    /// Those of a kernel.
    pub fn of(era: Era) -> Self {
        let mut c = Self::column(match era {
            Era::K2_6_18 | Era::K2_6_24 => 0,
            Era::K3_4 => 1,
            Era::K4_0 => 2,
            Era::Mq6_1 | Era::Mq | Era::Mq6_16 | Era::Mq6_18 => 3,
        });
        // Large folios came to ext4 in 6.16.
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
    fn no_constant_knows_a_scheduler_and_each_has_an_origin() {
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
                Origin::Source(o) | Origin::FittedOn(o) | Origin::Estimate(o) => o,
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

    /// Source files of the crate, tests left out.
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

    /// Numbers that are no constants of a kernel: what numbers name, and formats on the disk.
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

    fn strangers(text: &str) -> Vec<String> {
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
    fn there_are_no_constants_of_a_kernel_elsewhere() {
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
                strangers(code),
                Vec::<String>::new(),
                "{name}: belongs into the table"
            );
        }
        // And it would be seen.
        assert_eq!(
            strangers("    const WAIT_NS: u64 = 5;\nconst GROUP: u32 = 1;"),
            ["WAIT_NS"]
        );
    }

    #[test]
    fn kernels_differ_where_they_did() {
        let of = |e| Constants::of(e);
        assert_eq!(of(Era::K2_6_18).dirty_limit_percent, 40);
        assert_eq!(of(Era::K2_6_24).dirty_limit_percent, 10);
        assert_eq!(of(Era::K3_4).stable_pages, 1);
        assert_eq!(of(Era::K4_0).stable_pages, 0);
        // In 6.16 folios grew, and windows came apart.
        let mut before = of(Era::Mq6_18);
        (before.folio_pages, before.readahead_joined) = (1, 1);
        before.readahead_resumed = 1;
        assert_eq!([of(Era::Mq6_1), of(Era::Mq)], [before.clone(), before]);
        assert_eq!(of(Era::Mq6_16), of(Era::Mq6_18));
    }
}
