//! Results that are exported to composite.xml and imported again must agree with the original.

use super::{experiment, keys, results};
use seekwell_lab::analysis::analyse;
use seekwell_lab::import::{Input, Options, import};
use seekwell_lab::results::export::FORMATS;

#[test]
fn exported_composite_xml_imports_with_the_same_statistics() {
    // The format has no blocks, so the original is analysed without blocks too.
    let mut given = results(&experiment(3), &keys(3, 8));
    given.about.paired = false;
    let format = FORMATS.iter().find(|f| f.name == "pts").expect("a format");
    let mut xml = Vec::new();
    format.write(&given, None, &mut xml).expect("written");
    let input = Input::of_bytes("composite.xml", xml).expect("text");
    let back = import(&[input], &Options::default()).expect("imported");
    let labels = |r: &seekwell_lab::results::Results| -> Vec<String> {
        r.treatments.iter().map(|t| t.scheduler.clone()).collect()
    };
    assert_eq!(labels(&back), labels(&given));
    assert!(back.cells.iter().all(|c| c.device == "hdd:hitachi-7k200"));
    let (was, is) = (analyse(&given), analyse(&back));
    // The imported results have one cell per workload and metric.
    assert_eq!(is.cells.len(), 6);
    for (i, cell) in was.cells.iter().enumerate() {
        let same = |c: &&seekwell_lab::analysis::CellAnalysis| {
            c.workload.contains(&format!("hdparm {i}")) && c.workload.contains("rate")
        };
        let other = is.cells.iter().find(same).expect("there");
        for (a, b) in cell.sides.iter().zip(&other.sides) {
            assert_eq!((a.n, a.mean, a.sd), (b.n, b.mean, b.sd));
        }
        assert_eq!(cell.comparisons.len(), 1);
        for (a, b) in cell.comparisons.iter().zip(&other.comparisons) {
            assert_eq!((a.test, a.mean, a.se, a.df), (b.test, b.mean, b.se, b.df));
            assert_eq!((a.ratio, a.ratio95, a.p), (b.ratio, b.ratio95, b.p));
        }
    }
}
