//! Tests with invented measures of runs.

use super::*;

fn experiment_with(schedulers: &[&str], devices: &[&str]) -> Experiment {
    let schedulers: Vec<String> = schedulers.iter().map(|s| (*s).to_owned()).collect();
    let work = ["fs-mark:files=2"];
    let on = Met {
        devices,
        workloads: &work,
        traces: &[],
        kernel: None,
    };
    experiment(&schedulers, &on, 3, 1).expect("it is one")
}

fn key(cell: usize, block: u32, treatment: usize) -> RunKey {
    RunKey {
        cell,
        block,
        treatment,
    }
}

/// Returns measures of each scheduler for three seeds of one cell. Each seed adds the same small
/// number to all of them.
fn figures(each: &[[f64; 3]]) -> BTreeMap<RunKey, Figures> {
    let mut all = BTreeMap::new();
    for block in 0..3 {
        for (t, f) in each.iter().enumerate() {
            let shifted = f.map(|v| Some(v + f64::from(block)));
            all.insert(key(0, block, t), shifted);
        }
    }
    all
}

#[test]
fn scheduler_dominated_in_every_figure_is_not_on_the_front() {
    let e = experiment_with(&["noop", "cfq", "deadline"], &["hdd:hitachi-7k200"]);
    let all = figures(&[[0.0, 0.0, 0.0], [0.1, 0.1, 0.1], [0.2, -0.3, 0.0]]);
    let s = standing(&e, &all);
    let front: Vec<bool> = s.places.iter().map(|p| p.front).collect();
    assert_eq!(front, [false, true, true]);
    assert_eq!((s.cells, s.seeds), (1, 3));
    // An offset that all schedulers of a seed have in common does not affect the result.
    let cfq = s.places[1].means[0].expect("it has one");
    assert!((cfq.factor - 1.0).abs() < 1e-9, "{cfq:?}");
    let (low, high) = cfq.interval95.expect("three seeds");
    assert!((low - high).abs() < 1e-9);
}

#[test]
fn largest_deficit_is_reported_with_its_rival() {
    let e = experiment_with(&["noop", "cfq", "deadline"], &["hdd:hitachi-7k200"]);
    let all = figures(&[[0.0, 0.0, 0.5], [0.1, 0.7, 0.1], [0.2, -0.3, 0.0]]);
    let s = standing(&e, &all);
    let told: Vec<(Figure, &str)> = s
        .behind
        .iter()
        .map(|b| (b.figure, b.rival.as_str()))
        .collect();
    assert_eq!(
        told,
        [(Figure::P99, "cfq"), (Figure::Throughput, "deadline")]
    );
    assert!((s.behind[0].mean.factor - libm::exp(-0.7)).abs() < 1e-9);
}

#[test]
fn deficit_within_chance_is_not_reported() {
    let e = experiment_with(&["noop", "cfq"], &["hdd:hitachi-7k200"]);
    let mut all = BTreeMap::new();
    for (block, his) in [0.5, -0.4, 0.1].into_iter().enumerate() {
        let block = block as u32;
        all.insert(key(0, block, 0), [Some(0.0), None, None]);
        all.insert(key(0, block, 1), [Some(his), None, None]);
    }
    let s = standing(&e, &all);
    assert_eq!(s.behind, []);
    assert_eq!(s.places[0].means[1], None);
}

/// A scheduler that ignores seek distance is behind on a disk, and the arena reports this.
#[test]
fn runner_stores_the_figures_of_every_run() {
    let e = experiment_with(&["noop", "deadline"], &["hdd:hitachi-7k200"]);
    let arena = Arena::default();
    let mut store = crate::conduct::Memory::default();
    let done = crate::conduct::conduct(&e, &arena, &mut store, &crate::conduct::How::default());
    assert!(done.expect("it runs").finished());
    let all = arena.figures();
    assert_eq!(all.len(), store.runs.len());
    for run in &store.runs {
        let metric = run.values.first().expect("it has one");
        let own = all[&run.key][0].expect("it has one");
        let sign = if metric.metric.higher_is_better {
            1.0
        } else {
            -1.0
        };
        assert!((own - sign * libm::log(metric.value)).abs() < 1e-9);
    }
}
