//! The limits of the queues in the runs.

use super::PROSE;
use crate::table::wrap;
use seekwell_core::prose::all_in_prose;
use seekwell_core::result::{QueueUsed, Record};

fn describe_queue(q: &QueueUsed) -> String {
    let list = match q.max_segments {
        Some(n) => format!("scatter list of {n} entries"),
        None => "a scatter list as long as the request".to_owned(),
    };
    let largest = match q.largest_kb {
        Some(kb) if kb < q.max_sectors_kb => format!(", so requests of {kb} KiB at most"),
        _ => String::new(),
    };
    let ahead = q
        .read_ahead_kb
        .map_or(String::new(), |kb| format!(", read_ahead_kb {kb}"));
    let queues = match q.hw_queues {
        1 => "1 hardware queue".to_owned(),
        n => format!("{n} hardware queues"),
    };
    format!(
        "max_sectors_kb {}, {list}{largest}, nr_requests {}{ahead}, depth {}, {queues}",
        q.max_sectors_kb, q.nr_requests, q.depth
    )
}

/// Returns "Queue: max_sectors_kb 1280, ...", with one sentence for all schedulers whose queues are
/// equal.
pub fn limits(records: &[Record], width: usize) -> String {
    let mut alike: Vec<(String, Vec<&str>)> = Vec::new();
    for r in records {
        let Some(q) = &r.queue else { continue };
        let text = describe_queue(q);
        match alike.iter_mut().find(|a| a.0 == text) {
            Some(a) => a.1.push(&r.scheduler.spec),
            None => alike.push((text, vec![&r.scheduler.spec])),
        }
    }
    let mut out = String::new();
    let one = alike.len() == 1;
    for (text, names) in &alike {
        let of = match one {
            true => String::new(),
            false => format!(" of {}", all_in_prose(names).join(", ")),
        };
        out += &wrap(&format!("Queue{of}: {text}."), 2, width.min(PROSE));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_queue_limits_are_printed_once() {
        let of = |name: &str, nr_requests: u32| {
            let mut r = Record::default();
            r.scheduler.spec = name.to_owned();
            r.queue = Some(QueueUsed {
                max_sectors_kb: 1280,
                max_segments: Some(168),
                largest_kb: Some(672),
                nr_requests,
                read_ahead_kb: Some(128),
                depth: 32,
                hw_queues: 1,
            });
            r
        };
        assert_eq!(
            limits(&[of("bfq", 64), of("kyber", 64)], 200),
            "  Queue: max_sectors_kb 1280, scatter list of 168 entries, so requests of 672 KiB at most,\n  \
             nr_requests 64, read_ahead_kb 128, depth 32, 1 hardware queue.\n"
        );
        let both = limits(&[of("none", 32), of("bfq", 64)], 100);
        assert!(
            both.contains("Queue of `none`: ") && both.contains("Queue of bfq: "),
            "{both}"
        );
        assert_eq!(limits(&[Record::default()], 80), "");
    }
}
