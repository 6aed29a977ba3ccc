//! Tunables of every scheduler: the defaults and the ranges of the tables are those in force.

use seekwell_core::TickClock;
use seekwell_sched::{Cx, Kind, QueueFacts, Scheduler, SchedulerInfo, registry};

/// Calls `f` for each version of each scheduler, at HZ 1000 on a rotating disk. Leaves out adios,
/// whose own tests cover its tunables.
fn each(f: impl Fn(&str, &SchedulerInfo, &str, Cx, Box<dyn Scheduler>)) {
    for info in registry().iter().filter(|i| i.name != "adios") {
        for (version, era) in info.versions {
            let cx = Cx::new(QueueFacts::example(*era), TickClock::new(1000));
            let sched = (info.make)(&cx, version);
            let name = format!("{}-{version}", info.name);
            f(&name, info, version, cx, sched);
        }
    }
}

#[test]
fn every_scheduler_starts_with_the_defaults_of_its_table() {
    each(|name, info, version, cx, sched| {
        for t in (info.tunables)(version) {
            let first = t.default.split(' ').next().unwrap_or_default();
            if first.parse::<i64>().is_err() || t.default.contains("(computed)") {
                continue;
            }
            let got = sched.show(&cx, t.name);
            assert_eq!(got.as_deref(), Some(first), "{name} {}", t.name);
        }
    });
}

/// A value outside the range is refused, or the nearest value of the range is stored.
#[test]
fn table_ranges_are_enforced() {
    each(|name, info, version, cx, _| {
        let numbers = |k| !matches!(k, Kind::Text | Kind::ReadOnly | Kind::Bool);
        let mut cx = cx;
        // 0 in wr_max_time means a duration that is computed, and shown.
        let plain = |name| name != "wr_max_time";
        let all = (info.tunables)(version).iter();
        for t in all.filter(|t| numbers(t.kind) && plain(t.name)) {
            let below = (t.min.saturating_sub(1), t.min);
            let above = (t.max.saturating_add(1), t.max);
            for (v, want) in [below, (t.min, t.min), (t.max, t.max), above] {
                let mut sched = (info.make)(&cx, version);
                let stored = sched.store(&mut cx, t.name, &v.to_string());
                let got = sched.show(&cx, t.name);
                let what = format!("{name} {} {v}", t.name);
                if stored.is_ok() {
                    assert_eq!(got, Some(want.to_string()), "{what}");
                } else {
                    assert_ne!(v, want, "{what} is refused");
                }
            }
        }
    });
}

/// A version has only the tunables of its own table, although other versions have more.
#[test]
fn a_version_refuses_the_tunables_of_other_versions() {
    for info in registry() {
        let all = info.versions.iter().flat_map(|v| (info.tunables)(v.0));
        let names: Vec<&str> = all.map(|t| t.name).collect();
        for (version, era) in info.versions {
            let mut cx = Cx::new(QueueFacts::example(*era), TickClock::new(1000));
            let mut sched = (info.make)(&cx, version);
            let own: Vec<&str> = (info.tunables)(version).iter().map(|t| t.name).collect();
            for name in names.iter().filter(|n| !own.contains(n)) {
                let what = format!("{}-{version} {name}", info.name);
                assert_eq!(sched.show(&cx, name), None, "{what}");
                assert!(sched.store(&mut cx, name, "1").is_err(), "{what}");
            }
            for name in own {
                assert!(sched.show(&cx, name).is_some(), "{} {name}", info.name);
            }
        }
    }
}
