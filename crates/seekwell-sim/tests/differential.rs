//! The fast schedulers in the real layer compared with simple models in a simple layer, on random
//! cases: no dispatch, time or timer may differ.

use crate::models::anticipatory::Anticipatory;
use crate::models::deadline::{Deadline, Generation};
use crate::models::fiops::{Fiops, Kind};
use crate::models::row::Row;
use crate::models::sio::Sio;
use crate::models::vr::Vr;
use crate::models::zen::Zen;
use crate::models::{self, Model, Plain};
use crate::random;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use seekwell_microscope::{Case, run};
use seekwell_sched::registry;
use std::cell::Cell;

fn fast(case: &Case) -> Plain {
    let out = run(case, false).expect("a sound case");
    assert!(out.left.is_empty(), "left behind: {:?}", out.left);
    let us = |t: seekwell_core::Instant| {
        assert_eq!(t.since_start() % 1000, 0, "times are whole microseconds");
        t.since_start() / 1000
    };
    Plain {
        dispatch: out
            .dispatch
            .iter()
            .map(|(t, ids)| (us(*t), ids.iter().map(|b| b.0).collect()))
            .collect(),
        timers: out.timers.into_iter().map(us).collect(),
        ambiguous: false,
    }
}

fn describe(case: &Case) -> String {
    format!(
        "{} hz {} depth {} service {} max {}\ntunables {:?}\ncontexts {:?} nice {:?}\ninput {}",
        case.elevator,
        case.hz,
        case.device.depth,
        case.device.service_us,
        case.max_sectors,
        case.tunables,
        case.contexts,
        case.nice,
        serde_json::to_string(&case.input).expect("it was JSON"),
    )
}

/// Compares a version with its model. If a front-merge search could find several requests, the
/// result depends on a tree's shape; such cases are skipped and must be rare.
fn compare(name: &str, version: &'static str, make: impl Fn(u64) -> Box<dyn Model>) {
    let info = registry()
        .iter()
        .find(|s| s.name == name)
        .expect("it is registered");
    let config = Config {
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(
        config.clone(),
        proptest::test_runner::TestRng::deterministic_rng(config.rng_algorithm),
    );
    let passed_over = Cell::new(0);
    let old = version == "2.6.18";
    let result = runner.run(&random::cases(info, version, &[100, 250, 1000]), |case| {
        let mut model = make(case.hz.into());
        let want = models::run(&case, &mut *model, old);
        if want.ambiguous {
            passed_over.set(passed_over.get() + 1);
            return Ok(());
        }
        let got = fast(&case);
        if got == want {
            return Ok(());
        }
        let same = |a: &Plain, b: &Plain| {
            a.dispatch
                .iter()
                .zip(&b.dispatch)
                .take_while(|(x, y)| x == y)
                .count()
        };
        let k = same(&want, &got);
        Err(TestCaseError::fail(format!(
            "from decision {k}: want {:?}, got {:?}\nwant timers {:?}\n got timers {:?}",
            want.dispatch.iter().skip(k).take(4).collect::<Vec<_>>(),
            got.dispatch.iter().skip(k).take(4).collect::<Vec<_>>(),
            want.timers,
            got.timers,
        )))
    });
    match result {
        Err(TestError::Fail(why, case)) => panic!("{}\n{}", why.message(), describe(&case)),
        Err(TestError::Abort(why)) => panic!("{}", why.message()),
        Ok(()) => {}
    }
    let (over, all) = (passed_over.get(), config.cases);
    assert!(over * 4 < all, "{over} of {all} were passed over");
}

macro_rules! differential {
    ($($test:ident: $name:literal $version:literal $make:expr;)*) => {
        $(#[test] fn $test() { compare($name, $version, |hz| Box::new($make(hz))); })*
    };
}

fn tuned_sio(hz: u64, sync_read_j: u64, sync_write_j: u64, batch: i64, starved: i64) -> Sio {
    let mut s = Sio::new(hz);
    s.preset(sync_read_j, sync_write_j, batch, starved);
    s
}

differential! {
    anticipatory_2_6_18: "anticipatory" "2.6.18" |hz| Anticipatory::new(true, hz);
    anticipatory_2_6_24: "anticipatory" "2.6.24" |hz| Anticipatory::new(false, hz);
    deadline_2_6_18: "deadline" "2.6.18" |hz| Deadline::new(Generation::D18, hz);
    deadline_2_6_24: "deadline" "2.6.24" |hz| Deadline::new(Generation::D24, hz);
    deadline_3_4: "deadline" "3.4" |hz| Deadline::new(Generation::D34, hz);
    deadline_4_0: "deadline" "4.0" |hz| Deadline::new(Generation::D40, hz);
    zen: "zen" "1.1" |hz| Zen::new("", hz);
    zen_v1: "zen" "v1" |hz| Zen::new("v1", hz);
    zen_jf: "zen" "jf" |hz| Zen::new("jf", hz);
    zen_ge: "zen" "ge" |hz| Zen::new("ge", hz);
    sio: "sio" "0.2" Sio::new;
    sio_tuned: "sio" "tuned" |hz| tuned_sio(hz, hz / 2, 2 * hz, 1, 1);
    sio_zenkernel: "sio" "zenkernel" |hz| tuned_sio(hz, hz / 4, 2 * hz, 1, 2);
    sio_normandy: "sio" "normandy" |hz| tuned_sio(hz, 1000, 5000, 8, 2);
    sio_oneplus: "sio" "oneplus" |hz| tuned_sio(hz, 1000, 5000, 16, 2);
    sio_v1: "sio" "v1" Sio::v1;
    vr: "vr" "msm8226" |hz| Vr::new(hz, 10, false);
    vr_tuna: "vr" "tuna" |hz| Vr::new(hz, 10, true);
    vr_jf: "vr" "jf" |hz| Vr::new(hz, 1, false);
    vr_glitch: "vr" "glitch" |hz| Vr::new(hz, 0, true);
    fiops: "fiops" "v2" |_| Fiops::new(Kind::V2);
    fiops_v1: "fiops" "v1" |_| Fiops::new(Kind::V1);
    fiops_preempt: "fiops" "preempt" |_| Fiops::new(Kind::Preempt);
    row: "row" "late" |_| Row::new(false);
    row_hisi: "row" "hisi" |_| Row::hisi();
    row_mid: "row" "mid" |_| Row::new(true);
}
