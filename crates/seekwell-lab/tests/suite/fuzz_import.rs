//! Entry point for all fuzzers. Any input, read as any format, must give valid results, or an error
//! that contains the file name.
//!
//! A test calls this with a short deterministic series of inputs, and the targets under `fuzz/`
//! call it with random inputs.

use seekwell_lab::analysis::analyse;
use seekwell_lab::data::Results;
use seekwell_lab::import::{Input, Options, find_format, import};

/// Reads `bytes` as the format with this name, or detects the format for `None`. Panics if the
/// results violate a property.
pub fn fuzz_one(format: Option<&str>, bytes: &[u8]) {
    let input = match Input::of_bytes("fuzz", bytes.to_vec()) {
        Ok(input) => input,
        Err(e) => {
            assert!(e.to_string().starts_with("fuzz"), "{e}");
            return;
        }
    };
    if let Some(name) = format {
        assert!(find_format(name).is_ok(), "{name} is a format");
    }
    let options = Options {
        format: format.map(str::to_owned),
        ..Options::default()
    };
    match import(&[input], &options) {
        Ok(results) => check(&results),
        Err(e) => assert!(e.to_string().starts_with("fuzz"), "{e}"),
    }
}

/// Panics if the results violate a property that every import must have.
fn check(r: &Results) {
    assert!(!r.cells.is_empty() && !r.treatments.is_empty());
    for cell in &r.cells {
        assert!(cell.treatments.contains(&cell.reference), "{cell:?}");
        assert!(cell.treatments.iter().all(|t| *t < r.treatments.len()));
        printable(&cell.name);
        printable(&cell.device);
    }
    for t in &r.treatments {
        assert!(!t.label.is_empty());
        printable(&t.label);
    }
    for run in &r.runs {
        assert!(run.key.cell < r.cells.len() && run.key.treatment < r.treatments.len());
        assert!(run.values.iter().all(|v| v.value.is_finite()), "{run:?}");
    }
    for s in &r.summaries {
        assert!(s.mean.is_finite() && s.cell < r.cells.len(), "{s:?}");
        assert!(
            s.se.is_none_or(|e| e >= 0.0) && s.sd.is_none_or(|e| e >= 0.0),
            "{s:?}"
        );
    }
    let serialized = serde_json::to_string(r).unwrap_or_default();
    let back: Result<Results, _> = serde_json::from_str(&serialized);
    assert!(back.is_ok(), "results are stored and read");
    for cell in analyse(r).cells {
        let secondary = cell.secondary.iter().flat_map(|s| &s.comparisons);
        for c in cell.comparisons.iter().chain(&cell.pairs).chain(secondary) {
            assert!(c.p.is_none_or(|p| (0.0..=1.0).contains(&p)), "{c:?}");
            assert!(c.ratio.is_none_or(|x| x > 0.0 && x.is_finite()), "{c:?}");
            printable(&c.words);
        }
    }
}

fn printable(text: &str) {
    assert!(!text.chars().any(char::is_control), "{text:?}");
}
