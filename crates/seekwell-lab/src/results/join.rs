//! Joins several results for one report.
//!
//! Treatments with the same label, version and tunables become one treatment. Cells are never
//! merged. If two folders contain the same cell, the name of the second cell is extended by the
//! name of its folder. Use [`crate::diff`] to compare a cell of one folder with a cell of another.

use super::{Results, Treatment};

/// Joined results, with the new indices of the cells and treatments.
#[derive(Clone, Debug, Default)]
pub struct Joined {
    /// The joined results.
    pub results: Results,
    /// For each input, the new indices of its cells.
    pub cells: Vec<Vec<usize>>,
    /// For each input, the new indices of its treatments.
    pub treatments: Vec<Vec<usize>>,
}

/// Joins results. Each input has a name, which is added to cells and treatments whose names would
/// not be unique.
///
/// # Errors
/// Returns the reason if the results cannot be shown in one report.
pub fn join(all: Vec<(String, Results)>) -> Result<Joined, String> {
    let mut out = Joined::default();
    for (n, (name, results)) in all.into_iter().enumerate() {
        if n == 0 {
            out.results.about = results.about.clone();
        } else {
            let (one, other) = (&mut out.results.about, &results.about);
            let method = (&one.method, &other.method);
            if one.paired != other.paired {
                return Err(format!(
                    "{name}: only one of the two results has blocks; make separate reports"
                ));
            }
            if method.0.margin != method.1.margin || method.0.alpha != method.1.alpha {
                return Err(format!(
                    "{name}: has another margin or confidence; make separate reports"
                ));
            }
            one.name = format!("{} and {}", one.name, other.name);
            one.description.clear();
            for note in &other.notes {
                if !one.notes.contains(note) {
                    one.notes.push(note.clone());
                }
            }
        }
        out.add(&name, results);
    }
    out.results.runs.sort_by_key(|r| r.key);
    Ok(out)
}

impl Joined {
    fn add(&mut self, name: &str, mut of: Results) {
        let all = &mut self.results;
        let place = |t: Treatment, all: &mut Vec<Treatment>| {
            if let Some(at) = all.iter().position(|o| *o == t) {
                return at;
            }
            let mut t = t;
            if all.iter().any(|o| o.label == t.label) {
                t.label = format!("{} ({name})", t.label);
            }
            all.push(t);
            all.len() - 1
        };
        let treatments: Vec<usize> = std::mem::take(&mut of.treatments)
            .into_iter()
            .map(|t| place(t, &mut all.treatments))
            .collect();
        let at = |t: usize| treatments.get(t).copied().unwrap_or(0);
        // Two cells of the same folder can have the same device, workload and machine. Their names
        // stay unchanged.
        let before = all.cells.len();
        let mut cells = Vec::new();
        for mut cell in of.cells {
            cell.treatments.iter_mut().for_each(|t| *t = at(*t));
            cell.reference = at(cell.reference);
            let same = |o: &super::Cell| {
                o.name == cell.name
                    || (&o.device, &o.workload, &o.machine)
                        == (&cell.device, &cell.workload, &cell.machine)
            };
            if all.cells[..before].iter().any(same) {
                cell.name = format!("{} ({name})", cell.name);
                cell.machine = match cell.machine.as_str() {
                    "" => name.to_owned(),
                    machine => format!("{machine}, {name}"),
                };
            }
            cells.push(all.cells.len());
            all.cells.push(cell);
        }
        let cell = |c: usize| cells.get(c).copied().unwrap_or(0);
        for mut run in of.runs {
            (run.key.cell, run.key.treatment) = (cell(run.key.cell), at(run.key.treatment));
            all.runs.push(run);
        }
        for mut s in of.summaries {
            (s.cell, s.treatment) = (cell(s.cell), at(s.treatment));
            all.summaries.push(s);
        }
        self.cells.push(cells);
        self.treatments.push(treatments);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, Run, RunKey};

    fn results(labels: [&str; 2]) -> Results {
        Results {
            cells: vec![Cell {
                name: "disk / fs-mark".to_owned(),
                device: "disk".to_owned(),
                workload: "fs-mark".to_owned(),
                treatments: vec![0, 1],
                reference: 1,
                ..Cell::default()
            }],
            treatments: labels
                .map(|l| Treatment {
                    label: l.to_owned(),
                    ..Treatment::default()
                })
                .to_vec(),
            runs: vec![Run {
                key: RunKey {
                    cell: 0,
                    block: 0,
                    treatment: 1,
                },
                seed: labels[1].len() as u64,
                ..Run::default()
            }],
            ..Results::default()
        }
    }

    #[test]
    fn joined_results_share_equal_treatments_and_keep_equal_cells_apart() {
        let of = |n: &str, r| (n.to_owned(), r);
        let all = vec![
            of("a", results(["noop", "cfq"])),
            of("b", results(["bfq", "noop"])),
        ];
        let joined = join(all).expect("they fit");
        let r = &joined.results;
        let labels: Vec<&str> = r.treatments.iter().map(|t| t.label.as_str()).collect();
        assert_eq!(labels, ["noop", "cfq", "bfq"]);
        assert_eq!(joined.treatments, [vec![0, 1], vec![2, 0]]);
        assert_eq!(joined.cells, [vec![0], vec![1]]);
        let names: Vec<&str> = r.cells.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["disk / fs-mark", "disk / fs-mark (b)"]);
        assert_eq!(
            (r.cells[1].machine.as_str(), r.cells[1].reference),
            ("b", 0)
        );
        let keys: Vec<_> = r
            .runs
            .iter()
            .map(|r| (r.key.cell, r.key.treatment))
            .collect();
        assert_eq!(keys, [(0, 1), (1, 0)]);
    }

    #[test]
    fn results_with_different_margins_are_not_joined() {
        let mut other = results(["noop", "cfq"]);
        other.about.method.margin = 0.1;
        let all = vec![
            ("a".to_owned(), results(["noop", "cfq"])),
            ("b".to_owned(), other),
        ];
        let e = join(all).expect_err("two margins");
        assert!(e.starts_with("b: ") && e.contains("margin"), "{e}");
    }
}
