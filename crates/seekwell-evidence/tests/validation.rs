//! Every published figure must be within its bound, and known errors of the models must stay
//! visible.

use seekwell_evidence::validation::{ALONE, Bound, Group, Relation, Row, groups};
use std::sync::LazyLock;

/// The measured figures of single devices. Measuring them takes one or two seconds.
static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let of = |g: &&'static Group| g.run().expect("every row can be measured");
    ALONE.iter().flat_map(of).collect()
});

#[test]
fn every_figure_is_within_its_bound() {
    for r in ROWS.iter() {
        let f = r.figure;
        let line = format!(
            "{} {}: {} {} against {:?}, {:+.1} % (allowed {:.1} %)",
            f.device,
            f.figure,
            r.model,
            f.unit,
            f.published,
            r.error() * 100.0,
            f.bound.share() * 100.0
        );
        println!("{line}");
        assert!(r.holds(), "{line}");
    }
    let held_out = ROWS
        .iter()
        .filter(|r| r.figure.relation == Relation::HeldOut)
        .count();
    assert!(held_out >= 8, "held-out figures have gone");
}

/// A bound that follows from a rule must be one of the bounds that the rule names. If another bound of
/// a held-out figure is only slightly above its error, it was chosen after the measurement, and its
/// label must say so.
#[test]
fn every_bound_states_its_origin() {
    for g in groups() {
        for f in g.figures {
            let name = format!("{}: {}", f.device, f.figure);
            let per_cent = format!("{} %", (f.bound.share() * 1000.0).round() / 10.0);
            match f.bound {
                Bound::Rule(_) => {
                    let of = |part: &str| format!(" {part}").contains(&format!(" {per_cent}"));
                    assert!(
                        g.rule.split(", ").any(of),
                        "{name}: {per_cent}, rule: {}",
                        g.rule
                    );
                }
                Bound::Range => assert!(f.published.0 < f.published.1, "{name}"),
                Bound::After(_) => {}
                Bound::Any => assert_eq!(f.relation, Relation::Indicative, "{name}"),
            }
        }
    }
    let before = |b: Bound| matches!(b, Bound::Rule(_) | Bound::Range);
    let tight = ROWS
        .iter()
        .filter(|r| r.figure.relation == Relation::HeldOut && !before(r.figure.bound));
    let tight = tight.filter(|r| (0.0..0.06).contains(&(r.figure.bound.share() - r.error().abs())));
    let tight: Vec<_> = tight.collect();
    assert!(tight.len() > 15, "{}", tight.len());
    for r in tight {
        assert_eq!(
            r.figure.bound.origin(),
            "chosen after the measurement",
            "{:?}",
            r.figure
        );
    }
}

/// The null model is a device of which only the mean random read is known. It must miss figures
/// that the models meet. Otherwise the figures would prove nothing.
#[test]
fn the_null_model_misses_most_figures() {
    let bounded = || ROWS.iter().filter(|r| r.figure.bound.share().is_finite());
    let met = bounded().filter(|r| r.null_error().abs() <= r.figure.bound.share());
    let met: Vec<_> = met.map(|r| (r.figure.device, r.figure.figure)).collect();
    assert!(
        met.len() * 3 < bounded().count(),
        "the null model meets {met:?}"
    );
}

/// For the enterprise drive, the rate at the outer edge is 10 % too low. The gain of its queue is
/// 14 % too low. A parameter must not correct this, because the figures would then no longer be
/// held out.
#[test]
fn known_misses_are_unchanged() {
    let error = |figure: &str| {
        let found = ROWS
            .iter()
            .find(|r| r.figure.device == "hdd:hus728t8" && r.figure.figure.contains(figure));
        found.unwrap().error()
    };
    assert!(error("sequential read, outer") < -0.03);
    assert!(error("depth 31") < -0.10);
}
