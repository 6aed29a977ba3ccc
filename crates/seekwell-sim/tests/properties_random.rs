//! Properties of ADIOS and anticipatory for every input. Each bio is dispatched exactly once, in
//! contiguous requests within the limit; nothing gets stuck; timers end. (In these builds each step
//! of a run also checks the schedulers' own invariants.)

use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRng, TestRunner};
use seekwell_core::Op;
use seekwell_microscope::{Case, Outcome, What, run};
use seekwell_sched::registry;
use std::collections::BTreeMap;

const HZ: &[u32] = &[100, 250, 300, 1000];

/// Conservation, contiguity, limits.
fn check_conservation(case: &Case, out: &Outcome) -> Result<(), TestCaseError> {
    prop_assert!(out.left.is_empty(), "left behind: {:?}", out.left);
    let mut bios: BTreeMap<u64, (Op, u64, u64)> = BTreeMap::new();
    for input in case.inputs().expect("a sound case") {
        if let What::Bio {
            id,
            op,
            sector,
            sectors,
            ..
        } = input.what
        {
            bios.insert(id, (op, sector.0, sectors.0.into()));
        }
    }
    for (at, ids) in &out.dispatch {
        let first = bios.get(&ids[0].0).copied();
        let (mut total, mut next) = (0, first.map(|b| b.1));
        for id in ids {
            let Some((op, sector, n)) = bios.remove(&id.0) else {
                return Err(TestCaseError::fail(format!("{id:?} twice, at {at}")));
            };
            prop_assert_eq!(Some(op), first.map(|b| b.0), "mixed at {}", at);
            prop_assert_eq!(Some(sector), next, "a gap at {}", at);
            next = Some(sector + n);
            total += n;
        }
        let alone = ids.len() == 1;
        prop_assert!(
            alone || total <= case.max_sectors.into(),
            "too long at {at}"
        );
    }
    prop_assert!(bios.is_empty(), "never seen: {bios:?}");
    Ok(())
}

fn check_properties(
    name: &str,
    version: &'static str,
    more: impl Fn(&Case, &Outcome) -> Result<(), TestCaseError>,
) {
    let info = registry()
        .iter()
        .find(|s| s.name == name)
        .expect("it is registered");
    let config = Config {
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let cases = crate::random::cases(info, version, HZ);
    let result = runner.run(&cases, |case| {
        let out = run(&case, false).map_err(|e| TestCaseError::fail(e.to_string()))?;
        check_conservation(&case, &out)?;
        more(&case, &out)
    });
    match result {
        Err(TestError::Fail(why, case)) => {
            let input = serde_json::to_string(&case.input).expect("it was JSON");
            let case = Case {
                input: Vec::new(),
                ..case
            };
            panic!(
                "{name}-{version}: {}\n{case:?}\ninput {input}",
                why.message()
            )
        }
        Err(TestError::Abort(why)) => panic!("{}", why.message()),
        Ok(()) => {}
    }
}

#[test]
fn adios_properties_hold() {
    for version in ["3.1.9", "3.2.0", "3.0.1", "1.5.5"] {
        check_properties("adios", version, |_, _| Ok(()));
    }
}

/// Section 12, rule 7: while requests are queued, the disk idles at most `antic_expire` jiffies for
/// each sync request served. If there is no reason to wait, it never idles while requests are
/// queued.
#[test]
fn anticipatory_properties_hold() {
    for version in ["2.6.24", "2.6.18"] {
        check_properties("anticipatory", version, check_idle_time_bound);
    }
}

fn check_idle_time_bound(case: &Case, out: &Outcome) -> Result<(), TestCaseError> {
    let inputs = case.inputs().expect("a sound case");
    let changes = inputs
        .iter()
        .any(|i| matches!(&i.what, What::Tunable(n, _) if n == "antic_expire"));
    if case.device.depth != 1 || changes {
        return Ok(());
    }
    let hz = u64::from(case.hz);
    let expire_ms = case
        .tunables
        .get("antic_expire")
        .and_then(serde_json::Value::as_i64);
    let expire_j = expire_ms.map_or((hz / 150).max(1), |ms| {
        (ms.max(0) as u64 * hz).div_ceil(1000)
    });
    let limit_ns = (expire_j * 1_000_000_000).div_ceil(hz);
    let arrived: BTreeMap<u64, u64> = inputs
        .iter()
        .filter_map(|i| match (&i.what, i.when) {
            (What::Bio { id, .. }, seekwell_microscope::format::When::At(t)) => Some((*id, t.0)),
            _ => None,
        })
        .collect();
    let service_ns = case.device.service_us as u64 * 1000;
    let mut free_at = 0;
    for (at, ids) in &out.dispatch {
        // The device is idle although requests are queued. This time starts when the device becomes
        // free or when the first of these requests arrives, whichever is later.
        let since = ids
            .iter()
            .filter_map(|i| arrived.get(&i.0))
            .min()
            .copied()
            .unwrap_or(at.0);
        let idle = at.0.saturating_sub(since.max(free_at));
        prop_assert!(
            idle <= limit_ns,
            "idle for {idle} ns before {ids:?} at {at}, limit {limit_ns}"
        );
        free_at = at.0 + service_ns;
    }
    Ok(())
}
