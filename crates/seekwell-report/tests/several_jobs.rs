//! A verdict on a job file covers every reporting group. It never says "same" or "costs nothing" if
//! the latency or rate of one group differs by more than the margin.
//!
//! 200 random files of two jobs run under three schedulers. The results of each group come from the
//! runs' own metrics, independently of the analysis. To show that the test can fail, verdicts are
//! also made from one pooled figure. The test must detect that they hide differences.

use seekwell_core::spec::{DeviceSpec, RunSpec, SchedulerSpec, WorkloadSpec};
use seekwell_lab::analysis::{Analysis, analyse};
use seekwell_lab::conduct::{How, Memory, Simulated, conduct};
use seekwell_lab::experiment::{CellPlan, Deciding, Design, Experiment};
use seekwell_lab::results::{About, Cell, Method, Results, StopRule, Treatment};
use seekwell_report::advice::{Advice, all};
use std::collections::BTreeMap;

const SCHEDULERS: [&str; 3] = ["none", "mq-deadline", "bfq"];
const FILES: usize = 200;
const BLOCKS: u32 = 3;

/// SplitMix64. With this generator, the same files are drawn on every machine.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[(self.next() % of.len() as u64) as usize]
    }
}

fn job(draw: &mut Draw, name: &str) -> String {
    let rw = draw.one(&["read", "write", "randread", "randwrite", "randrw"]);
    let bs = draw.one(&["4k", "16k", "64k", "256k"]);
    let depth = draw.one(&["1", "1", "4", "32"]);
    let limit = draw.one(&["", "", "rate_iops=50\n", "thinktime=10ms\n"]);
    let sync = match rw.contains("write") || rw == "randrw" {
        true => draw.one(&["", "", "fsync=8\n", "fdatasync=1\n"]),
        false => "",
    };
    let direct = draw.one(&["0", "1", "1"]);
    format!("[{name}]\nrw={rw}\nbs={bs}\niodepth={depth}\ndirect={direct}\n{limit}{sync}")
}

fn file(draw: &mut Draw) -> String {
    let (one, other) = (job(draw, "one"), job(draw, "other"));
    format!("[global]\nioengine=libaio\nsize=16m\ntime_based\nruntime=400ms\n{one}{other}")
}

fn experiment(device: &str, text: &str) -> Experiment {
    let workload = WorkloadSpec::Fio {
        file: "two.fio".to_owned(),
        text: text.to_owned(),
        includes: BTreeMap::new(),
        variables: BTreeMap::new(),
    };
    let device = DeviceSpec {
        spec: device.to_owned(),
        ..DeviceSpec::default()
    };
    let spec = |name: &&str| {
        let scheduler = SchedulerSpec {
            name: (*name).to_owned(),
            ..SchedulerSpec::default()
        };
        RunSpec::new(device.clone(), scheduler, workload.clone())
    };
    let deciding = Deciding::usual(&workload);
    let treatment = |name: &&str| Treatment {
        label: (*name).to_owned(),
        scheduler: (*name).to_owned(),
        ..Treatment::default()
    };
    Experiment {
        about: About {
            name: "two jobs".into(),
            method: Method {
                stop: StopRule::Fixed,
                repeats_min: BLOCKS,
                repeats_max: BLOCKS,
                warmup_s: Some(0.0),
                ..Method::default()
            },
            source: "experiment".into(),
            paired: true,
            ..About::default()
        },
        cells: vec![CellPlan {
            cell: Cell {
                name: "two jobs".into(),
                device: device.spec.clone(),
                workload: "two jobs".into(),
                substrate: "sim".into(),
                rows: deciding.rows_info(&workload),
                checks: deciding.checks.clone(),
                treatments: (0..SCHEDULERS.len()).collect(),
                ..Cell::default()
            },
            deciding,
            specs: SCHEDULERS.iter().map(spec).collect(),
        }],
        treatments: SCHEDULERS.iter().map(treatment).collect(),
        text: String::new(),
        design: Design::default(),
    }
}

/// Returns the rate and the mean latency of each group, by scheduler. They are geometric means over
/// the blocks.
fn groups(r: &Results) -> BTreeMap<String, Vec<f64>> {
    let mut logs: BTreeMap<String, Vec<Vec<f64>>> = BTreeMap::new();
    for run in &r.runs {
        for v in &run.values {
            let name = &v.metric.name;
            let of_group = name.starts_with("one ") || name.starts_with("other ");
            if of_group && (name.ends_with(" IOPS") || name.ends_with(" mean")) {
                let all = logs
                    .entry(name.clone())
                    .or_insert_with(|| vec![Vec::new(); 3]);
                all[run.key.treatment].push(v.value.ln());
            }
        }
    }
    let mean = |l: &Vec<f64>| (l.iter().sum::<f64>() / l.len() as f64).exp();
    let of = |(name, all): (String, Vec<Vec<f64>>)| (name, all.iter().map(mean).collect());
    logs.into_iter().map(of).collect()
}

/// Returns what a verdict hides, if it says that nothing differs or that its choice has no cost.
fn hidden_difference(told: &Advice, groups: &BTreeMap<String, Vec<f64>>) -> Option<String> {
    let margin = 1.02;
    let chosen = told.scheduler.as_deref()?;
    let chosen = SCHEDULERS.iter().position(|s| *s == chosen)?;
    for (name, values) in groups {
        let (low, high) = values
            .iter()
            .fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(*v), h.max(*v)));
        if told.headline.contains("does not matter") && high / low > margin {
            return Some(format!("{}; {name}: {values:?}", told.headline));
        }
        let cost = match name.ends_with(" IOPS") {
            true => high / values[chosen],
            false => values[chosen] / low,
        };
        if told.cost.contains("costs nothing") && cost > margin {
            return Some(format!(
                "{}: {}; {name}: {values:?}",
                told.headline, told.cost
            ));
        }
    }
    None
}

fn verdict(r: &Results) -> Advice {
    let analysis: Analysis = analyse(r);
    all(r, &analysis).remove(0)
}

#[test]
fn verdict_on_two_jobs_hides_no_difference_of_either_job() {
    let mut draw = Draw(7);
    let (mut told, mut pooled) = (BTreeMap::<String, usize>::new(), 0);
    for i in 0..FILES {
        let text = file(&mut draw);
        let device = ["ssd:sata-tlc-1t", "hdd:hitachi-7k200", "ssd:sata3-256-2011"][i % 3];
        let e = experiment(device, &text);
        let mut store = Memory::default();
        let done = conduct(&e, &Simulated::default(), &mut store, &How::default());
        let done = done.expect("memory holds it");
        let mut results = done.results(&e, store.runs);
        let groups = groups(&results);
        assert!(groups.len() >= 4, "{text}: {groups:?}");
        let advice = verdict(&results);
        if let Some(what) = hidden_difference(&advice, &groups) {
            panic!("{device}\n{text}\n{what}");
        }
        *told.entry(advice.headline).or_default() += 1;
        results
            .judged_by(&["IOPS".to_owned()])
            .expect("given by every run");
        pooled += usize::from(hidden_difference(&verdict(&results), &groups).is_some());
    }
    println!("verdicts: {told:?}; a pooled verdict conceals a difference in {pooled} of {FILES}");
    assert!(pooled > FILES / 20, "{pooled}");
    assert!(told.len() > 2, "{told:?}");
}
