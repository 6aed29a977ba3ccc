//! Tunables: name, unit, default, range and help in one place, spelled as in sysfs.

use thiserror::Error;

/// The kind of value, which decides how sysfs parses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Milliseconds, stored in jiffies (rounded up when written).
    MsJiffies,
    /// Milliseconds, stored as written.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
    /// A plain number.
    Count,
    /// 0 or 1.
    Bool,
    /// Any other value; `help` explains it.
    Text,
    /// Cannot be written.
    ReadOnly,
}

/// One tunable of `/sys/block/DEV/queue/iosched/`.
#[derive(Clone, Copy, Debug)]
pub struct Tunable {
    /// The kernel's name.
    pub name: &'static str,
    /// How the value is stored.
    pub kind: Kind,
    /// Unit, for display ("ms", "requests", "KiB", ...).
    pub unit: &'static str,
    /// Default at HZ=1000, as sysfs would print it, or the result of the formula in words.
    pub default: &'static str,
    /// The smallest value that sysfs does not clamp.
    pub min: i64,
    /// The largest value that sysfs does not clamp.
    pub max: i64,
    /// What it does and what it trades, in one or two sentences.
    pub help: &'static str,
}

/// INT_MAX, the usual upper limit.
pub const INT_MAX: i64 = i32::MAX as i64;
/// UINT_MAX.
pub const UINT_MAX: i64 = u32::MAX as i64;

/// `queue/wbt_lat_usec`, which every blk-mq queue has, whatever its scheduler. It is compared and
/// recorded like a tunable of the scheduler.
pub const WBT_LAT_USEC: Tunable = Tunable {
    name: "wbt_lat_usec",
    kind: Kind::Us,
    unit: "us",
    default: "2000 (rotating disks 75000, bfq 0)",
    min: -1,
    max: UINT_MAX,
    help: "target latency of reads, for which buffered writes are held back; 0: never, -1: the \
           kernel's default",
};

impl Tunable {
    /// Whether this text is a valid value. This check is stricter than sysfs, which clamps. It is
    /// for values that people type, so that a typing error is reported.
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

/// Why a write to a tunable failed.
#[derive(Error, Debug, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// No such name.
    #[error("no tunable `{name}`")]
    Unknown {
        /// The name as given.
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
    /// EINVAL, or outside the range that the kernel keeps.
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
    /// EINVAL for a scheduler-specific reason.
    #[error("tunable `{name}`: {why}")]
    Invalid {
        /// Tunable.
        name: String,
        /// The reason in words.
        why: String,
    },
}

impl StoreError {
    /// The error for an unknown name.
    pub fn unknown(name: &str) -> Self {
        StoreError::Unknown {
            name: name.to_owned(),
        }
    }
    /// The error for a read-only tunable.
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

/// The blk-mq elevators' parser for unsigned 64-bit values (`kstrtoull`).
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
