//! Parses cgroups such as `bulk:tasks=writer:wbps=2M`. Several cgroups are joined by `+`. A cgroup
//! `a/b` is inside `a`. The cgroup `root` configures `io.cost`.

use super::{SpecErrors, unknown_word};
use seekwell_core::once::Once;
use seekwell_core::{IoCostModel, IoCostQos, IoMaxLimits};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Largest number of cgroups of a machine.
const MOST: usize = 64;
/// Longest name of a cgroup or task, bytes.
const LONGEST: usize = 64;

/// A setting that a cgroup can have.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Name of the setting, as typed.
    pub name: &'static str,
    /// Allowed values after `=`.
    pub values: &'static str,
    /// Description.
    pub help: &'static str,
}

const fn setting(name: &'static str, values: &'static str, help: &'static str) -> Setting {
    Setting { name, values, help }
}

/// All settings, in the order in which a cgroup is written.
#[rustfmt::skip]
pub const SETTINGS: &[Setting] = &[
    setting("tasks", "NAME",
        "puts tasks with this name, and the tasks that they start, into the cgroup; may be repeated"),
    setting("rbps", "2 to 1024G", "io.max: bytes read per second"),
    setting("wbps", "2 to 1024G", "io.max: bytes written per second"),
    setting("riops", "2 to 4294967295", "io.max: reads per second"),
    setting("wiops", "2 to 4294967295", "io.max: writes per second"),
    setting("latency", "1us to 3600s",
        "io.latency: latency target; while the cgroup misses the target, its siblings may have \
         fewer requests in flight"),
    setting("weight", "1 to 10000", "io.weight: weight for io.cost; needs root:enable=1 [100]"),
    setting("bfq.weight", "1 to 1000",
        "weight for the scheduler: io.bfq.weight of bfq, or blkio.weight of cfq"),
];

/// The settings of `root`, in the order in which they are written: first `io.cost.qos`, then
/// `io.cost.model`.
#[rustfmt::skip]
pub const ROOT_SETTINGS: &[Setting] = &[
    setting("enable", "0 or 1",
        "1 switches io.cost on, which divides the device's time among cgroups by weight"),
    setting("rpct", "0 to 100",
        "percentage of reads that should complete within rlat [0: no target]"),
    setting("rlat", "1us to 3600s", "latency target of reads [250ms, flash 25ms]"),
    setting("wpct", "0 to 100",
        "percentage of writes that should complete within wlat [0: no target]"),
    setting("wlat", "1us to 3600s", "latency target of writes [250ms, flash 25ms]"),
    setting("min", "1 to 10000", "lowest speed of io.cost's clock of the device, percent [1]"),
    setting("max", "1 to 10000", "highest speed of io.cost's clock of the device, percent [10000]"),
    setting("rbps", "4k to 1024G",
        "bytes per second that the device can read; the model of io.cost consists of this setting \
         and the next five"),
    setting("rseqiops", "1 to 100000000",
        "sequential 4 KiB reads per second that the device can do"),
    setting("rrandiops", "1 to 100000000", "random 4 KiB reads per second that the device can do"),
    setting("wbps", "4k to 1024G", "bytes per second that the device can write"),
    setting("wseqiops", "1 to 100000000",
        "sequential 4 KiB writes per second that the device can do"),
    setting("wrandiops", "1 to 100000000", "random 4 KiB writes per second that the device can do"),
];

/// Name of the cgroup that configures `io.cost`.
const ROOT: &str = "root";
/// Names of the parameters of `io.cost.model`, in order.
const MODEL: [&str; 6] = [
    "rbps",
    "rseqiops",
    "rrandiops",
    "wbps",
    "wseqiops",
    "wrandiops",
];

/// A parsed cgroup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroup {
    /// Name with its parents, for example `bulk`, or `bulk/copy` for a cgroup inside it.
    pub name: String,
    /// Names of the tasks that start in the cgroup.
    pub tasks: BTreeSet<String>,
    /// Limits of `io.max`.
    pub max: IoMaxLimits,
    /// Latency target of `io.latency`, us.
    pub latency_us: Option<u64>,
    /// Weight for io.cost (`io.weight`).
    pub weight: Option<u32>,
    /// Weight for schedulers that have weights per cgroup (bfq and cfq).
    pub bfq_weight: Option<u32>,
    /// Parameters of `io.cost.qos`. Only for the root.
    pub qos: Option<IoCostQos>,
    /// Parameters of `io.cost.model`, all or none of them. Only for the root.
    model: [Option<u64>; 6],
}

impl Cgroup {
    /// Returns the name of the parent. It is empty for the root.
    pub fn parent(&self) -> &str {
        self.name.rsplit_once('/').map_or("", |p| p.0)
    }
    /// Returns whether a task with this path, for example `main/reader0.0`, is in the cgroup. This
    /// holds if `tasks` contains a part of the path, with or without the number at its end.
    pub fn has(&self, path: &str) -> bool {
        path.split('/').any(|part| {
            let bare = part.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            self.tasks.contains(part) || self.tasks.contains(bare)
        })
    }
    /// Returns whether the cgroup has a setting that only the multi-queue layer supports.
    pub fn needs_blk_mq(&self) -> bool {
        self.max != IoMaxLimits::default()
            || self.latency_us.is_some()
            || self.weight.is_some()
            || self.is_root()
    }
    /// Returns whether the cgroup is the root, which always exists.
    pub fn is_root(&self) -> bool {
        self.name == ROOT
    }
    /// Returns the parameters of `io.cost.model`. Only the root has them.
    pub fn model(&self) -> Option<IoCostModel> {
        let [rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops] = self.model;
        Some(IoCostModel {
            rbps: rbps?,
            rseqiops: rseqiops?,
            rrandiops: rrandiops?,
            wbps: wbps?,
            wseqiops: wseqiops?,
            wrandiops: wrandiops?,
        })
    }
    /// Returns the settings in the notation that users type, in the order of [`SETTINGS`].
    pub fn settings(&self) -> String {
        let mut out = String::new();
        let mut add = |name: &str, value: Option<String>| {
            if let Some(v) = value {
                let colon = if out.is_empty() { "" } else { ":" };
                // Writing to a string cannot fail.
                let _ = write!(out, "{colon}{name}={v}");
            }
        };
        for t in &self.tasks {
            add("tasks", Some(t.clone()));
        }
        let text = |n: Option<u64>| n.map(|n| n.to_string());
        add("rbps", text(self.max.rbps));
        add("wbps", text(self.max.wbps));
        add("riops", text(self.max.riops));
        add("wiops", text(self.max.wiops));
        let us = |n: Option<u64>| n.map(|n| format!("{n}us"));
        add("latency", us(self.latency_us));
        add("weight", text(self.weight.map(u64::from)));
        add("bfq.weight", text(self.bfq_weight.map(u64::from)));
        if let Some(q) = &self.qos {
            let (pct, small) = (
                |n: Option<u32>| n.map(percent),
                |n: Option<u32>| us(n.map(u64::from)),
            );
            add("enable", Some(u8::from(q.enable).to_string()));
            add("rpct", pct(q.rpct_ppm));
            add("rlat", small(q.rlat_us));
            add("wpct", pct(q.wpct_ppm));
            add("wlat", small(q.wlat_us));
            add("min", text(q.min_pct.map(u64::from)));
            add("max", text(q.max_pct.map(u64::from)));
        }
        for (name, value) in MODEL.iter().zip(self.model) {
            add(name, text(value));
        }
        out
    }
    fn set_root(&mut self, name: &str, value: &str) -> Result<(), SpecErrors> {
        let known = ROOT_SETTINGS.iter().find(|s| s.name == name);
        let Some(known) = known else {
            let what = format!("root has no \"{name}\"");
            return Err(unknown_word(
                &what,
                name,
                ROOT_SETTINGS.iter().map(|s| s.name),
            ));
        };
        let bad = || {
            let what = format!("\"{value}\" is not {}", known.values);
            SpecErrors::single(name, what)
        };
        let number = |min: u64, max: u64| {
            let n = super::machine::bytes(value).filter(|n| (min..=max).contains(n));
            n.ok_or_else(bad)
        };
        if let Some(i) = MODEL.iter().position(|m| *m == name) {
            self.model[i] = Some(match name {
                "rbps" | "wbps" => number(4096, 1 << 40)?,
                _ => number(1, 100_000_000)?,
            });
            return Ok(());
        }
        let us = || {
            micros(value)
                .and_then(|n| u32::try_from(n).ok())
                .ok_or_else(bad)
        };
        let q = self.qos.get_or_insert_default();
        match name {
            "enable" => q.enable = number(0, 1)? == 1,
            "rpct" => q.rpct_ppm = Some(ppm(value).ok_or_else(bad)?),
            "wpct" => q.wpct_ppm = Some(ppm(value).ok_or_else(bad)?),
            "rlat" => q.rlat_us = Some(us()?),
            "wlat" => q.wlat_us = Some(us()?),
            "min" => q.min_pct = Some(number(1, 10_000)? as u32),
            _ => q.max_pct = Some(number(1, 10_000)? as u32),
        }
        Ok(())
    }
    /// Returns the first fault that concerns several settings together.
    fn fault(&self) -> Option<String> {
        let given = self.model.iter().flatten().count();
        let q = self.qos.unwrap_or_default();
        if given != 0 && given != MODEL.len() {
            Some(format!("a model needs all of {}", MODEL.join(", ")))
        } else if q.min_pct.unwrap_or(1) > q.max_pct.unwrap_or(10_000) {
            Some("min is above max".to_owned())
        } else {
            None
        }
    }
    fn set(&mut self, name: &str, value: &str) -> Result<(), SpecErrors> {
        let known = SETTINGS.iter().find(|s| s.name == name);
        let Some(known) = known else {
            let what = format!("a cgroup has no \"{name}\"");
            return Err(unknown_word(&what, name, SETTINGS.iter().map(|s| s.name)));
        };
        let bad = || {
            let what = format!("\"{value}\" is not {}", known.values);
            SpecErrors::single(name, what)
        };
        let number = |min: u64, max: u64| {
            let n = super::machine::bytes(value).filter(|n| (min..=max).contains(n));
            n.ok_or_else(bad)
        };
        match name {
            "tasks" if value.is_empty() || !value.chars().all(plain) => return Err(bad()),
            "tasks" => {
                self.tasks.insert(value.to_owned());
            }
            // "max" is the kernel's word for no limit.
            "rbps" | "wbps" | "riops" | "wiops" if value == "max" => {}
            "rbps" => self.max.rbps = Some(number(2, 1 << 40)?),
            "wbps" => self.max.wbps = Some(number(2, 1 << 40)?),
            "riops" => self.max.riops = Some(number(2, u32::MAX.into())?),
            "wiops" => self.max.wiops = Some(number(2, u32::MAX.into())?),
            "latency" => self.latency_us = Some(micros(value).ok_or_else(bad)?),
            "weight" => self.weight = Some(number(1, 10_000)? as u32),
            _ => self.bfq_weight = u32::try_from(number(1, 1000)?).ok(),
        }
        Ok(())
    }
}

/// Parses a time such as `3ms`, `250us` or `2s`. A number without unit is in us, as in the kernel's
/// files. Returns us.
fn micros(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let times = match &text[digits.len()..] {
        "" | "us" => 1,
        "ms" => 1000,
        "s" => 1_000_000,
        _ => return None,
    };
    let us = digits.parse::<u64>().ok()?.checked_mul(times)?;
    (1..=3_600_000_000).contains(&us).then_some(us)
}

/// Parses a percentage such as `95` or `99.5` into ppm.
fn ppm(text: &str) -> Option<u32> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > 4 {
        return None;
    }
    let part: u32 = format!("{part:0<4}").parse().ok()?;
    let n = whole
        .parse::<u32>()
        .ok()?
        .checked_mul(10_000)?
        .checked_add(part)?;
    (n <= 1_000_000).then_some(n)
}
/// Formats ppm as a percentage.
fn percent(ppm: u32) -> String {
    let text = format!("{}.{:04}", ppm / 10_000, ppm % 10_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-.*".contains(c)
}

fn name(text: &str) -> Result<&str, SpecErrors> {
    let good = |part: &str| !part.is_empty() && part.chars().all(plain);
    match text.len() <= LONGEST && text.split('/').all(good) {
        true => Ok(text),
        false => {
            let what = format!("\"{text}\" is not a cgroup name (bulk, bulk/copy)");
            Err(SpecErrors::single("", what))
        }
    }
}

/// Parses one cgroup from its name and its settings.
///
/// # Errors
/// Returns all faults.
pub fn parse_cgroup(named: &str, settings: &str) -> Result<Cgroup, SpecErrors> {
    let mut errors = SpecErrors::default();
    let mut c = Cgroup::default();
    if let Some(n) = errors.take("", name(named)) {
        n.clone_into(&mut c.name);
    }
    let mut once = Once::default();
    for part in settings.split(':').map(str::trim).filter(|p| !p.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        // A cgroup may have several `tasks=` settings, each with one name.
        if key.trim() != "tasks"
            && let Err(what) = once.take(key.trim(), part)
        {
            errors.push(named, what);
            continue;
        }
        let set = match c.is_root() {
            true => c.set_root(key.trim(), value.trim()),
            false => c.set(key.trim(), value.trim()),
        };
        errors.take(named, set);
    }
    if let Some(what) = c.fault() {
        errors.push(named, what);
    }
    errors.or(c)
}

/// Parses `NAME:SETTING=VALUE:...+NAME:...`. Returns the normalised settings by name.
///
/// # Errors
/// Returns all faults.
pub fn typed(text: &str) -> Result<BTreeMap<String, String>, SpecErrors> {
    let mut errors = SpecErrors::default();
    let mut out = BTreeMap::new();
    for part in text.split('+').map(str::trim).filter(|p| !p.is_empty()) {
        let (name, settings) = part.split_once(':').unwrap_or((part, ""));
        let name = name.trim();
        if let Some(c) = errors.take("", parse_cgroup(name, settings))
            && let Some(before) = out.insert(c.name.clone(), c.settings())
        {
            errors.push(name, twice(name, &before, settings));
        }
    }
    errors.or(out)
}

/// Returns the message for a cgroup that occurs twice. It contains both texts.
pub(crate) fn twice(name: &str, first: &str, second: &str) -> String {
    format!(
        "cgroup {name} occurs twice, as {name}:{first} and as {name}:{second}: write all its \
         settings together"
    )
}

/// Parses the cgroups of a machine. Returns them with parents before children.
///
/// # Errors
/// Returns all faults.
pub fn all(of: &BTreeMap<String, String>) -> Result<Vec<Cgroup>, SpecErrors> {
    let mut errors = SpecErrors::default();
    let mut out: Vec<Cgroup> = Vec::new();
    if of.len() > MOST {
        errors.push("", format!("{} cgroups are more than {MOST}", of.len()));
    }
    for (name, settings) in of {
        let Some(c) = errors.take("", parse_cgroup(name, settings)) else {
            continue;
        };
        let above = c.parent();
        if !above.is_empty() && !of.contains_key(above) {
            errors.push(name, format!("is inside {above}, which does not exist"));
        }
        let twice = c
            .tasks
            .iter()
            .filter(|t| out.iter().any(|o| o.tasks.contains(*t)));
        for task in twice {
            errors.push(
                name,
                format!("tasks={task}: a task can be in only one cgroup"),
            );
        }
        out.push(c);
    }
    errors.or(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroups_are_parsed_in_any_order_and_written_in_canonical_order() {
        let read = typed("b: riops=100 :tasks=writer:rbps=2M + a:bfq.weight=300").expect("good");
        let want = [
            ("a".to_owned(), "bfq.weight=300".to_owned()),
            (
                "b".to_owned(),
                "tasks=writer:rbps=2097152:riops=100".to_owned(),
            ),
        ];
        assert_eq!(read, BTreeMap::from(want));
        let all = all(&read).expect("good");
        assert!(all[1].has("main/writer0.0") && all[1].has("main/writer"));
        assert!(!all[1].has("main/rewriter") && !all[0].has("main"));
        let read = typed("root:max=150:enable=1:rlat=5ms:rpct=99.5 + a:weight=200:latency=3ms");
        let read = read.expect("good");
        let root = "enable=1:rpct=99.5:rlat=5000us:max=150";
        assert_eq!(
            (&*read["root"], &*read["a"]),
            (root, "latency=3000us:weight=200")
        );
        assert!(all[1].needs_blk_mq() && !all[0].needs_blk_mq());
    }

    #[test]
    fn invalid_cgroups_are_rejected_with_a_remedy() {
        for (text, says) in [
            ("a:wbsp=1M", "wbps"),
            ("a:wbps=1", "2 to 1024G"),
            ("a:wbps=fast", "\"fast\" is not"),
            ("a b:wbps=1M", "not a cgroup name"),
            ("a:tasks=", "is not NAME"),
            ("a:riops=2+a:wiops=2", "twice"),
            ("a:latency=3h", "1us to 3600s"),
            ("a:enable=1", "a cgroup has no \"enable\""),
            ("root:tasks=a", "root has no \"tasks\""),
            ("root:enable=1:rbps=1G", "a model needs all of"),
            ("root:min=200:max=100", "min is above max"),
        ] {
            let e = typed(text).expect_err(text).to_string();
            assert!(e.contains(says), "{text}: {e}");
        }
        for (text, says) in [
            ("a/b:riops=2", "does not exist"),
            ("a:tasks=x+b:tasks=x", "one cgroup"),
        ] {
            let e = all(&typed(text).expect(text)).expect_err(text).to_string();
            assert!(e.contains(says), "{text}: {e}");
        }
    }
}
