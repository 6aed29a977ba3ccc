//! A scheduler, a device and a workload as a user of the library would write them, outside the
//! project's source tree. They are registered while the program runs. This crate uses no other
//! crate than `seekwell`.

use seekwell::sdk::core::{Bio, Era, IocId, Links, List, RqId};
use seekwell::sdk::sched::contract::{Insert, Scheduler};
use seekwell::sdk::sched::registry::{Layer, SchedulerInfo, Waiting, hash_always};
use seekwell::sdk::sched::{Cx, Emit};
use seekwell::sdk::workload::{Context, Machine, Needs, OpenFlags, Outcome, Params, Workload};
use std::sync::Once;

/// The entry of the scheduler in the registry.
pub const YOUNGEST: SchedulerInfo = SchedulerInfo {
    name: "youngest",
    layer: Layer::Mq,
    versions: &[("1", Era::Mq)],
    summary: "the last come goes first, of every two",
    history: "In no kernel: a test of the library.",
    not_when: "Ever.",
    source: "tests/outside",
    per_process: false,
    hash: hash_always,
    // Every second dispatched request is the oldest.
    waiting: Waiting {
        fixed_ms: 20,
        requests: 16,
        per_task_ms: 0,
        per_task_requests: 0,
        writes_before_read: 8,
        except: &[],
    },
    rules: &[],
    tunables: |_| &[],
    make: |_, _| Box::<Youngest>::default(),
};

/// A list from which the youngest and the oldest request are taken in turn, so that no request
/// starves.
#[derive(Debug, Default)]
pub struct Youngest {
    list: List,
    links: Links,
    oldest_next: bool,
}

impl Scheduler for Youngest {
    fn insert(&mut self, _: &mut Cx, rq: RqId, how: Insert) {
        if how == Insert::Sorted {
            self.links.push_back(&mut self.list, rq.0);
        } else {
            self.links.push_front(&mut self.list, rq.0);
            self.oldest_next = true;
        }
    }
    fn dispatch(&mut self, cx: &mut Cx, _: u16, _: bool) -> u32 {
        let next = match self.oldest_next {
            true => self.list.first(),
            false => self.list.last(),
        };
        let Some(i) = next else { return 0 };
        self.oldest_next = !self.oldest_next;
        self.links.remove(&mut self.list, i);
        cx.emit(RqId(i), Emit::Tail);
        1
    }
    fn has_work(&self, _: &Cx, _: u16) -> bool {
        !self.list.is_empty()
    }
    fn find_front(&mut self, _: &mut Cx, _: &Bio, _: IocId) -> Option<RqId> {
        None
    }
    fn joined(&mut self, _: &mut Cx, _: RqId, gone: RqId) {
        self.links.remove(&mut self.list, gone.0);
    }
    fn check(&self, cx: &Cx) {
        assert_eq!(self.list.len(), cx.nr_sorted as usize, "list and nr_sorted");
    }
}

/// The preset of a drive with its own name.
pub const DRUM: &str = "kind = \"constant\"\nname = \"drum\"\nsummary = \"a magnetic drum\"\n\
    [params]\nservice_us = { value = 17000, unit = \"us\", source = \"estimate: one turn\" }\n";

/// The entry of the workload.
pub static DIARY: Workload = Workload {
    name: "diary",
    summary: "an entry a second, each synced",
    metric: "none",
    stresses: "fsync",
    source: "tests/outside",
    params: &[],
    profiles: &[],
    needs: Needs::Directory,
    space: |_| 1 << 20,
    check: |_| Ok(()),
};

/// The script of the workload.
///
/// # Errors
/// Returns errors of the machine.
pub async fn diary<M: Machine>(m: &mut M, _: &Params, dir: &str) -> Outcome {
    let path = format!("{dir}/diary");
    let fd = m
        .open(&path, OpenFlags::CREATE)
        .await
        .doing(|| format!("open {path}"))?;
    for day in 0..5u64 {
        m.write(fd, day * 4096, 4096)
            .await
            .doing(|| "write an entry")?;
        m.fsync(fd).await.doing(|| "sync an entry")?;
        let second = seekwell::sdk::core::Nanos::from_secs(1);
        m.sleep(second).await.doing(|| "sleep")?;
    }
    m.close(fd).await.doing(|| "close the diary")
}

/// Registers the scheduler, the device and the workload, once per process.
///
/// # Panics
/// Panics if one of their names is already registered.
pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        seekwell::register_scheduler(YOUNGEST).expect("a new name");
        seekwell::register_device("drum.toml", DRUM).expect("a new name");
        seekwell::register_workload!(&DIARY, diary).expect("a new name");
    });
}
