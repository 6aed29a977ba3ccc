//! Tunables: name, unit, default, range and help in one place, spelt as in sysfs.

use thiserror::Error;

/// What kind of value, and so how sysfs takes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Milliseconds, kept in jiffies (rounded up when written).
    MsJiffies,
    /// Milliseconds, kept as written.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
    /// A plain number.
    Count,
    /// 0 or 1.
    Bool,
    /// Anything else: the scheduler explains it in `help`.
    Text,
    /// Cannot be written.
    ReadOnly,
}

/// One tunable of `/sys/block/DEV/queue/iosched/`.
#[derive(Clone, Copy, Debug)]
pub struct Tunable {
    /// The kernel's name.
    pub name: &'static str,
    /// How it is kept.
    pub kind: Kind,
    /// Unit, for people ("ms", "requests", "KiB", ...).
    pub unit: &'static str,
    /// Default at HZ=1000, as sysfs would print it (or the formula's outcome, in words).
    pub default: &'static str,
    /// Smallest value that sysfs keeps as it is.
    pub min: i64,
    /// Largest value that sysfs keeps as it is.
    pub max: i64,
    /// What it does and what it trades, in a sentence or two.
    pub help: &'static str,
}

/// INT_MAX, the usual upper limit.
pub const INT_MAX: i64 = i32::MAX as i64;
/// UINT_MAX.
pub const UINT_MAX: i64 = u32::MAX as i64;

/// `queue/wbt_lat_usec`, which every queue of blk-mq has, whatever its scheduler: compared and
/// recorded like a tunable of the scheduler's own.
pub const WBT_LAT_USEC: Tunable = Tunable {
    name: "wbt_lat_usec",
    kind: Kind::Us,
    unit: "us",
    default: "2000 (rotating disks 75000, bfq 0)",
    min: -1,
    max: UINT_MAX,
    help: "latency of reads for whose sake buffered writes are held back; 0: never, -1: the \
           kernel's default",
};

impl Tunable {
    /// Is this text a value that means what it says? Stricter than sysfs, which clamps: used for
    /// values people type, so that a slip is told and not swallowed.
    pub fn validate(&self, text: &str) -> Result<(), StoreError> {
        let text = text.trim();
        match self.kind {
            Kind::Text => return Ok(()),
            Kind::ReadOnly => return Err(StoreError::read_only(self.name)),
            _ => {}
        }
        let out_of_range = || StoreError::Range {
            name: self.name.to_owned(),
            value: text.to_owned(),
            min: self.min,
            max: self.max,
            unit: self.unit,
        };
        match text.parse::<i128>() {
            Ok(v) if (i128::from(self.min)..=i128::from(self.max)).contains(&v) => Ok(()),
            Ok(_) => Err(out_of_range()),
            Err(_) => Err(StoreError::NotANumber {
                name: self.name.to_owned(),
                value: text.to_owned(),
            }),
        }
    }
}

/// A write to a tunable that did not take.
#[derive(Error, Debug, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// No such name.
    #[error("no tunable `{name}`")]
    Unknown {
        /// As asked for.
        name: String,
    },
    /// EINVAL: not a number where the kernel wants one.
    #[error("tunable `{name}`: `{value}` is not a whole number")]
    NotANumber {
        /// Tunable.
        name: String,
        /// As given.
        value: String,
    },
    /// EINVAL or out of what the kernel keeps.
    #[error("tunable `{name}`: {value} is outside {min}..={max} {unit}")]
    Range {
        /// Tunable.
        name: String,
        /// As given.
        value: String,
        /// Lowest accepted.
        min: i64,
        /// Highest accepted.
        max: i64,
        /// Unit.
        unit: &'static str,
    },
    /// EACCES.
    #[error("tunable `{name}` is read-only")]
    ReadOnly {
        /// Tunable.
        name: String,
    },
    /// EINVAL for a reason of the scheduler's own.
    #[error("tunable `{name}`: {why}")]
    Invalid {
        /// Tunable.
        name: String,
        /// In words.
        why: String,
    },
}

impl StoreError {
    /// No such name.
    pub fn unknown(name: &str) -> Self {
        StoreError::Unknown {
            name: name.to_owned(),
        }
    }
    /// Cannot be written.
    pub fn read_only(name: &str) -> Self {
        StoreError::ReadOnly {
            name: name.to_owned(),
        }
    }
}

/// The legacy elevators' parser (`simple_strtol`): a signed decimal prefix; garbage is 0.
pub fn legacy_int(text: &str) -> i64 {
    let t = text.trim_start();
    let (neg, digits) = match t.as_bytes().first() {
        Some(b'-') => (true, &t[1..]),
        _ => (false, t),
    };
    let v = digits
        .bytes()
        .take_while(u8::is_ascii_digit)
        .fold(0i64, |v, d| {
            v.saturating_mul(10).saturating_add(i64::from(d - b'0'))
        });
    if neg { -v } else { v }
}

/// The blk-mq elevators' parser (`kstrtoint`): the whole text must be a 32-bit number.
pub fn strict_int(name: &str, text: &str) -> Result<i64, StoreError> {
    let t = text.strip_suffix('\n').unwrap_or(text);
    match t.parse::<i32>() {
        Ok(v) => Ok(i64::from(v)),
        Err(_) => Err(StoreError::NotANumber {
            name: name.to_owned(),
            value: t.trim().to_owned(),
        }),
    }
}

/// The same for unsigned 64-bit values (`kstrtoull`).
pub fn strict_u64(name: &str, text: &str) -> Result<u64, StoreError> {
    let t = text.strip_suffix('\n').unwrap_or(text);
    t.parse::<u64>().map_err(|_| StoreError::NotANumber {
        name: name.to_owned(),
        value: t.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legacy_parser_takes_a_prefix_and_garbage_is_zero() {
        assert_eq!(legacy_int("17"), 17);
        assert_eq!(legacy_int("-3x"), -3);
        assert_eq!(legacy_int("banana"), 0);
        assert_eq!(legacy_int("99999999999999999999"), i64::MAX);
    }
}
