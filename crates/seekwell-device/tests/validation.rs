//! The published figures, each within its bound; and the misses that must stay visible.

use seekwell_device::validate::{Relation, validate};

#[test]
fn every_figure_is_within_its_bound() {
    let rows = validate().unwrap();
    for r in &rows {
        println!(
            "{} {}: {} {}, {:+.1} %",
            r.device,
            r.figure,
            r.model,
            r.unit,
            r.error * 100.0
        );
        assert!(
            r.holds(),
            "{} {}: {} {} against {:?}, {:+.1} % (allowed {:.1} %)",
            r.device,
            r.figure,
            r.model,
            r.unit,
            r.published,
            r.error * 100.0,
            r.allowed * 100.0
        );
    }
    let held_out = rows
        .iter()
        .filter(|r| r.relation == Relation::HeldOut)
        .count();
    assert!(held_out >= 8, "held-out figures have gone");
}

/// The enterprise drive's outer rate comes out 10 % low and its queue gain 14 % low. Nobody may
/// mend that by a parameter: then the figures would no longer be held out.
#[test]
fn the_known_misses_are_still_there() {
    let rows = validate().unwrap();
    let error = |figure: &str| {
        let found = rows
            .iter()
            .find(|r| r.device == "hus728t8" && r.figure.contains(figure));
        found.unwrap().error
    };
    assert!(error("sequential read, outer") < -0.03);
    assert!(error("depth 31") < -0.10);
}
