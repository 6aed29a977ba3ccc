//! Tunables. Each has a name, unit, default, range and help text, written as in sysfs.

use thiserror::Error;

/// The kind of a value. It decides how sysfs parses the value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Milliseconds that are stored in jiffies, rounded up.
    MsJiffies,
    /// Milliseconds that are stored as written.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
    /// A plain number.
    Count,
    /// 0 or 1.
    Bool,
    /// Any other value, which `help` explains.
    Text,
    /// A value that cannot be written.
    ReadOnly,
}

/// One tunable of `/sys/block/DEV/queue/iosched/`.
#[derive(Clone, Copy, Debug)]
pub struct Tunable {
    /// The kernel's name of the tunable.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: Kind,
    /// Unit of the value, for display ("ms", "requests", "KiB", ...).
    pub unit: &'static str,
    /// Default at HZ=1000 as sysfs prints it, or the result of its formula in words.
    pub default: &'static str,
    /// Smallest value that sysfs stores unchanged.
    pub min: i64,
    /// Largest value that sysfs stores unchanged.
    pub max: i64,
    /// What the tunable does, and the effect of larger and smaller values, in one or two sentences.
    pub help: &'static str,
}

/// The value INT_MAX of C, which is the usual upper limit.
pub const INT_MAX: i64 = i32::MAX as i64;
/// The value UINT_MAX of C.
pub const UINT_MAX: i64 = u32::MAX as i64;

/// The file `queue/wbt_lat_usec`, which every blk-mq queue has. It is compared and recorded like a
/// tunable of the scheduler.
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
    /// Makes a tunable with all fields. `range` is the smallest and the largest value.
    pub(crate) const fn new(
        name: &'static str,
        kind: Kind,
        unit: &'static str,
        default: &'static str,
        range: (i64, i64),
        help: &'static str,
    ) -> Self {
        Tunable {
            name,
            kind,
            unit,
            default,
            min: range.0,
            max: range.1,
            help,
        }
    }
    /// Makes a time in milliseconds that is stored in jiffies. The range is 0 to `INT_MAX`.
    pub(crate) const fn ms(name: &'static str, default: &'static str, help: &'static str) -> Self {
        Self::new(name, Kind::MsJiffies, "ms", default, (0, INT_MAX), help)
    }
    /// Makes a number. The range is 0 to `INT_MAX`.
    pub(crate) const fn count(
        name: &'static str,
        unit: &'static str,
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self::new(name, Kind::Count, unit, default, (0, INT_MAX), help)
    }
    /// Makes a switch, which is 0 or 1.
    pub(crate) const fn flag(
        name: &'static str,
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self::new(name, Kind::Bool, "bool", default, (0, 1), help)
    }
    /// Replaces the range.
    pub(crate) const fn range(self, min: i64, max: i64) -> Self {
        Tunable { min, max, ..self }
    }

    /// Checks that `text` is a valid value. Unlike sysfs, which replaces a value outside the range
    /// by the nearest limit, this check returns an error, so that a typing error is reported.
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

/// The reason why a value was not stored.
#[derive(Error, Debug, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// There is no tunable of this name.
    #[error("no tunable \"{name}\"")]
    Unknown {
        /// The name that was given.
        name: String,
    },
    /// The text is not a number, but the kernel requires one (EINVAL).
    #[error("tunable `{name}`: \"{value}\" is not a whole number")]
    NotANumber {
        /// Name of the tunable.
        name: String,
        /// The text that was given.
        value: String,
    },
    /// The value is outside the range of the kernel (EINVAL or a limit).
    #[error("tunable `{name}`: {value} is outside {min}..={max} {unit}")]
    Range {
        /// Name of the tunable.
        name: String,
        /// The text that was given.
        value: String,
        /// Smallest accepted value.
        min: i64,
        /// Largest accepted value.
        max: i64,
        /// Unit of the value.
        unit: &'static str,
    },
    /// The tunable cannot be written (EACCES).
    #[error("tunable `{name}` is read-only")]
    ReadOnly {
        /// Name of the tunable.
        name: String,
    },
    /// The scheduler rejects the value (EINVAL).
    #[error("tunable `{name}`: {why}")]
    Invalid {
        /// Name of the tunable.
        name: String,
        /// The reason in words.
        why: String,
    },
}

impl StoreError {
    /// Returns the error for an unknown name.
    pub fn unknown(name: &str) -> Self {
        StoreError::Unknown {
            name: name.to_owned(),
        }
    }
    /// Returns the error for a read-only tunable.
    pub fn read_only(name: &str) -> Self {
        StoreError::ReadOnly {
            name: name.to_owned(),
        }
    }
}

/// Parses a number as legacy elevators do (`simple_strtol`): a signed decimal prefix; 0 for other
/// text.
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

/// Parses a number as blk-mq elevators do (`kstrtoint`): the whole text must be a 32-bit number.
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

/// Parses an unsigned 64-bit number as blk-mq elevators do (`kstrtoull`).
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
    fn legacy_parser_reads_a_numeric_prefix_and_garbage_as_zero() {
        assert_eq!(legacy_int("17"), 17);
        assert_eq!(legacy_int("-3x"), -3);
        assert_eq!(legacy_int("banana"), 0);
        assert_eq!(legacy_int("99999999999999999999"), i64::MAX);
    }
}
