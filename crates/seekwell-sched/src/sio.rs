//! sio, "simple I/O": four FIFOs, reads before most writes, soft deadlines (Miguel Boton).
//!
//! There is one FIFO per class (sync or async, read or write). After more than `writes_starved`
//! reads since the last write, a write goes next. Every `fifo_batch + 1` dispatches, sio checks the
//! deadline of the oldest request of each class, *in a fixed order of classes*: async write, async
//! read, sync write, sync read. It dispatches the first request that has expired, which is not
//! always the oldest one. sio does not sort, does not distinguish processes, does not idle and has
//! no timers. Two queued requests are joined only if they are neighbours on a list.
//!
//! | version | lists | sync read, sync write, async read, async write expire | fifo_batch | writes_starved |
//! |---|---|---|---|---|
//! | 0.2 (default) | 4 | 500 ms, 2 s, 4 s, 16 s | 8 | 2 |
//! | tuned | 4 | the same | 1 | 1 |
//! | zenkernel | 4 | 250 ms, 2 s, 4 s, 16 s | 1 | 2 |
//! | normandy | 4 | 1000 **jiffies**, 5000 **jiffies**, 4 s, 16 s | 8 | 2 |
//! | oneplus | 4 | 1000 **jiffies**, 5000 **jiffies**, 4 s, 16 s | 16 | 2 |
//! | v1 | 2 | sync 500 ms, async 5 s | 16 | none |
//!
//! One defect of the 0.2 copies is corrected. The copies do not initialize `writes_starved` and the
//! count of reads, so the behaviour of a phone was undefined until the tunable was written. Here
//! the initial values are the default and 0. The derivatives SIOplus, tripndroid, Zenplus and Maple
//! are not modelled.

use crate::contract::{Insert, Scheduler};
use crate::cx::{Cx, Emit};
use crate::fifo::{ExpiryCheck, Fifos};
use crate::info::{Layer, SchedulerInfo, Waiting, hash_always};
use crate::tunable::{INT_MAX, StoreError, Tunable, legacy_int};
use seekwell_core::{Era, RqId};

/// Registry entry of sio.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "sio",
    layer: Layer::Legacy,
    versions: &[
        ("0.2", Era::K3_4),
        ("tuned", Era::K3_4),
        ("zenkernel", Era::K3_4),
        ("normandy", Era::K3_4),
        ("oneplus", Era::K3_4),
        ("v1", Era::K3_4),
    ],
    summary: "four FIFOs by direction and sync, mostly reads first, with periodic deadline checks",
    history: "Miguel Boton, 2010 (0.1, two lists) and 2012 (0.2, four lists), after noop, deadline \
              and V(R); out of tree, in phone kernels from 2.6.35 to 3.10. Copies differ in their \
              numbers: tuned is from the Moto G; oneplus and normandy use values in jiffies that \
              were meant as milliseconds.",
    not_when: "Rotating disks, because it does not sort. Writers that must not wait: while reads \
               and sync writes keep arriving, an async write gets only one of many slots. In \
               phones, the ratio of reads to writes is not known, because the copies do not \
               initialize writes_starved.",
    source: "behaviour of block/sio-iosched.c in five published phone kernels and two derivatives",
    per_process: false,
    hash: hash_always,
    // An async write can wait longest: it expires after 16 s. Expiry is checked only once per
    // `fifo_batch + 1` dispatches (at most 17 with the default settings), and each check dispatches
    // only one expired request. So a few batches can go before the write.
    waiting: Waiting {
        fixed_ms: 16000,
        requests: 80,
        per_task_ms: 0,
        per_task_requests: 0,
        writes_before_read: 3,
        except: &[],
    },
    rules: RULES,
    tunables: |v| Variant::named(v).tunables,
    make: |cx, v| Box::new(Sio::new(cx, Variant::named(v))),
};

seekwell_core::rules! {
    HEAD_EXPIRED: "head-expired", "sio_choose_expired_request",
        "After each fifo_batch requests, the first expired request in this order goes: async \
         write, async read, sync write, sync read.";
    READS_BEFORE_WRITES: "reads-before-writes", "sio_choose_request",
        "The oldest read goes, sync before async. After more than writes_starved reads in a row, a \
         write goes.";
}

const fn batch(default: &'static str) -> Tunable {
    Tunable::count(
        "fifo_batch",
        "requests",
        default,
        "Deadlines are checked every fifo_batch + 1 dispatches. The first check is at \
         dispatch fifo_batch + 2.",
    )
}

/// Makes the table of tunables. `defaults` contains the expiry times of sync reads and sync writes,
/// fifo_batch and writes_starved.
#[rustfmt::skip]
const fn tunables(defaults: [&'static str; 4]) -> [Tunable; 6] {
    [
        Tunable::ms("sync_read_expire", defaults[0],
            "Age at which the oldest sync read has expired. A deadline check dispatches the first \
             expired request that it finds; it checks sync reads last."),
        Tunable::ms("sync_write_expire", defaults[1],
            "Age at which the oldest sync write (fsync, direct I/O) has expired. A deadline check \
             looks at sync writes after the async requests."),
        Tunable::ms("async_read_expire", "4000",
            "Age at which the oldest async read has expired. Reads are normally sync, so this has \
             no effect."),
        Tunable::ms("async_write_expire", "16000",
            "Age at which the oldest async write (a buffered write) has expired. A deadline check \
             looks at async writes first, and dispatches only one of them."),
        batch(defaults[2]),
        Tunable::count("writes_starved", "reads", defaults[3],
            "After more than this many reads since the last write, a write goes next. Reads also \
             count while no write waits. 0: reads and writes alternate."),
    ]
}

static TUNABLES: [Tunable; 6] = tunables(["500", "2000", "8", "2"]);
static TUNABLES_TUNED: [Tunable; 6] = tunables(["500", "2000", "1", "1"]);
static TUNABLES_ZENKERNEL: [Tunable; 6] = tunables(["250", "2000", "1", "2"]);
static TUNABLES_NORMANDY: [Tunable; 6] = tunables(["1000 jiffies", "5000 jiffies", "8", "2"]);
static TUNABLES_ONEPLUS: [Tunable; 6] = tunables(["1000 jiffies", "5000 jiffies", "16", "2"]);
static TUNABLES_V1: [Tunable; 3] = [
    Tunable::ms(
        "sync_expire",
        "500",
        "Age at which the oldest sync request has expired, so that a deadline check dispatches it \
         first.",
    ),
    Tunable::ms(
        "async_expire",
        "5000",
        "Age at which the oldest async request has expired. It then goes before an expired sync \
         request.",
    ),
    batch("16"),
];

/// Indices of the lists. Version 1 has only two lists, sync and async. They use the two middle
/// indices, so that the orders of expiry and choice below are right for version 1 too.
const ASYNC_READ: usize = 0;
const ASYNC_WRITE: usize = 1;
const SYNC_READ: usize = 2;
const SYNC_WRITE: usize = 3;
const V1_ASYNC: usize = ASYNC_WRITE;
const V1_SYNC: usize = SYNC_READ;

/// The order in which the oldest requests are checked for expiry.
const EXPIRY_ORDER: [usize; 4] = [ASYNC_WRITE, ASYNC_READ, SYNC_WRITE, SYNC_READ];
/// The order in which lists are searched while reads are preferred.
const READS_FIRST: [usize; 4] = [SYNC_READ, ASYNC_READ, SYNC_WRITE, ASYNC_WRITE];
/// The order in which lists are searched while writes are preferred.
const WRITES_FIRST: [usize; 4] = [SYNC_WRITE, ASYNC_WRITE, SYNC_READ, ASYNC_READ];

const NAMES: [&str; 4] = ["async reads", "async writes", "sync reads", "sync writes"];

/// The differences between the published copies.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// True for version 1: the only classes are sync and async, and reads are not preferred.
    pub two_lists: bool,
    /// Default expiry times of sync reads and sync writes, in quarters of a second.
    pub sync_expire_quarters: [u64; 2],
    /// Default expiry times in jiffies, whatever HZ is. Only for the copies that use jiffies where
    /// milliseconds were meant.
    pub sync_expire_jiffies: Option<[u64; 2]>,
    /// Default of fifo_batch, in requests.
    pub fifo_batch: u32,
    /// Default of writes_starved, in reads.
    pub writes_starved: u32,
    tunables: &'static [Tunable],
}

impl Variant {
    /// Returns the variant with a version name of [`INFO`].
    pub fn named(version: &str) -> Self {
        let reference = Variant {
            two_lists: false,
            sync_expire_quarters: [2, 8],
            sync_expire_jiffies: None,
            fifo_batch: 8,
            writes_starved: 2,
            tunables: &TUNABLES,
        };
        match version {
            "tuned" => Variant {
                fifo_batch: 1,
                writes_starved: 1,
                tunables: &TUNABLES_TUNED,
                ..reference
            },
            "zenkernel" => Variant {
                sync_expire_quarters: [1, 8],
                fifo_batch: 1,
                tunables: &TUNABLES_ZENKERNEL,
                ..reference
            },
            "normandy" => Variant {
                sync_expire_jiffies: Some([1000, 5000]),
                tunables: &TUNABLES_NORMANDY,
                ..reference
            },
            "oneplus" => Variant {
                sync_expire_jiffies: Some([1000, 5000]),
                fifo_batch: 16,
                tunables: &TUNABLES_ONEPLUS,
                ..reference
            },
            "v1" => Variant {
                two_lists: true,
                fifo_batch: 16,
                tunables: &TUNABLES_V1,
                ..reference
            },
            _ => reference,
        }
    }

    /// Returns the default expiry times by list, in jiffies.
    fn expire_j(&self, hz: u64) -> [u64; 4] {
        let sync = self
            .sync_expire_jiffies
            .unwrap_or(self.sync_expire_quarters.map(|q| hz * q / 4));
        let async_write = if self.two_lists { 5 * hz } else { 16 * hz };
        [4 * hz, async_write, sync[0], sync[1]]
    }
}

/// The scheduler sio.
#[derive(Debug)]
pub struct Sio {
    variant: Variant,
    fifos: Fifos<4>,
    check: ExpiryCheck,
    /// Number of reads dispatched since the last write.
    starved: u32,
    expire_j: [u64; 4],
    writes_starved: u32,
}

impl Sio {
    /// Creates the scheduler with the defaults of `variant`.
    pub fn new(cx: &Cx, variant: Variant) -> Self {
        Sio {
            variant,
            fifos: Fifos::new(),
            check: ExpiryCheck::new(variant.fifo_batch),
            starved: 0,
            expire_j: variant.expire_j(cx.hz()),
            writes_starved: variant.writes_starved,
        }
    }

    fn list_for(&self, sync: bool, write: bool) -> usize {
        match (self.variant.two_lists, sync, write) {
            (true, true, _) => V1_SYNC,
            (true, false, _) => V1_ASYNC,
            (false, true, true) => SYNC_WRITE,
            (false, true, false) => SYNC_READ,
            (false, false, true) => ASYNC_WRITE,
            (false, false, false) => ASYNC_READ,
        }
    }

    /// Returns the list whose expiry time this tunable sets.
    fn expiry_list(&self, name: &str) -> Option<usize> {
        Some(match (self.variant.two_lists, name) {
            (true, "sync_expire") => V1_SYNC,
            (true, "async_expire") => V1_ASYNC,
            (false, "sync_read_expire") => SYNC_READ,
            (false, "sync_write_expire") => SYNC_WRITE,
            (false, "async_read_expire") => ASYNC_READ,
            (false, "async_write_expire") => ASYNC_WRITE,
            _ => return None,
        })
    }

    /// Returns the oldest request of the first list in which it has expired.
    fn take_expired(&self, cx: &mut Cx) -> Option<RqId> {
        let now_j = cx.jiffies();
        for list in EXPIRY_ORDER {
            if let Some(rq) = self.fifos.first_if(list, |d| now_j > d) {
                cx.why_rq(HEAD_EXPIRED, rq, || {
                    format!("the head of {} has expired", NAMES[list])
                });
                return Some(rq);
            }
        }
        None
    }

    /// Returns the oldest read, or the oldest write after enough reads.
    fn choose(&self, cx: &mut Cx) -> Option<RqId> {
        let writes = !self.variant.two_lists && self.starved > self.writes_starved;
        let order = if writes { WRITES_FIRST } else { READS_FIRST };
        let list = order.into_iter().find(|&l| !self.fifos.is_empty(l))?;
        let rq = self.fifos.first(list)?;
        cx.why_rq(READS_BEFORE_WRITES, rq, || {
            let reads = self.starved;
            format!("{reads} reads since the last write: {}", NAMES[list])
        });
        Some(rq)
    }
}

impl Scheduler for Sio {
    #[inline]
    fn insert(&mut self, cx: &mut Cx, rq: RqId, how: Insert) {
        let r = &cx.rqs[rq];
        let list = self.list_for(r.sync, r.is_write());
        let deadline_j = cx.jiffies() + self.expire_j[list];
        match how {
            Insert::Sorted => self.fifos.push_back(list, rq, deadline_j),
            Insert::AtHead | Insert::Requeue | Insert::Reinsert => {
                self.fifos.push_front(list, rq, deadline_j);
            }
        }
    }

    fn dispatch(&mut self, cx: &mut Cx, _: u16, _: bool) -> u32 {
        let expired = if self.check.due() {
            self.take_expired(cx)
        } else {
            None
        };
        let Some(rq) = expired.or_else(|| self.choose(cx)) else {
            return 0;
        };
        self.fifos.remove(rq);
        self.check.count();
        self.starved = if cx.rqs[rq].is_write() {
            0
        } else {
            self.starved.saturating_add(1)
        };
        cx.emit(rq, Emit::Tail);
        1
    }

    fn has_work(&self, _: &Cx, _: u16) -> bool {
        self.fifos.total() > 0
    }

    fn joined(&mut self, _: &mut Cx, kept: RqId, gone: RqId) {
        self.fifos.join(kept, gone);
    }
    fn former(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.fifos.prev(rq)
    }
    fn latter(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.fifos.next(rq)
    }

    fn tunables(&self) -> &'static [Tunable] {
        self.variant.tunables
    }
    fn show(&self, cx: &Cx, name: &str) -> Option<String> {
        if let Some(list) = self.expiry_list(name) {
            return Some(cx.clock().to_ms(self.expire_j[list]).to_string());
        }
        match name {
            "fifo_batch" => Some(self.check.fifo_batch().to_string()),
            "writes_starved" if !self.variant.two_lists => Some(self.writes_starved.to_string()),
            _ => None,
        }
    }
    fn store(&mut self, cx: &mut Cx, name: &str, text: &str) -> Result<(), StoreError> {
        let v = legacy_int(text).clamp(0, INT_MAX);
        if let Some(list) = self.expiry_list(name) {
            self.expire_j[list] = cx.ms_to_jiffies(v as u64);
            return Ok(());
        }
        match name {
            "fifo_batch" => self.check.set_fifo_batch(v as u32),
            "writes_starved" if !self.variant.two_lists => self.writes_starved = v as u32,
            _ => return Err(StoreError::unknown(name)),
        }
        Ok(())
    }

    fn check(&self, cx: &Cx) {
        self.fifos.check();
        self.check.check();
        assert_eq!(
            self.fifos.total(),
            cx.nr_sorted as usize,
            "sio: lists and nr_sorted"
        );
        for list in READS_FIRST {
            for rq in self.fifos.iter(list) {
                let write = cx.rqs[rq].is_write();
                assert!(
                    self.variant.two_lists || write == (list == ASYNC_WRITE || list == SYNC_WRITE),
                    "sio: {rq:?} is among the {}",
                    NAMES[list]
                );
            }
        }
    }
    fn state(&self, cx: &Cx, out: &mut String) {
        let name = |rq| cx.rqs.first_bio(rq).id.0.to_string();
        for list in READS_FIRST {
            let ids: Vec<_> = self.fifos.iter(list).map(name).collect();
            if !ids.is_empty() {
                *out += &format!("{}: [{}]; ", NAMES[list], ids.join(" "));
            }
        }
        let (batched, starved) = (self.check.dispatched(), self.starved);
        *out += &format!("batched {batched} starved {starved}");
    }
}
