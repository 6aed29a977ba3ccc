//! Agreement of replayed rounds with rounds that were recorded on a running kernel.

use super::agreement::neighbourhood;
use crate::style::{BAD, GOOD, HEAD, PLAIN};
use crate::table::{Align, Table, paint, painted};
use crate::units::share;
use seekwell_microscope::rounds::{
    ClassAgreement, Issued, NullScores, PoolChange, Replay, Round, RoundAgreement, Verdict,
};

fn issued(i: &Issued) -> String {
    match i {
        Issued::Id(id) => id.to_string(),
        Issued::Span(op, sector, n) => format!("{op} {sector}+{n}"),
    }
}

/// Returns the agreement of one round and of the null models, with the decisions around the first
/// difference.
pub fn round(round: &Round, replay: &Replay, own: &Verdict, null: &NullScores) -> String {
    let mut out = String::new();
    let n = round.dispatch.len();
    paint(
        &mut out,
        &format!("Agreement with the kernel's {n} decisions\n"),
        HEAD,
    );
    let mut t = Table::new(&[
        ("SCHEDULER", Align::Left),
        ("IDENTICAL", Align::Right),
        ("REQUEST", Align::Right),
        ("PREFIX", Align::Right),
        ("POOLS", Align::Right),
    ]);
    let mut row = |label: String, v: &Verdict, pools: &str| {
        let (word, style) = if v.identical() {
            ("yes", GOOD)
        } else {
            ("no", BAD)
        };
        let prefix = v.first_difference.unwrap_or(v.positions);
        t.row(vec![
            label.into(),
            painted(word, style),
            share(v.same as u64, v.positions as u64).into(),
            share(prefix as u64, v.positions as u64).into(),
            pools.into(),
        ]);
    };
    let pools = match (&round.pools, own.pools) {
        (None, _) => "-",
        (Some(_), true) => "identical",
        (Some(_), false) => "differ",
    };
    row(format!("{} (this)", round.elevator), own, pools);
    row("FIFO".to_owned(), &null.fifo, "");
    row("C-LOOK".to_owned(), &null.clook, "");
    out += &t.render(2);
    out += &neighbourhood(&round.dispatch, &replay.issued, "decision", issued);
    if let Some(want) = &round.pools {
        // Sizes are compared in their order, because the time of a change depends on the host.
        let bare = |p: &[PoolChange]| p.iter().map(|c| (c.1, c.2)).collect::<Vec<_>>();
        let show = |c: &(usize, u32)| format!("domain {} size {}", c.0, c.1);
        out += &neighbourhood(&bare(want), &bare(&replay.pools), "pool change", show);
    }
    out
}

/// Returns the agreement of all rounds of a file, by class. `pools` says whether any round has
/// token pools.
pub fn rounds(all: &RoundAgreement, pools: bool) -> String {
    let mut t = Table::new(&[
        ("CLASS", Align::Left),
        ("IDENTICAL ROUNDS", Align::Right),
        ("REQUEST", Align::Right),
        ("POOLS", Align::Right),
        ("FIFO", Align::Right),
        ("C-LOOK", Align::Right),
    ]);
    let mut row = |name: &str, c: &ClassAgreement| {
        let of = |n: usize| format!("{n} of {}", c.rounds);
        let style = if c.identical == c.rounds { GOOD } else { PLAIN };
        t.row(vec![
            name.into(),
            painted(of(c.identical), style),
            share(c.same as u64, c.positions as u64).into(),
            if pools {
                of(c.pools).into()
            } else {
                "-".into()
            },
            of(c.fifo).into(),
            of(c.clook).into(),
        ]);
    };
    for (name, c) in &all.0 {
        row(name, c);
    }
    let sum = all.over(|_| true);
    row("all", &sum);
    let mut out = t.render(2);
    out += "  REQUEST: same request at the same position. FIFO, C-LOOK: identical rounds of these \
            two null models.\n";
    if !sum.differ.is_empty() {
        out += "Rounds that differ from the kernel (to see one: --case NAME):\n";
    }
    for (case, at) in &sum.differ {
        out += &format!("  {case}: first difference at {}\n", at + 1);
    }
    out
}
