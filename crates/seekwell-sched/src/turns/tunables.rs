//! Tunables of turns.

use crate::tunable::{INT_MAX, Kind, StoreError, Tunable, strict_int};

/// The tunables, in the order of [`Values`].
#[rustfmt::skip]
pub(super) const TUNABLES: &[Tunable] = &[
    number("slice_sync", (Kind::Ms, "ms", 10_000), "40",
        "How long a task's turn lasts on a rotating disk. Longer: fewer seeks, longer waits."),
    number("slice_idle_us", (Kind::Us, "us", 1_000_000), "4000",
        "How long the device idles for the next request of a task. It idles only for a task whose \
         mean think time is shorter than this. 0: no idling."),
    number("newcomer_kb", (Kind::Count, "KiB", INT_MAX), "65536",
        "A task is new until it has read and written this amount, and new tasks go first. More: \
         programs start sooner, others wait longer. 0: no task counts as new."),
    number("async_cost", (Kind::Count, "times", 1000), "2",
        "Factor on the device time that buffered writes are charged; for other requests the factor \
         is 1. More: buffered writes get less of the device."),
    number("async_window_us", (Kind::Us, "us", 10_000_000), "2000",
        "While sync requests arrive, the device gets at most the buffered writes that it completes \
         in this time. 0: one write."),
    number("fifo_expire_sync", (Kind::Ms, "ms", INT_MAX), "500",
        "Longest time that a task waits for its turn while other tasks have precedence, and that a \
         request waits within a turn."),
    number("fifo_expire_async", (Kind::Ms, "ms", INT_MAX), "5000",
        "Longest time that a buffered write waits while other requests have precedence."),
];

const fn number(
    name: &'static str,
    (kind, unit, max): (Kind, &'static str, i64),
    default: &'static str,
    help: &'static str,
) -> Tunable {
    Tunable {
        name,
        kind,
        unit,
        default,
        min: 0,
        max,
        help,
    }
}

/// The values of the tunables, in the order of [`TUNABLES`].
#[derive(Debug)]
pub(super) struct Values([u64; TUNABLES.len()]);

impl Default for Values {
    fn default() -> Self {
        Values([40, 4000, 65536, 2, 2000, 500, 5000])
    }
}

impl Values {
    pub fn slice_ns(&self) -> u64 {
        self.0[0] * 1_000_000
    }
    pub fn idle_ns(&self) -> u64 {
        self.0[1] * 1000
    }
    pub fn newcomer_kb(&self) -> u64 {
        self.0[2]
    }
    pub fn async_cost(&self) -> u64 {
        self.0[3].max(1)
    }
    pub fn window_ns(&self) -> u64 {
        self.0[4] * 1000
    }
    pub fn expire_ns(&self, sync: bool) -> u64 {
        self.0[if sync { 5 } else { 6 }] * 1_000_000
    }

    pub fn show(&self, name: &str) -> Option<String> {
        let which = TUNABLES.iter().position(|t| t.name == name)?;
        Some(self.0[which].to_string())
    }
    pub fn store(&mut self, name: &str, text: &str) -> Result<(), StoreError> {
        let which = TUNABLES.iter().position(|t| t.name == name);
        let which = which.ok_or_else(|| StoreError::unknown(name))?;
        let range = &TUNABLES[which];
        self.0[which] = strict_int(name, text)?.clamp(range.min, range.max) as u64;
        Ok(())
    }
}

#[cfg(test)]
#[test]
fn default_values_equal_the_table() {
    let values = Values::default();
    for t in TUNABLES {
        assert_eq!(
            values.show(t.name).as_deref(),
            Some(t.default),
            "{}",
            t.name
        );
    }
}
