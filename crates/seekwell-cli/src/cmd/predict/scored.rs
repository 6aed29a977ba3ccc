//! Predictions beside the measurement, with their scores. It is the end of `compare --with-sim`,
//! `predict --verify` and `predict --of`.

use super::show::{claim, interval, percent, settings, times, title};
use super::simulate::Prepared;
use crate::out::note;
use seekwell_lab::analysis::Analysis;
use seekwell_lab::predict::track::{Places, append};
use seekwell_lab::predict::{Claim, Forecast, Outcome, Prediction, SIZE_LIMIT, Scored, State};
use seekwell_report::style::{BAD, DIM, GOOD};
use seekwell_report::table::{Align, Cell, Table, painted, wrap};
use seekwell_report::units::three;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// Predictions with their measurement.
pub struct Compared {
    prepared: Prepared,
    scored: Vec<Scored>,
}

/// Numbers of pairs: decided by the measurement, right, and right for the baseline.
struct Totals {
    tested: usize,
    right: usize,
    level: usize,
}

impl Compared {
    /// Scores the predictions by a measurement.
    pub fn new(prepared: Prepared, forecast: &Forecast, real: &Analysis) -> Self {
        Compared {
            scored: forecast.score(real),
            prepared,
        }
    }

    /// Adds the predictions against the active scheduler to the record. A record that cannot be
    /// written does not spoil the results.
    pub fn keep(&self, quiet: bool) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let unix_s = since.map_or(0, |d| d.as_secs());
        let facts = self.prepared.translation.facts();
        let lines: Vec<_> = self
            .scored
            .iter()
            .filter(|s| s.prediction.against_active)
            .map(|s| s.line(facts, &self.prepared.device, unix_s))
            .collect();
        let Some(path) = Places::here().to_write() else {
            return note(quiet, "no home directory: the predictions are not recorded");
        };
        match append(&path, &lines) {
            Ok(()) => note(
                quiet,
                &format!(
                    "{} scored predictions added to {}",
                    lines.len(),
                    path.display()
                ),
            ),
            Err(e) => note(
                false,
                &format!("{}: the predictions are not recorded: {e}", path.display()),
            ),
        }
    }

    fn totals(&self) -> Totals {
        let tested = self
            .scored
            .iter()
            .filter(|s| s.outcome != Outcome::NotTestable);
        let right = tested.clone().filter(|s| s.outcome == Outcome::Right);
        let level = tested.clone().filter(|s| s.shown == Some(Claim::Level));
        Totals {
            right: right.count(),
            level: level.count(),
            tested: tested.count(),
        }
    }

    /// Returns the title of a prediction for tables.
    fn title(&self, p: &Prediction) -> String {
        let all: Vec<&Prediction> = self.scored.iter().map(|s| &s.prediction).collect();
        title(p, &all)
    }

    /// Returns the figures of single schedulers: workload, scheduler, unit, measured, simulated.
    fn figures(&self) -> Vec<(String, &str, &str, f64, f64)> {
        let mut all: Vec<(String, &str, &str, f64, f64)> = Vec::new();
        for s in &self.scored {
            let p = &s.prediction;
            let title = self.title(p);
            for (name, real, simulated) in [
                (&p.other, s.measured.1, p.simulated.1),
                (&p.one, s.measured.0, p.simulated.0),
            ] {
                let (Some(real), Some(simulated)) = (real, simulated) else {
                    continue;
                };
                let known = all.iter().any(|f| f.0 == title && f.1 == name);
                if !known {
                    all.push((title.clone(), name, &p.unit, real, simulated));
                }
            }
        }
        all
    }

    /// Returns the comparison as JSON.
    pub fn json(&self) -> Value {
        let figures = self.figures().into_iter().map(|f| {
            json!({
                "workload": f.0, "scheduler": f.1, "unit": f.2, "real": f.3, "simulated": f.4,
                "ratio": f.4 / f.3,
            })
        });
        let p = &self.prepared;
        let totals = self.totals();
        json!({
            "device": p.device, "figures": figures.collect::<Vec<_>>(), "pairs": self.scored,
            "pairs_tested": totals.tested, "right": totals.right,
            "right_if_all_were_level": totals.level,
            "settings": p.translation.settings(&p.schedulers()), "not_carried": p.left(),
        })
    }

    /// Returns the comparison as text.
    pub fn text(&self, width: usize) -> String {
        let mut figures = Table::new(&[
            ("WORKLOAD", Align::Left),
            ("SCHEDULER", Align::Left),
            ("MEASURED", Align::Right),
            ("SIMULATED", Align::Right),
            ("UNIT", Align::Left),
            ("RATIO", Align::Right),
        ]);
        for (workload, scheduler, unit, real, simulated) in self.figures() {
            figures.row(vec![
                workload.into(),
                scheduler.to_owned().into(),
                three(real).into(),
                three(simulated).into(),
                unit.to_owned().into(),
                format!("{:.2}", simulated / real).into(),
            ]);
        }
        let device = &self.prepared.device;
        let head = format!("Real runs and simulation on {device}, with the same settings:\n");
        let mut text = wrap(&head, 0, width) + &figures.render(2);
        if !self.scored.is_empty() {
            text += "Ratio of the first scheduler to the second (above 1: the first is better):\n";
            text += &self.pairs().render(2);
            text += &wrap(&self.said(), 0, width);
        }
        let p = &self.prepared;
        let rows = p.translation.settings(&p.schedulers());
        let differ: Vec<_> = rows
            .into_iter()
            .filter(|r| r.state == State::Differs)
            .collect();
        if !differ.is_empty() {
            text += "Settings that differ between the real machine and the simulation:\n";
            text += &settings(&differ);
        }
        text
    }

    fn pairs(&self) -> Table {
        let mut pairs = Table::new(&[
            ("WORKLOAD", Align::Left),
            ("SCHEDULERS", Align::Left),
            ("PREDICTED", Align::Right),
            ("CLAIM", Align::Left),
            ("STATED", Align::Right),
            ("MEASURED", Align::Right),
            ("95 %", Align::Right),
            ("SCORE", Align::Left),
        ]);
        for s in &self.scored {
            let p = &s.prediction;
            let score: Cell = match s.outcome {
                Outcome::Right => painted(s.outcome.word(), GOOD),
                Outcome::Wrong => painted(s.outcome.word(), BAD),
                Outcome::NotTestable => painted(s.outcome.word(), DIM),
            };
            pairs.row(vec![
                self.title(p).into(),
                format!("{} / {}", p.one, p.other).into(),
                times(p.ratio.times).into(),
                claim(p.claim).into(),
                percent(p.odds.probability).into(),
                times(s.live.times).into(),
                interval(&s.live).into(),
                score,
            ]);
        }
        pairs
    }

    /// Returns the totals in words.
    fn said(&self) -> String {
        let t = self.totals();
        let open = self.scored.len() - t.tested;
        let all = match t.tested {
            0 => "The real runs decide no prediction.".to_owned(),
            n => format!(
                "{} of {n} testable predictions are right. The baseline \"no difference\" is right \
                 for {}.",
                t.right, t.level
            ),
        };
        let open = match open {
            0 => String::new(),
            n => format!(" {n} are not testable: more real runs would decide."),
        };
        format!(
            "{all}{open} The 95 % interval of the measurement decides. A prediction more than \
             {SIZE_LIMIT} times above or below it is wrong, even if its sign is right."
        )
    }
}
