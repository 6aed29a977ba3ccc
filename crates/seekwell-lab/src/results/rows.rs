//! Builds the table rows of the Parquet files from runs and their stored entries.

use super::entry::{Layer, OperationRow, Series, SeriesRow, TextsOf};
use super::tables::Item;
use super::{About, Cell, Outcome, Run, Treatment, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The fields of a table row that identify a run.
#[derive(Clone, Copy)]
pub(super) struct Named<'a> {
    pub number: u64,
    pub about: &'a About,
    pub cell: &'a Cell,
    pub treatment: &'a Treatment,
    pub run: &'a Run,
}

/// Formats a map of texts as JSON.
pub(super) fn json(map: &BTreeMap<String, String>) -> String {
    // JSON can represent every text.
    serde_json::to_string(map).unwrap_or_default()
}

/// Returns the names of the parameters that the experiment varies, over all cells.
pub(super) fn axes(cells: &[Cell]) -> Vec<String> {
    let all: BTreeSet<&String> = cells.iter().flat_map(|c| c.axes.keys()).collect();
    all.into_iter().cloned().collect()
}

impl<'a> Named<'a> {
    fn columns(&self) -> Vec<Item<'a>> {
        let mut row = Vec::with_capacity(40);
        row.extend([
            Item::Int(self.number),
            Item::Text(&self.cell.name),
            Item::Text(&self.cell.device),
            Item::Text(&self.cell.workload),
            Item::Text(&self.cell.machine),
            Item::Text(&self.treatment.label),
            Item::Text(&self.treatment.scheduler),
            Item::Int(u64::from(self.run.key.block)),
        ]);
        row
    }
}

/// Builds the table rows of a run in `runs.parquet`, and calls `push` with each.
pub(super) fn of_run<E>(
    of: &Named<'_>,
    axes: &[String],
    mut push: impl FnMut(&[Item<'_>]) -> Result<(), E>,
) -> Result<(), E> {
    let (cell, run) = (of.cell, of.run);
    let (cell_axes, tunables) = (json(&cell.axes), json(&of.treatment.tunables));
    let (outcome, why) = match &run.outcome {
        Outcome::Done => ("done", Item::Null),
        Outcome::Early(why) => ("early", Item::Text(why)),
        Outcome::Censored(why) => ("censored", Item::Text(why)),
        Outcome::Failed(why) => ("failed", Item::Text(why)),
    };
    // JSON can represent all names and numbers.
    let starved = serde_json::to_string(&run.starved).unwrap_or_default();
    let mut row = of.columns();
    row.extend([
        Item::Text(&of.about.name),
        Item::Text(&cell.substrate),
        Item::Text(&cell_axes),
        Item::Text(&of.treatment.version),
        Item::Text(&tunables),
        Item::Int(run.key.cell as u64),
        Item::Int(run.key.treatment as u64),
        Item::Bool(cell.reference == run.key.treatment),
        Item::Int(u64::from(run.place)),
        Item::Unsigned(run.seed),
        Item::Text(&run.spec_hash),
        Item::Text(outcome),
        why,
        match run.starved.is_empty() {
            true => Item::Null,
            false => Item::Text(&starved),
        },
        Item::int(run.began_unix_ns),
        Item::Int(run.duration_ns),
    ]);
    let fixed = row.len();
    // A run without values has one table row, which contains the reason.
    let none: &[Option<&Value>] = &[None];
    let some: Vec<Option<&Value>> = run.values.iter().map(Some).collect();
    for value in if some.is_empty() { none } else { &some } {
        row.truncate(fixed);
        match value {
            Some(v) => row.extend([
                Item::Text(&v.metric.name),
                Item::Text(&v.metric.unit),
                Item::Bool(v.metric.higher_is_better),
                Item::float(v.metric.step),
                Item::Bool(v.metric.name == cell.primary.name),
                Item::Float(v.value),
                Item::Int(v.n),
            ]),
            None => row.extend([Item::Null; 7]),
        }
        let axis = |a: &String| cell.axes.get(a).map_or(Item::Null, |v| Item::Text(v));
        row.extend(axes.iter().map(axis));
        push(&row)?;
    }
    Ok(())
}

/// Builds a table row of `operations.parquet`.
pub(super) fn of_operation<'a>(of: &Named<'a>, o: &'a OperationRow) -> Vec<Item<'a>> {
    let mut row = of.columns();
    row.extend([
        Item::Text(o.layer.name()),
        Item::Text(&o.kind),
        Item::Int(o.count),
        Item::Int(o.bytes),
        Item::int(o.errors),
        Item::Float(o.mean_ns),
        Item::Int(o.min_ns),
    ]);
    row.extend(o.quantiles_ns.map(Item::Int));
    row.extend([
        Item::Int(o.max_ns),
        Item::int(o.held_ns),
        Item::int(o.began_ns),
        Item::int(o.ended_ns),
    ]);
    row
}

/// Builds a table row of `series.parquet`.
pub(super) fn of_second<'a>(of: &Named<'a>, s: &'a Series, second: &SeriesRow) -> Vec<Item<'a>> {
    let &SeriesRow(at_s, ops, bytes, sum_ns, max_ns, last) = second;
    let block = s.layer == Layer::Block;
    let mut row = of.columns();
    row.extend([
        Item::Text(s.layer.name()),
        Item::Text(&s.kind),
        Item::Int(at_s),
        Item::Int(ops),
        Item::int(block.then_some(last)),
        Item::Int(bytes),
        Item::Int(sum_ns),
        Item::Int(max_ns),
        Item::int((!block).then_some(last)),
    ]);
    row
}

/// Builds the table row of a run in `records.parquet`.
pub(super) fn of_record<'a>(of: &Named<'a>, texts: &'a TextsOf) -> Vec<Item<'a>> {
    let text = |t: &'a str| {
        if t.is_empty() {
            Item::Null
        } else {
            Item::Text(t)
        }
    };
    let mut row = of.columns();
    row.extend([
        Item::Text(&of.run.spec_hash),
        text(&texts.spec),
        text(&texts.record),
    ]);
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::columns::{Column, OPERATIONS, RECORDS, RUN, RUNS, SERIES};

    #[test]
    fn rows_have_a_value_for_each_column() {
        let (about, cell) = (About::default(), Cell::default());
        let (treatment, run) = (Treatment::default(), Run::default());
        let of = Named {
            number: 0,
            about: &about,
            cell: &cell,
            treatment: &treatment,
            run: &run,
        };
        let long = |columns: &[Column]| RUN.len() + columns.len();
        assert_eq!(of.columns().len(), RUN.len());
        let rows = of_run(&of, &[], |row| {
            assert_eq!(row.len(), long(RUNS.columns));
            Ok::<(), ()>(())
        });
        assert_eq!(rows, Ok(()));
        let operation = OperationRow::default();
        assert_eq!(
            of_operation(&of, &operation).len(),
            long(OPERATIONS.columns)
        );
        let (series, second) = (Series::default(), SeriesRow::default());
        assert_eq!(of_second(&of, &series, &second).len(), long(SERIES.columns));
        let texts = TextsOf::default();
        assert_eq!(of_record(&of, &texts).len(), long(RECORDS.columns));
        for (i, (_, name)) in crate::results::QUANTILES.iter().enumerate() {
            assert_eq!(OPERATIONS.columns[i + 7].name, *name);
        }
    }
}
