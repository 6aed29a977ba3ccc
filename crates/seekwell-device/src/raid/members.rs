//! The members of an array in a specification.

use super::{Level, Order};
use crate::error::{DeviceError, ParamError};
use crate::preset::Preset;
use crate::spec;
use rand::RngCore;
use seekwell_core::Sector;
use seekwell_core::rng;

/// Returns the level that a word names. `copies` and `order` apply to RAID 10.
pub fn level_of(word: &str, copies: u32, order: Order) -> Option<Level> {
    Some(match word {
        "raid0" => Level::Raid0,
        "raid1" => Level::Raid1,
        "raid10" => Level::Raid10 { copies, order },
        "raid5" => Level::Raid5,
        "raid6" => Level::Raid6,
        _ => return None,
    })
}

/// Returns the specification of each member, from the parameters `of` and `members`.
pub fn member_specs(p: &Preset) -> Result<Vec<String>, ParamError> {
    let of = p.word("of");
    let list: Vec<String> = spec::split(of, '+')
        .into_iter()
        .map(|s| spec::bare(s).to_owned())
        .collect();
    if list.iter().any(String::is_empty) {
        return Err(ParamError::new(
            "of",
            format!("\"{of}\" contains an empty device name"),
            "write of=KIND:NAME, several joined by +",
        ));
    }
    let n = p.num_opt("members").map(|n| n as usize);
    match (list.len(), n) {
        (1, n) => Ok(vec![list[0].clone(); n.unwrap_or(4)]),
        (have, Some(n)) if n != have => Err(ParamError::new(
            "members",
            format!("members={n}, but `of` names {have}"),
            "omit `members`, or name one device for all",
        )),
        _ => Ok(list),
    }
}

/// Parses a list of numbers that are joined by `+`.
pub fn numbers(p: &Preset, key: &'static str) -> Result<Vec<usize>, ParamError> {
    let text = p.word(key);
    let all = spec::split(text, '+').into_iter().filter(|t| !t.is_empty());
    all.map(|t| {
        t.parse().map_err(|_| {
            ParamError::new(
                key,
                format!("`{key}`: \"{t}\" is not a number"),
                "write numbers joined by +",
            )
        })
    })
    .collect()
}

/// Returns one flag per member: true if the member has failed.
pub fn failures(failed: &[usize], members: usize) -> Result<Vec<bool>, ParamError> {
    let mut out = vec![false; members];
    for m in failed {
        let Some(f) = out.get_mut(*m) else {
            return Err(ParamError::new(
                "failed",
                format!("there is no member {m} to fail: the array has {members} members"),
                "members are numbered from 0",
            ));
        };
        *f = true;
    }
    Ok(out)
}

/// Returns an error if the members of an array have different sizes. Otherwise space on the larger
/// members would be unused without a message.
pub fn equal(sizes: &[Sector]) -> Result<(), ParamError> {
    match sizes.iter().position(|s| *s != sizes[0]) {
        None => Ok(()),
        Some(i) => Err(ParamError::new(
            "of",
            format!(
                "members differ in size: member 0 has {} sectors, member {i} has {}",
                sizes[0], sizes[i]
            ),
            "use members of equal size (capacity=SECTORS shortens a disk), or level=linear, which \
             accepts any",
        )),
    }
}

/// Returns the random seed of a member. Each member has its own random numbers, so that no two
/// disks rotate in phase.
pub fn member_seed(seed: u64, member: usize) -> u64 {
    rng::stream(seed, &format!("member {member}")).next_u64()
}

/// Options that an array sets on each of its members: deviation of the spindle speed, and write
/// cache.
#[derive(Debug, Clone, Copy, Default)]
pub struct LeafOptions {
    /// Maximum deviation of the spindle speed in ppm, if the member's preset sets no deviation.
    pub rpm_spread: f64,
    /// State of the member's write cache, if the member has one and its specification does not set
    /// the state.
    pub write_cache: Option<bool>,
}

/// Converts an error of a member to an error of the array's parameter `key`.
pub fn of_member(e: DeviceError, key: &'static str) -> ParamError {
    let (what, remedy) = match e {
        DeviceError::Preset {
            file,
            line,
            what,
            remedy,
        } => (format!("{file}:{line}: {what}"), remedy),
        DeviceError::Spec { spec, what, remedy } => (format!("\"{spec}\": {what}"), remedy),
        e => (
            e.to_string(),
            "give a device from `seekwell devices`".to_owned(),
        ),
    };
    ParamError { key, what, remedy }
}
