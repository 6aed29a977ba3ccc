//! A prediction as text and as JSON.

use super::simulate::Prepared;
use crate::cmd::switch::show::quoted;
use seekwell_core::prose::in_prose;
use seekwell_lab::predict::{Claim, Forecast, PRIOR, Prediction, Ratio, Setting, State};
use seekwell_report::style::{DIM, GOOD, HEAD, WARN};
use seekwell_report::table::{Align, Cell, Table, painted, wrap};
use serde_json::{Value, json};

/// Formats a ratio: "1.20x", "21x".
pub fn times(x: f64) -> String {
    match x {
        x if x >= 9.95 => format!("{x:.0}x"),
        x => format!("{x:.2}x"),
    }
}

/// Formats the interval of a ratio: "1.10 to 1.30".
pub fn interval(r: &Ratio) -> String {
    r.interval
        .map_or_else(String::new, |(low, high)| format!("{low:.2} to {high:.2}"))
}

/// Formats a probability: "66 %".
pub fn percent(p: f64) -> String {
    format!("{:.0} %", p * 100.0)
}

/// Returns the claim in words, with the first scheduler as its subject.
pub fn claim(c: Claim) -> &'static str {
    match c {
        Claim::Ahead => "better",
        Claim::Behind => "worse",
        Claim::Level => "no difference",
    }
}

/// Returns the title of a prediction for tables. The parameters of a workload are left out if no
/// other workload has its name.
pub fn title(p: &Prediction, all: &[&Prediction]) -> String {
    let name = |label: &str| label.split(':').next().unwrap_or_default().to_owned();
    let own = name(&p.label);
    let other = |q: &&&Prediction| q.label != p.label && name(&q.label) == own;
    match p.workload.strip_prefix(&*p.label) {
        Some(metric) if !all.iter().any(|q| other(&q)) && own != "script" => own + metric,
        _ => p.workload.clone(),
    }
}

/// Returns the origin of the modelled device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Origin<'a> {
    /// The preset that is nearest to the disk, and its class.
    Nearest(&'a str),
    /// The user named the device.
    Named,
    /// The disk was calibrated.
    Calibrated,
}

fn table(f: &Forecast) -> Table {
    let mut t = Table::new(&[
        ("WORKLOAD", Align::Left),
        ("SCHEDULER", Align::Left),
        ("AGAINST", Align::Left),
        ("RATIO", Align::Right),
        ("95 %", Align::Right),
        ("PREDICTION", Align::Left),
        ("PROBABILITY", Align::Right),
    ]);
    let all: Vec<&Prediction> = f.predictions.iter().collect();
    let mut last = String::new();
    for p in f.predictions.iter().filter(|p| p.against_active) {
        let workload = match last == p.workload {
            true => String::new(),
            false => title(p, &all),
        };
        last.clone_from(&p.workload);
        let word: Cell = match p.claim {
            Claim::Ahead => painted(claim(p.claim), GOOD),
            Claim::Behind => painted(claim(p.claim), WARN),
            Claim::Level => painted(claim(p.claim), DIM),
        };
        t.row(vec![
            workload.into(),
            p.one.clone().into(),
            p.other.clone().into(),
            times(p.ratio.times).into(),
            interval(&p.ratio).into(),
            word,
            percent(p.odds.probability).into(),
        ]);
    }
    t
}

/// Returns the winner of each workload, in one sentence.
fn winners(f: &Forecast, active: &str) -> String {
    let all: Vec<&Prediction> = f.predictions.iter().collect();
    let mut text = String::new();
    for w in f.workloads() {
        let any = all.iter().find(|p| p.workload == w);
        let name = any.map_or_else(|| w.to_owned(), |p| title(p, &all));
        text += &match f.best(w) {
            Some(p) => format!(
                "{name}: {} is predicted to be {} better than {} ({}). ",
                in_prose(&p.one),
                times(p.ratio.times),
                in_prose(&p.other),
                percent(p.odds.probability)
            ),
            None => format!(
                "{name}: no scheduler is predicted to beat {}. ",
                in_prose(active)
            ),
        };
    }
    text.trim_end().to_owned()
}

/// Probability from which a predicted loss speaks against a scheduler.
const LIKELY: f64 = 0.6;

/// Returns the scheduler to set: the only winner, if it is not likely to lose another workload
/// against the active scheduler. `None` if there is none.
pub fn choice(f: &Forecast) -> Option<&Prediction> {
    let mut best: Vec<&Prediction> = f.workloads().iter().filter_map(|w| f.best(w)).collect();
    best.dedup_by(|a, b| a.one == b.one);
    let [only] = best[..] else { return None };
    let loses = |p: &&Prediction| {
        p.against_active
            && p.one == only.one
            && p.claim == Claim::Behind
            && p.odds.prior.max(p.odds.probability) >= LIKELY
    };
    f.predictions.iter().find(loses).is_none().then_some(only)
}

/// Returns how to set the choice.
fn setting(f: &Forecast, device: &str) -> String {
    let any = f
        .predictions
        .iter()
        .any(|p| p.against_active && p.claim == Claim::Ahead);
    match choice(f) {
        Some(p) => {
            let name = p.one.split(':').next().unwrap_or(&p.one);
            let tunables = p.one.split(':').skip(1);
            let tunables: String = tunables
                .map(|t| format!(" --tunable {}", quoted(t)))
                .collect();
            format!(
                "To set it until reboot:      sudo seekwell switch {device} {name}{tunables}\n  To \
                 keep it (writes a udev rule): sudo seekwell apply {name} --device {device} \
                 --persist{tunables}\n"
            )
        }
        None if any => {
            "No scheduler is best for all workloads: decide which workload matters most.\n"
                .to_owned()
        }
        None => "There is nothing to set.\n".to_owned(),
    }
}

/// Returns the settings of both sides as a table.
pub fn settings(rows: &[Setting]) -> String {
    let mut t = Table::new(&[
        ("SETTING", Align::Left),
        ("REAL", Align::Right),
        ("SIMULATED", Align::Right),
        ("", Align::Left),
    ]);
    for r in rows {
        let word: Cell = match r.state {
            State::Differs => painted(r.state.word(), WARN),
            state => painted(state.word(), DIM),
        };
        t.row(vec![
            r.name.clone().into(),
            r.real.clone().into(),
            r.simulated.clone().into(),
            word,
        ]);
    }
    t.render(2)
}

/// Returns a list of texts, one line each.
fn list(items: &[String], width: usize) -> String {
    items
        .iter()
        .map(|i| wrap(&format!("- {i}"), 2, width))
        .collect()
}

/// Returns the basis of the probabilities in words.
fn basis(f: &Forecast) -> String {
    let lines = f
        .predictions
        .iter()
        .map(|p| p.odds.lines)
        .max()
        .unwrap_or(0);
    let record = match lines {
        0 => "no verified prediction of this machine".to_owned(),
        1 => "1 verified prediction of this machine".to_owned(),
        n => format!("up to {n} verified predictions of this machine"),
    };
    format!(
        "PROBABILITY: that a measurement confirms the prediction. The prior is {}, the share of \
         signs that were right over 21 held-out publications; for \"no difference\" the same value \
         is assumed. It is adjusted by {record} (seekwell predict --record). RATIO: performance \
         relative to the scheduler in AGAINST; above 1 is better, also for latencies. Its interval \
         covers the seeds of the simulation, not the errors of the model.",
        percent(PRIOR)
    )
}

/// Returns the prediction as text. `recorded` describes the recording of a command, and `verify` is
/// the command that measures the prediction.
pub fn text(
    p: &Prepared,
    f: &Forecast,
    origin: Origin<'_>,
    recorded: &str,
    verify: &str,
    width: usize,
) -> String {
    let facts = p.translation.facts();
    let on = match facts.fs.as_str() {
        "" => String::new(),
        fs => format!("{fs} on "),
    };
    let mut s = format!(
        "{HEAD}Prediction for {on}{}{HEAD:#} ({}), {} is active, Linux {}\n",
        facts.device,
        facts.description,
        in_prose(&facts.scheduler),
        facts.kernel
    );
    let device = &p.device;
    s += &wrap(
        &match origin {
            Origin::Nearest(class) => format!(
                "Simulated on {device} ({class}), the preset nearest to your disk. It is not your \
                 disk: --calibrate measures yours (reads only, up to 3 minutes)."
            ),
            Origin::Named => format!("Simulated on {device}."),
            Origin::Calibrated => format!(
                "Simulated on {device}, which was calibrated from this disk. Use it again: --device \
                 {device}."
            ),
        },
        0,
        width,
    );
    s += recorded;
    s += "\n";
    s += &table(f).render(2);
    s += &wrap(&basis(f), 0, width);
    s += "\n";
    s += &wrap(&winners(f, &facts.scheduler), 0, width);
    s += &format!("  {}", setting(f, &facts.device));
    s += &format!("  To verify it on the disk:    {verify}\n\n");
    s += "Settings of both sides:\n";
    s += &settings(&p.translation.settings(&p.schedulers()));
    s += "Not simulated:\n";
    s += &list(&p.left(), width);
    s
}

/// Returns the prediction as JSON.
pub fn json(p: &Prepared, f: &Forecast, origin: Origin<'_>, verify: &str) -> Value {
    let best = f
        .workloads()
        .into_iter()
        .map(|w| json!({ "workload": w, "best": f.best(w).map(|p| p.one.clone()) }));
    json!({
        "schema": 1, "command": "predict", "device": p.device,
        "own_disk": origin == Origin::Calibrated,
        "nearest": matches!(origin, Origin::Nearest(_)),
        "machine": p.translation.facts(),
        "predictions": f.predictions,
        "workloads": best.collect::<Vec<_>>(),
        "set": choice(f).map(|p| p.one.clone()),
        "prior": PRIOR,
        "settings": p.translation.settings(&p.schedulers()),
        "not_carried": p.left(),
        "verify": verify,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekwell_lab::predict::Odds;

    fn prediction(workload: &str, one: &str, claim: Claim, times: f64) -> Prediction {
        Prediction {
            cell: 0,
            pair: (0, 1),
            workload: workload.to_owned(),
            label: workload.to_owned(),
            metric: "files".to_owned(),
            unit: "files/s".to_owned(),
            one: one.to_owned(),
            other: "none".to_owned(),
            against_active: true,
            simulated: (None, None),
            ratio: Ratio {
                times,
                interval: None,
            },
            claim,
            odds: Odds {
                probability: 0.7,
                prior: 0.7,
                lines: 0,
            },
        }
    }

    #[test]
    fn the_only_winner_that_loses_nothing_is_chosen() {
        use Claim::{Ahead, Behind, Level};
        let of = |all: &[(&str, &str, Claim, f64)]| Forecast {
            predictions: all
                .iter()
                .map(|(w, s, c, t)| prediction(w, s, *c, *t))
                .collect(),
        };
        let one = |f: &Forecast| choice(f).map(|p| p.one.clone());
        let f = of(&[("a", "bfq", Ahead, 1.5), ("b", "bfq", Level, 1.0)]);
        assert_eq!(one(&f).as_deref(), Some("bfq"));
        assert!(setting(&f, "sda").contains("seekwell apply bfq --device sda --persist"));
        let f = of(&[("a", "bfq", Ahead, 1.5), ("b", "bfq", Behind, 0.5)]);
        assert_eq!(one(&f), None, "it loses the other workload");
        assert!(setting(&f, "sda").contains("No scheduler is best for all"));
        let f = of(&[("a", "bfq", Ahead, 1.5), ("b", "kyber", Ahead, 1.5)]);
        assert_eq!(one(&f), None, "two winners");
        let f = of(&[("a", "bfq", Level, 1.0)]);
        assert!(one(&f).is_none() && setting(&f, "sda").contains("nothing to set"));
    }

    #[test]
    fn titles_leave_out_parameters_only_where_they_stay_unique() {
        let mut all = ["fs-mark:files=5", "hdparm:x=1", "fs-mark:files=6"]
            .map(|w| prediction(w, "bfq", Claim::Level, 1.0));
        all[1].workload += ", read";
        let refs: Vec<&Prediction> = all.iter().collect();
        let titles: Vec<String> = refs.iter().map(|p| title(p, &refs)).collect();
        assert_eq!(
            titles,
            ["fs-mark:files=5", "hdparm, read", "fs-mark:files=6"]
        );
    }

    #[test]
    fn tunables_of_the_choice_are_set_too() {
        let f = Forecast {
            predictions: vec![prediction("a", "bfq:low_latency=0", Claim::Ahead, 2.0)],
        };
        let text = setting(&f, "sda");
        assert!(
            text.contains("switch sda bfq --tunable low_latency=0"),
            "{text}"
        );
    }
}
