//! A workload from another crate joins the list while the program runs, and runs.

use seekwell_workload::testing::{TestMachine, Trial};
use seekwell_workload::{
    Context, Kind, Machine, Needs, Outcome, Param, ParamError, Params, Plan, Profile,
    RegisterError, Script, Workload, register, workloads,
};

const PARAMS: &[Param] = &[Param {
    name: "files",
    kind: Kind::Count(1, 10),
    default: "3",
    summary: "how many",
}];

const fn named(name: &'static str) -> Workload {
    Workload {
        name,
        summary: "a test",
        metric: "none",
        stresses: "nothing",
        source: "this test",
        params: PARAMS,
        profiles: &[],
        needs: Needs::Directory,
        space: |_| 0,
        check: |_| Ok(()),
    }
}

static MINE: Workload = named("from-outside");
static CAPITAL: Workload = named("From");
static FIO: Workload = named("fio");
static NOWHERE: Workload = named("nowhere");
static CROOKED: Workload = Workload {
    profiles: &[Profile {
        name: "many",
        summary: "more than there may be",
        set: &[("files", "11")],
    }],
    ..named("crooked")
};

async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    for i in 0..p.int("files") {
        let path = format!("{dir}/d{i}");
        m.mkdir(&path).await.doing(|| format!("make {path}"))?;
    }
    Ok(())
}

fn script(of: &'static Workload) -> Script {
    Script::new(of).on::<TestMachine>(|m, p, dir| Box::pin(run(m, p, dir)))
}

#[test]
fn external_workload_is_registered_checked_and_run() {
    // Other tests of this binary may register workloads at the same time.
    let listed = |w: &Workload| workloads().iter().filter(|o| o.name == w.name).count();
    assert_eq!(listed(&MINE), 0);
    assert_eq!(register(script(&MINE)), Ok(()));
    assert_eq!(listed(&MINE), 1);
    let trial = Trial::run("from-outside", &[("files", "5")]);
    // The workload makes its own directory and five directories inside it.
    assert_eq!(trial.calls("mkdir"), 6);
    assert_eq!(
        trial.left_over(),
        0,
        "the directory is removed as any workload's"
    );
    let bad = Plan::new("from-outside:files=11", &[]).expect_err("out of range");
    assert!(matches!(bad, ParamError::Bad { .. }));

    let taken = register(script(&MINE));
    assert_eq!(taken, Err(RegisterError::Taken("from-outside".into())));
    for w in [&CAPITAL, &FIO] {
        assert_eq!(register(script(w)), Err(RegisterError::Name(w.name.into())));
    }
    let nowhere = register(Script::new(&NOWHERE));
    assert_eq!(nowhere, Err(RegisterError::Nowhere("nowhere".into())));
    let crooked = register(script(&CROOKED));
    assert!(
        matches!(crooked, Err(RegisterError::Params(..))),
        "{crooked:?}"
    );
    assert_eq!(listed(&MINE), 1);
    for w in [&CAPITAL, &FIO, &NOWHERE, &CROOKED] {
        assert_eq!(listed(w), 0, "{}", w.name);
    }
}
