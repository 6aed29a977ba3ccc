//! The predictions that follow from a simulation, and their scores.

use super::outcome::{Claim, Outcome, Ratio, claim, judge, shown};
use super::track::{LINE_VERSION, Line};
use super::{Odds, Plan, odds};
use crate::analysis::{Analysis, CellAnalysis};
use seekwell_host::MachineFacts;
use serde::Serialize;

/// One prediction: a scheduler compared with another, for one workload and one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Index of the cell in the real experiment.
    #[serde(skip)]
    pub cell: usize,
    /// Indices of the two treatments.
    #[serde(skip)]
    pub pair: (usize, usize),
    /// Title of the row: the workload, with the metric if there are several.
    pub workload: String,
    /// Label of the workload alone.
    #[serde(skip)]
    pub label: String,
    /// Deciding metric.
    pub metric: String,
    /// Unit of the metric.
    pub unit: String,
    /// Label of the scheduler that is predicted.
    pub one: String,
    /// Label of the scheduler that it is compared with.
    pub other: String,
    /// Whether `other` is the active scheduler. Only these predictions enter the record, because
    /// they are the decision that a user makes.
    pub against_active: bool,
    /// Simulated means of both.
    pub simulated: (Option<f64>, Option<f64>),
    /// The predicted ratio.
    pub ratio: Ratio,
    /// What is predicted.
    pub claim: Claim,
    /// The probability that the prediction is right.
    pub odds: Odds,
}

/// The predictions of a simulation, workload by workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Forecast {
    /// The predictions. Those against the active scheduler come first within a workload.
    pub predictions: Vec<Prediction>,
}

/// A prediction with its measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scored {
    /// The prediction.
    #[serde(flatten)]
    pub prediction: Prediction,
    /// Measured means of both.
    pub measured: (Option<f64>, Option<f64>),
    /// The measured ratio.
    pub live: Ratio,
    /// What the measurement shows; `None` if it does not decide.
    pub shown: Option<Claim>,
    /// The score.
    pub outcome: Outcome,
}

fn mean(c: &CellAnalysis, treatment: usize) -> Option<f64> {
    let side = c.sides.iter().find(|s| s.treatment == treatment);
    side.and_then(|s| s.mean).filter(|m| *m > 0.0)
}

impl Forecast {
    /// Returns the predictions of all pairs. `model` is the analysis of the simulation, and
    /// `record` are the lines on which the probabilities are calibrated.
    pub fn of(plan: &Plan, model: &Analysis, record: &[Line]) -> Forecast {
        let mut all = Vec::new();
        for c in &model.cells {
            let Some(of) = plan.of.get(c.cell) else {
                continue;
            };
            let there = &plan.experiment.cells[c.cell].cell.treatments;
            let mut pairs = Vec::new();
            for (i, one) in there.iter().enumerate() {
                for other in &there[..i] {
                    // The reference is always the second.
                    pairs.push(match *one == c.reference {
                        true => (*other, *one),
                        false => (*one, *other),
                    });
                }
            }
            pairs.sort_by_key(|p| p.1 != c.reference);
            for (one, other) in pairs {
                let found = Ratio::of(c, one, other).zip(claim(c, one, other, model.method.margin));
                let Some((ratio, claim)) = found else {
                    continue;
                };
                all.push(Prediction {
                    cell: *of,
                    pair: (one, other),
                    workload: c.title(),
                    label: c.workload.clone(),
                    metric: c.metric.name.clone(),
                    unit: c.metric.unit.clone(),
                    one: model.treatments[one].clone(),
                    other: model.treatments[other].clone(),
                    against_active: other == c.reference,
                    simulated: (mean(c, one), mean(c, other)),
                    ratio,
                    claim,
                    odds: odds(claim, &ratio, record),
                });
            }
        }
        Forecast { predictions: all }
    }

    /// Returns the workloads in their order.
    pub fn workloads(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self
            .predictions
            .iter()
            .map(|p| p.workload.as_str())
            .collect();
        all.dedup();
        all
    }

    /// Returns the prediction of the scheduler that is furthest ahead of the active one in a
    /// workload. `None` if no scheduler is predicted to be ahead.
    pub fn best(&self, workload: &str) -> Option<&Prediction> {
        self.predictions
            .iter()
            .filter(|p| p.workload == workload && p.against_active && p.claim == Claim::Ahead)
            .max_by(|a, b| a.ratio.times.total_cmp(&b.ratio.times))
    }

    /// Scores the predictions by a measurement of the real experiment. A prediction whose metric
    /// was not measured has no score.
    pub fn score(&self, real: &Analysis) -> Vec<Scored> {
        let one = |p: &Prediction| {
            let mut rows = real.rows(p.cell);
            let row = rows.find(|c| c.metric.name == p.metric && c.metric.unit == p.unit)?;
            let (one, other) = p.pair;
            let live = Ratio::of(row, one, other)?;
            let shown = shown(&live, real.method.margin);
            Some(Scored {
                measured: (mean(row, one), mean(row, other)),
                outcome: judge(p.claim, p.ratio.times, shown, &live),
                prediction: p.clone(),
                live,
                shown,
            })
        };
        self.predictions.iter().filter_map(one).collect()
    }
}

impl Scored {
    /// Returns the line for the record. `unix_s` is the time of the measurement in s since 1970.
    pub fn line(&self, facts: &MachineFacts, preset: &str, unix_s: u64) -> Line {
        let p = &self.prediction;
        Line {
            version: LINE_VERSION,
            unix_s,
            seekwell: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: facts.kernel.clone(),
            device: facts.description.clone(),
            preset: preset.to_owned(),
            workload: p.workload.clone(),
            metric: p.metric.clone(),
            one: p.one.clone(),
            other: p.other.clone(),
            predicted: p.ratio,
            claim: p.claim,
            probability: p.odds.probability,
            lines: p.odds.lines,
            live: self.live,
            shown: self.shown,
            outcome: self.outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analyse;
    use crate::data::Results;
    use crate::predict::{Translation, experiment_of, offered, simulation};
    use crate::results::{Run, RunKey, Value};
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::sync::Arc;

    fn plan() -> Plan {
        let f = MachineFacts {
            device: "sda".to_owned(),
            scheduler: "mq-deadline".to_owned(),
            offered: ["none", "mq-deadline", "bfq"].map(str::to_owned).to_vec(),
            kernel: "6.12".to_owned(),
            fs: "ext4".to_owned(),
            ..MachineFacts::default()
        };
        let work = crate::host::words::work("fs-mark:files=5", &BTreeMap::new()).expect("good");
        let e = experiment_of(&[work], &offered(&f), &f, Path::new("/srv")).expect("good");
        simulation(
            &e,
            &Translation::new(&f, "ssd:sata-tlc-1t").expect("a preset"),
        )
        .expect("a plan")
    }

    /// Returns the analysis of five blocks with these mean values of the three schedulers.
    fn analysis(p: &Plan, values: [f64; 3]) -> Analysis {
        let mut runs = Vec::new();
        for block in 0..5_u32 {
            for (treatment, value) in values.iter().enumerate() {
                let cell = &p.experiment.cells[0].cell;
                let wobble = 1.0 + 0.002 * f64::from((block * 7 + treatment as u32 * 3) % 5);
                runs.push(Run {
                    key: RunKey {
                        cell: 0,
                        block,
                        treatment,
                    },
                    values: vec![Value {
                        metric: Arc::new(cell.primary.clone()),
                        value: value * wobble,
                        n: 1_000,
                    }],
                    ..Run::default()
                });
            }
        }
        analyse(&Results {
            about: p.experiment.about.clone(),
            cells: p.experiment.cells.iter().map(|c| c.cell.clone()).collect(),
            treatments: p.experiment.treatments.clone(),
            runs,
            summaries: Vec::new(),
        })
    }

    #[test]
    fn pairs_with_the_active_scheduler_come_first_and_name_the_winner() {
        let p = plan();
        let f = Forecast::of(&p, &analysis(&p, [150.0, 100.0, 100.0]), &[]);
        let pairs: Vec<(&str, &str, Claim)> = f
            .predictions
            .iter()
            .map(|p| (p.one.as_str(), p.other.as_str(), p.claim))
            .collect();
        assert_eq!(
            pairs,
            [
                ("none", "mq-deadline", Claim::Ahead),
                ("bfq", "mq-deadline", Claim::Level),
                ("bfq", "none", Claim::Behind),
            ]
        );
        let best = f.best(f.workloads()[0]).expect("a winner");
        assert_eq!(best.one, "none");
        assert!(
            (best.ratio.times - 1.5).abs() < 0.02,
            "{}",
            best.ratio.times
        );
        let against: Vec<bool> = f.predictions.iter().map(|p| p.against_active).collect();
        assert_eq!(against, [true, true, false]);
    }

    #[test]
    fn predictions_are_scored_by_the_measurement_of_the_same_pair() {
        let p = plan();
        let f = Forecast::of(&p, &analysis(&p, [150.0, 100.0, 100.0]), &[]);
        let s = f.score(&analysis(&p, [130.0, 100.0, 80.0]));
        let outcomes: Vec<Outcome> = s.iter().map(|s| s.outcome).collect();
        use Outcome::{Right, Wrong};
        assert_eq!(outcomes, [Right, Wrong, Right]);
        let line = s[0].line(&MachineFacts::default(), "ssd:x", 7);
        assert_eq!(
            (line.unix_s, line.preset.as_str(), line.one.as_str()),
            (7, "ssd:x", "none")
        );
        // A level machine refutes the difference.
        let s = f.score(&analysis(&p, [100.0, 100.0, 100.0]));
        assert_eq!(s[0].outcome, Wrong);
    }
}
