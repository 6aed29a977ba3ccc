//! Agreement of a run with a recording, with null models for comparison.

use super::names;
use crate::style::{BAD, DIM, GOOD, HEAD};
use crate::table::{Align, Cell, Table, paint, painted, wrap};
use crate::units::share;
use seekwell_core::Instant;
use seekwell_microscope::agree::{Beside, Tally};
use seekwell_microscope::{Agreement, Case, CaseError, Dispatched, Outcome};

/// Number of decisions that are shown before and after a difference.
const AROUND: usize = 4;

fn pct(part: usize, all: usize) -> Cell {
    if all == 0 {
        // No decision was expected, and none was made.
        return "100.0 %".into();
    }
    share(part as u64, all as u64).into()
}

fn row(label: String, t: &Tally, whole: Cell) -> Vec<Cell> {
    let timers = match (t.timed, t.timers) {
        (0, _) => "-".to_owned(),
        (1, n) if t.cases == 1 => (if n == 1 { "identical" } else { "differ" }).to_owned(),
        (all, n) => format!("{n} of {all}"),
    };
    vec![
        label.into(),
        whole,
        pct(t.same, t.expected),
        pct(t.same_request, t.expected),
        pct(t.prefix, t.expected),
        pct(t.lcs, t.expected),
        timers.into(),
    ]
}

fn columns(whole: &str) -> Table {
    Table::new(&[
        ("SCHEDULER", Align::Left),
        (whole, Align::Right),
        ("SAME", Align::Right),
        ("REQUEST", Align::Right),
        ("PREFIX", Align::Right),
        ("LCS", Align::Right),
        ("TIMERS", Align::Right),
    ])
}

fn legend(out: &mut String) {
    let text = "SAME: same request and same time at the same position. REQUEST: same request, at \
                any time. PREFIX: decisions before the first difference. LCS: longest common \
                subsequence of requests.";
    paint(out, &wrap(text, 2, 100), DIM);
}

pub(super) fn neighbourhood<T: PartialEq>(
    want: &[T],
    got: &[T],
    what: &str,
    show: impl Fn(&T) -> String,
) -> String {
    let at = want.iter().zip(got).take_while(|(a, b)| a == b).count();
    if at == want.len() && at == got.len() {
        return String::new();
    }
    let mut t = Table::new(&[
        ("", Align::Left),
        ("#", Align::Right),
        ("RECORDED", Align::Left),
        ("THIS RUN", Align::Left),
    ]);
    let from = at.saturating_sub(AROUND);
    let to = (at + AROUND + 1).min(want.len().max(got.len()));
    let cell = |v: &[T], i: usize| v.get(i).map_or("-".to_owned(), &show);
    for i in from..to {
        let same = want.get(i) == got.get(i);
        let mark = if i == at { ">" } else { "" };
        let style = if same { crate::style::PLAIN } else { BAD };
        t.row(vec![
            mark.into(),
            (i + 1).to_string().into(),
            cell(want, i).into(),
            painted(cell(got, i), style),
        ]);
    }
    let mut out = String::new();
    paint(
        &mut out,
        &format!("First difference: {what} {}\n", at + 1),
        HEAD,
    );
    out + &t.render(0)
}

/// Returns the agreement of one run, with the decisions around the first difference.
pub fn agreement(
    case: &Case,
    want: &[Dispatched],
    run: &Outcome,
    beside: &[Beside],
) -> Result<String, CaseError> {
    let timers = case.expected_timers();
    let a = Agreement::compare(want, timers.as_deref(), run);
    let mut out = String::new();
    let head = format!("Agreement with the recording of {} decisions\n", a.expected);
    paint(&mut out, &head, HEAD);
    let mut t = columns("IDENTICAL");
    let whole = |a: &Agreement| match a.identical() {
        true => painted("yes", GOOD),
        false => painted("no", BAD),
    };
    let one = |a: &Agreement| {
        let mut tally = Tally::default();
        tally.add(a);
        tally
    };
    t.row(row(
        format!("{} (this)", case.elevator),
        &one(&a),
        whole(&a),
    ));
    for b in beside {
        let label = format!("{} ({})", b.elevator, b.role);
        t.row(row(label, &one(&b.agreement), whole(&b.agreement)));
    }
    out += &t.render(2);
    legend(&mut out);
    let show = |d: &Dispatched| format!("{} {}", d.0, names(&d.1));
    out += &neighbourhood(want, &run.dispatch, "decision", show);
    if let Some(timers) = timers {
        out += &neighbourhood(&timers, &run.timers, "timer", Instant::to_string);
    }
    Ok(out)
}

/// Returns the agreement of all cases of a file. `rows` contains labels and sums.
pub fn summary(rows: &[(String, Tally)]) -> String {
    let mut t = columns("IDENTICAL CASES");
    for (label, tally) in rows {
        let whole = format!("{} of {}", tally.identical, tally.cases);
        let style = if tally.identical == tally.cases {
            GOOD
        } else {
            crate::style::PLAIN
        };
        t.row(row(label.clone(), tally, painted(whole, style)));
    }
    let mut out = t.render(2);
    legend(&mut out);
    out
}
