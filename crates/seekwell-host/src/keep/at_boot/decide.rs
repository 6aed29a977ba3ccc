//! Applies the rules of udev to a device. Finds out which rules set its scheduler, and in which
//! order.

use super::facts::Facts;
use super::pattern::Truth;
use super::rules::{Op, Rule, RuleFile, Token};
use super::services::{Written, written};
use super::{By, Setter};
use crate::block::Device;
use std::collections::BTreeMap;

/// The condition of a rule if it is uncertain whether the rule applies.
const UNDECIDED: &str = "its conditions hold, which cannot be decided from here";

/// Assignments to the scheduler, in the order in which they happen.
#[derive(Default)]
struct Made {
    by_rules: Vec<Setter>,
    by_programs: Vec<Setter>,
}

/// Returns the assignments by rules at an event of a device, in order. Assignments that are
/// certainly overridden by a later assignment are left out.
pub fn assigned(rules: &[RuleFile], device: &Device, mut facts: Facts<'_>) -> Vec<Setter> {
    let mut made = Made::default();
    for file in rules {
        let mut flow = Flow::new(&file.rules);
        for (i, rule) in file.rules.iter().enumerate() {
            let reached = flow.reached(i);
            if reached == Truth::No {
                continue;
            }
            let holds = facts.holds(rule);
            let done = reached.min(holds);
            if done > Truth::No {
                for t in rule {
                    act(t, file, device, &mut facts, done == Truth::Yes, &mut made);
                }
            }
            flow.leave(i, rule, reached, holds);
        }
    }
    // Programs run after all rules.
    made.by_rules.extend(made.by_programs);
    made.by_rules
}

fn act(
    t: &Token,
    file: &RuleFile,
    d: &Device,
    facts: &mut Facts<'_>,
    certain: bool,
    made: &mut Made,
) {
    let setter = |sets, by| Setter {
        path: file.path.clone(),
        line: t.line,
        sets,
        by,
        only_if: (!certain).then(|| UNDECIDED.to_owned()),
    };
    match (&*t.key, t.op) {
        ("ENV", Op::Set | Op::Final) => {
            let value = facts.substituted(&t.value);
            facts.set_property(&t.attribute, value, certain);
        }
        ("IMPORT", _) if t.attribute == "cmdline" => {
            if let Some(value) = facts.on_command_line(&t.value) {
                facts.set_property(&t.value, Some(value), certain);
            }
        }
        ("ATTR", Op::Set | Op::Add | Op::Final) => {
            let own = format!("[block/{}]queue/scheduler", d.name);
            let of = facts.substituted(&t.attribute).unwrap_or_default();
            if of == "queue/scheduler" || of == own {
                if certain {
                    made.by_rules.clear();
                }
                let value = facts.substituted(&t.value);
                made.by_rules.push(setter(value, By::Rule));
            }
        }
        ("RUN", Op::Set | Op::Add | Op::Final) => {
            if t.op != Op::Add && certain {
                made.by_programs.clear();
            }
            // A line that names another device has no effect on this device. If the name in the
            // line is unknown, the line may apply to this device.
            let line = facts
                .substituted(&t.value)
                .unwrap_or_else(|| t.value.clone());
            if let Some(Written { truth, value }) = written(&line, &d.name) {
                let mut one = setter(value, By::RuleProgram);
                if truth != Truth::Yes {
                    one.only_if.get_or_insert_with(|| UNDECIDED.to_owned());
                }
                made.by_programs.push(one);
            }
        }
        _ => {}
    }
}

/// Control flow through the rules of a file. `GOTO` leads forward to a `LABEL`.
struct Flow<'a> {
    labels: BTreeMap<usize, &'a str>,
    /// Whether the next rule is reached.
    now: Truth,
    jumps: Vec<Jump<'a>>,
}

struct Jump<'a> {
    from: usize,
    /// Index of the rule with the label.
    to: usize,
    label: &'a str,
    /// Whether the rule with the GOTO was reached.
    reached: Truth,
    /// Whether the GOTO was executed.
    taken: Truth,
}

impl<'a> Flow<'a> {
    fn new(rules: &'a [Rule]) -> Self {
        let mut labels = BTreeMap::new();
        for (i, rule) in rules.iter().enumerate() {
            if let Some(t) = rule.iter().find(|t| t.key == "LABEL") {
                labels.insert(i, t.value.as_str());
            }
        }
        Flow {
            labels,
            now: Truth::Yes,
            jumps: Vec::new(),
        }
    }

    /// Returns whether a rule is reached, either from the previous rule or by a GOTO.
    fn reached(&mut self, i: usize) -> Truth {
        let Some(label) = self.labels.get(&i) else {
            return self.now;
        };
        let here = || self.jumps.iter().filter(|j| j.to == i && j.label == *label);
        if let Some(first) = here().next() {
            // Execution continues here whether the GOTO was executed or not, unless another GOTO in
            // between leads to a later rule.
            let past = self.jumps.iter().any(|j| j.from > first.from && j.to > i);
            self.now = match past {
                false => first.reached,
                true => here().map(|j| j.taken).fold(self.now, Truth::max),
            };
        }
        self.now
    }

    /// Updates the control flow after a rule.
    fn leave(&mut self, i: usize, rule: &'a Rule, reached: Truth, holds: Truth) {
        let Some(t) = rule.iter().find(|t| t.key == "GOTO") else {
            return;
        };
        let mut behind = self.labels.range(i + 1..);
        if let Some((to, label)) = behind.find(|l| *l.1 == t.value) {
            let taken = reached.min(holds);
            if taken > Truth::No {
                self.jumps.push(Jump {
                    from: i,
                    to: *to,
                    label,
                    reached,
                    taken,
                });
            }
            self.now = reached.min(holds.not());
        }
    }
}
