//! Reads the table `[experiment]` (name, repetitions and verdicts) and the picks.

use super::Reader;
use super::value::{Switch, kind};
use crate::data::{Order, StopRule};
use crate::experiment::design::Pick;
use crate::experiment::expand::REPEATS_MAX;
use crate::experiment::fault::Place;
use seekwell::words;
use seekwell_core::foreign;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The settings of `[experiment]` with their descriptions, for the schema and the documentation.
#[rustfmt::skip]
pub(in crate::experiment) const SETTINGS: &[(&str, &str)] = &[
    ("name", "Name of the experiment; results are found by it."),
    ("description", "Purpose of the experiment, in one sentence."),
    ("seed", "Seed of the runs and of their order. The same seed gives the same bytes."),
    ("margin", "Relative difference that matters, for example 0.02 or \"2 %\"."),
    ("confidence", "Confidence level of the intervals, for example 0.95 or \"95 %\"."),
    ("repeats", "Number of blocks: \"10..60\", { min, max }, or 5 for a fixed number."),
    ("target",
        "Relative half-width of the intervals that ends a cell, for example 0.01 or \"1 %\"."),
    ("fraction", "The half-width may also be this fraction of the effect, for example 0.25."),
    ("stop",
        "Rule that ends a cell: \"width\", \"decided\" or \"fixed\" (after the maximum of repeats)."),
    ("budget", "Limit on wall-clock time, for example \"10min\"."),
    ("order",
        "Order of the runs: \"interleaved\" (blocks in random order) or \"sequential\" (one \
         scheduler after another, as in most publications)."),
    ("warmup", "Warm-up that timed runs leave out: \"auto\", or a time such as \"20s\"."),
    ("state", "State of flash drives before a run: \"fresh\", \"filled\", \"used\" or \"steady\"."),
    ("carried", "The drive keeps its state from run to run."),
    ("reference", "The scheduler that the others are compared with."),
    ("kernel",
        "Kernel of the experiment, for example \"6.8\", or \"here\" for the running kernel. It \
         determines the versions of the schedulers, the limits of the queue and the machine."),
];

/// The states of a drive, by name.
pub(in crate::experiment) const STATES: &[(&str, &str)] = &[
    ("fresh", "fresh"),
    ("filled", "filled"),
    ("used", "used"),
    ("steady", "steady"),
];

/// The rules that decide when a cell has enough blocks, by name.
pub(in crate::experiment) const STOPS: &[(&str, StopRule)] = &[
    ("width", StopRule::Width),
    ("decided", StopRule::Decided),
    ("fixed", StopRule::Fixed),
];

/// The orders of runs, by name.
pub(in crate::experiment) const ORDERS: &[(&str, Order)] = &[
    ("interleaved", Order::Interleaved),
    ("sequential", Order::Sequential),
];

/// Largest length of a name, in characters.
pub(in crate::experiment) const NAME_MAX: usize = 100;

/// The keys of a pick.
pub(in crate::experiment) const PICKS: &[&str] = &["device", "scheduler", "workload", "machine"];

impl Reader<'_> {
    pub(super) fn experiment(&mut self, table: &DeTable<'_>) {
        let mut fixed = None;
        let mut stopped = false;
        for e in self.entries(table) {
            let field = format!("experiment.{}", e.key);
            let f = field.as_str();
            let v = e.value;
            match e.key {
                "name" => {
                    if let Some(name) = self.text(f, v) {
                        self.name(f, self.at(v), &name);
                        self.design.name = name;
                    }
                }
                "description" => {
                    let text = self.text(f, v);
                    self.design.description = text.unwrap_or_default();
                }
                "seed" => {
                    let n = self.whole(f, v, (0, i64::MAX as u64));
                    self.design.method.seed = n.unwrap_or(1);
                }
                "margin" => {
                    if let Some(x) = self.within(f, v, 0.0, 1.0) {
                        self.design.method.margin = x;
                    }
                }
                "confidence" => {
                    if let Some(x) = self.within(f, v, 0.5, 1.0) {
                        self.design.method.alpha = complement(x);
                    }
                }
                "target" => {
                    if let Some(x) = self.within(f, v, 0.0, 1.0) {
                        self.design.method.target = x;
                    }
                }
                "fraction" => {
                    let x = self.share(f, v);
                    let x = x.unwrap_or(self.design.method.fraction);
                    if !(0.0..1.0).contains(&x) {
                        self.bad(self.at(v), f, &format!("{x} is outside 0 to 1"));
                    } else {
                        self.design.method.fraction = x;
                    }
                }
                "repeats" => fixed = self.repeats(f, v),
                "stop" => {
                    stopped = true;
                    if let Some(rule) = self.word(f, v, STOPS) {
                        self.design.method.stop = rule;
                    }
                }
                "budget" => self.design.method.budget_s = self.seconds(f, v),
                "order" => {
                    let order = self.word(f, v, ORDERS);
                    self.design.method.order = order.unwrap_or_default();
                }
                "warmup" => {
                    let auto = matches!(v.get_ref(), DeValue::String(s) if s == "auto");
                    if !auto {
                        let ns = self.time(f, v);
                        self.design.method.warmup_s = ns.map(|ns| ns as f64 / 1e9);
                    }
                }
                "state" => {
                    let word = self.word(f, v, STATES);
                    self.state = word.map(str::to_owned);
                }
                "carried" => {
                    self.design.method.carried = self.switch(f, v).unwrap_or_default();
                }
                "reference" => {
                    self.places.reference = self.at(v);
                    self.design.reference = self.text(f, v);
                }
                // The kernel was read before all other settings.
                "kernel" => {}
                _ if self.factor(e, "experiment.") => {}
                key => {
                    let known: Vec<&str> = SETTINGS.iter().map(|s| s.0).collect();
                    let known = [known, super::FACTORS.to_vec()].concat();
                    let what = "there is no such setting";
                    self.faults.unknown(e.at, f, what, key, &known);
                }
            }
        }
        if fixed == Some(true) && !stopped {
            self.design.method.stop = StopRule::Fixed;
        }
    }

    fn name(&mut self, field: &str, at: Place, name: &str) {
        let long = name.chars().count() > NAME_MAX;
        if long || name.trim().is_empty() || name.chars().any(|c| foreign::acts(c) || c == '/') {
            let what = format!("a name has 1 to {NAME_MAX} characters and no `/`");
            self.bad(at, field, &what);
        }
    }

    /// Reads a fraction that must be between two bounds.
    fn within(&mut self, field: &str, v: &Spanned<DeValue<'_>>, lo: f64, hi: f64) -> Option<f64> {
        let x = self.share(field, v)?;
        if x > lo && x < hi {
            return Some(x);
        }
        let percent = match x > 1.0 && x / 100.0 > lo && x / 100.0 < hi {
            true => format!("; for {x} percent write \"{x} %\""),
            false => String::new(),
        };
        let what = format!("{x} is not between {lo} and {hi}{percent}");
        self.bad(self.at(v), field, &what);
        None
    }

    /// Sets the minimum and maximum number of blocks. Returns true if the number is fixed.
    fn repeats(&mut self, field: &str, v: &Spanned<DeValue<'_>>) -> Option<bool> {
        let range = (1, u64::from(REPEATS_MAX));
        let small = |n: u64| u32::try_from(n).unwrap_or(REPEATS_MAX);
        let (min, max, fixed) = match v.get_ref() {
            DeValue::Integer(_) => {
                let n = small(self.whole(field, v, range)?);
                (n, n, true)
            }
            DeValue::String(s) => {
                let parsed = s.split_once("..").and_then(|(min, max)| {
                    let max = max.strip_prefix('=').unwrap_or(max);
                    Some((min.trim().parse().ok()?, max.trim().parse().ok()?))
                });
                let whole = parsed.filter(|(min, max): &(u64, u64)| {
                    (range.0..=range.1).contains(min) && (range.0..=range.1).contains(max)
                });
                let Some((min, max)) = whole else {
                    let what = format!(
                        "\"{s}\" is not a number of repeats from 1 to {REPEATS_MAX}: write \
                         \"10..60\", or 5 for a fixed number"
                    );
                    self.bad(self.at(v), field, &what);
                    return None;
                };
                (small(min), small(max), false)
            }
            DeValue::Table(t) => {
                let m = &self.design.method;
                let (mut min, mut max) = (m.repeats_min, m.repeats_max);
                for e in self.entries(t) {
                    let f = format!("{field}.{}", e.key);
                    let n = match e.key {
                        "min" | "max" => self.whole(&f, e.value, range).map(small),
                        key => {
                            let what = "there is no such setting";
                            self.faults.unknown(e.at, &f, what, key, &["min", "max"]);
                            None
                        }
                    };
                    match (e.key, n) {
                        ("min", Some(n)) => (min, max) = (n, max.max(n)),
                        ("max", Some(n)) => (min, max) = (min.min(n), n),
                        _ => {}
                    }
                }
                // The minimum and maximum are taken exactly as written.
                for (key, side) in [("min", &mut min), ("max", &mut max)] {
                    if let Some(DeValue::Integer(i)) = t.get(key).map(Spanned::get_ref)
                        && let Ok(n) = i.as_str().parse()
                    {
                        *side = n;
                    }
                }
                (min, max, false)
            }
            other => {
                let what = format!(
                    "is {}: write \"10..60\", or 5 for a fixed number",
                    kind(other)
                );
                self.bad(self.at(v), field, &what);
                return None;
            }
        };
        if max < min {
            let what = format!("the maximum of {max} blocks is below the minimum of {min}");
            self.bad(self.at(v), field, &what);
            return None;
        }
        let m = &mut self.design.method;
        (m.repeats_min, m.repeats_max) = (min, max);
        Some(fixed)
    }

    pub(super) fn pick(&mut self, field: &str, at: Place, v: &Spanned<DeValue<'_>>) {
        let DeValue::Table(table) = v.get_ref() else {
            let what = "must be a table of device, scheduler, workload and machine, all of which a \
                        run must match";
            self.bad(at, field, what);
            return;
        };
        let mut picks = vec![Pick::default()];
        let mut any = false;
        for e in self.entries(table) {
            let f = format!("{field}.{}", e.key);
            if !PICKS.contains(&e.key) {
                let what = "there is no such condition";
                self.faults.unknown(e.at, &f, what, e.key, PICKS);
                continue;
            }
            any = true;
            let words = self.texts(&f, e.value, Switch::Word);
            let mut next = Vec::new();
            for p in &picks {
                for w in &words {
                    let mut p = p.clone();
                    let side = match e.key {
                        "device" => &mut p.device,
                        "scheduler" => &mut p.scheduler,
                        "workload" => &mut p.workload,
                        _ => &mut p.machine,
                    };
                    *side = Some(w.text.clone());
                    next.push(p);
                }
            }
            if next.len() > 1000 {
                self.bad(
                    at,
                    field,
                    "more than 1000 combinations: use * in place of names",
                );
                return;
            }
            picks = next;
        }
        if !any {
            self.bad(at, field, "names no device, scheduler, workload or machine");
            return;
        }
        let (list, places) = match field.contains("only") {
            true => (&mut self.design.only, &mut self.places.only),
            false => (&mut self.design.exclude, &mut self.places.exclude),
        };
        places.extend(std::iter::repeat_n(at, picks.len()));
        list.extend(picks);
    }

    /// Reads the kernel that applies to the whole file.
    pub(super) fn kernel(&mut self, v: &Spanned<DeValue<'_>>) {
        const FIELD: &str = "experiment.kernel";
        if let Some(text) = self.text(FIELD, v) {
            let read = words::kernel(&text);
            self.kernel = self.faults.take(self.at(v), FIELD, read);
        }
    }

    pub(super) fn finish(&mut self) {
        if let Some(k) = &self.kernel {
            for (i, level) in self.design.machines.iter().enumerate() {
                let at = self.places.machines.get(i).copied().unwrap_or_default();
                let good = words::of_kernel(&level.spec.spec, k);
                self.faults.take(at, "machine", good);
            }
        }
        self.design.notes = words::kernel_notes(&self.typed, self.kernel.as_ref());
        if let Some(state) = self.state.take() {
            let mut refused = Vec::new();
            for (i, level) in self.design.devices.iter_mut().enumerate() {
                if let Err(what) = super::system::set_state(&mut level.spec, &state) {
                    refused.push((self.places.devices.get(i).copied(), what));
                }
            }
            for (place, what) in refused {
                let place = place.unwrap_or_default();
                self.faults.push(place, "experiment.state", what);
            }
        }
    }
}

/// Returns 1 - x, without rounding noise in the last digits.
pub(in crate::experiment) fn complement(x: f64) -> f64 {
    ((1.0 - x) * 1e12).round() / 1e12
}
