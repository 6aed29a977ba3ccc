//! Worked examples of the schedulers alone, each named after the rule that it shows. They run on a
//! layer of a hundred lines and a device with a fixed service time. Times are in ms; `T` is a timer
//! of the scheduler.

mod anticipatory;
mod bench;
mod bfq;
mod cases;
mod cfq;
mod deadline;
mod mq_deadline;
mod phone;

use bench::Bench;
use seekwell_core::{Class, IoPrio};

const RT: IoPrio = IoPrio {
    class: Class::Rt,
    level: 4,
};
const IDLE: IoPrio = IoPrio {
    class: Class::Idle,
    level: 7,
};

/// Returns `count` requests that a task issues at once, `step` sectors apart, with ids from `id`
/// on.
fn many(at: u64, id: u64, count: u64, task: u64, op: &str, sector: u64, step: u64) -> String {
    let row = |i| format!("{at} {} {task} {op} {};", id + i, sector + i * step);
    (0..count).map(row).collect()
}

/// Returns `count` consecutive requests of a task. Each is issued `think` us after the completion
/// of the previous one.
fn chain(at: u64, id: u64, count: u64, task: u64, sector: u64, n: u64, think: u64) -> String {
    let mut out = format!("{at} {id} {task} R {sector}+{n};");
    for i in 1..count {
        let before = id + i - 1;
        out += &format!(
            "@{before}+{think} {} {task} R {}+{n};",
            id + i,
            sector + i * n
        );
    }
    out
}

/// Consecutive requests of one task in an order: `task:count`.
fn runs(order: &str, task_of: impl Fn(u64) -> u64) -> String {
    let mut all: Vec<(u64, u32)> = Vec::new();
    for id in order.split(' ').filter_map(|w| w.parse().ok()) {
        match all.last_mut() {
            Some(last) if last.0 == task_of(id) => last.1 += 1,
            _ => all.push((task_of(id), 1)),
        }
    }
    let words: Vec<_> = all.iter().map(|(t, n)| format!("{t}:{n}")).collect();
    words.join(" ")
}
