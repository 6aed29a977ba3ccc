//! What there is: the registries as tables and as pages.

use crate::style::{DIM, HEAD, NAME};
use crate::table::{Align, Table, paint, painted, wrap};
use seekwell_sched::registry::{Layer, SchedulerInfo};
use seekwell_sched::tunable::{INT_MAX, Kind, Tunable, UINT_MAX};

/// The layer in the field's words.
pub fn layer_name(layer: Layer) -> &'static str {
    match layer {
        Layer::Legacy => "single-queue",
        Layer::Mq => "blk-mq",
    }
}

fn versions(s: &SchedulerInfo) -> String {
    let names: Vec<_> = s.versions.iter().map(|v| v.0).collect();
    names.join(", ")
}

/// One line a scheduler.
pub fn schedulers(all: &[SchedulerInfo], width: usize) -> String {
    let mut t = Table::new(&[
        ("NAME", Align::Left),
        ("LAYER", Align::Left),
        ("VERSIONS", Align::Left),
        ("WHAT IT DOES", Align::Left),
    ]);
    for s in all {
        t.row(vec![
            painted(s.name, NAME),
            layer_name(s.layer).into(),
            versions(s).into(),
            s.summary.into(),
        ]);
    }
    t.render_within(0, width)
}

/// The range of a tunable, with the C limits by name.
pub fn range(t: &Tunable) -> String {
    let limit = |v: i64| match v {
        INT_MAX => "INT_MAX".to_owned(),
        UINT_MAX => "UINT_MAX".to_owned(),
        i64::MAX => "no limit".to_owned(),
        v if v == i64::from(i32::MIN) => "INT_MIN".to_owned(),
        v => v.to_string(),
    };
    match t.kind {
        Kind::Bool => "0 or 1".to_owned(),
        Kind::Text => "text".to_owned(),
        Kind::ReadOnly => "read only".to_owned(),
        _ => format!("{}..{}", limit(t.min), limit(t.max)),
    }
}

fn section(out: &mut String, head: &str, text: &str, width: usize) {
    out.push('\n');
    paint(out, head, HEAD);
    out.push('\n');
    out.push_str(&wrap(text, 2, width));
}

/// All about one scheduler; `version` is one of its own.
pub fn scheduler(s: &SchedulerInfo, version: &str, width: usize) -> String {
    let mut out = String::new();
    paint(&mut out, s.name, NAME);
    out += &format!(": {}\n\n", s.summary);
    let mut facts = Table::new(&[("", Align::Left), ("", Align::Left)]);
    let pids = if s.per_process {
        "told apart: a trace without pids hides what it does"
    } else {
        "not told apart"
    };
    facts.row(vec!["layer".into(), layer_name(s.layer).into()]);
    facts.row(vec!["versions".into(), versions(s).into()]);
    facts.row(vec!["shown here".into(), version.into()]);
    facts.row(vec!["processes".into(), pids.into()]);
    out += &facts.render(2);
    section(&mut out, "HISTORY", s.history, width);
    section(&mut out, "WHEN NOT TO USE IT", s.not_when, width);
    out.push('\n');
    paint(&mut out, "TUNABLES", HEAD);
    paint(&mut out, "  as in /sys/block/DEVICE/queue/iosched/\n", DIM);
    let tunables = (s.tunables)(version);
    if tunables.is_empty() {
        out += "  none\n";
    }
    for t in tunables {
        out += "  ";
        paint(&mut out, t.name, NAME);
        let unit = if t.unit.is_empty() || t.kind == Kind::Bool {
            String::new()
        } else {
            format!(" {}", t.unit)
        };
        out += &format!("  default {}{unit}, {}\n", t.default, range(t));
        out += &wrap(t.help, 6, width);
    }
    section(&mut out, "SOURCE", s.source, width);
    out
}

/// The page `docs/schedulers.md`.
pub fn schedulers_markdown(all: &[SchedulerInfo]) -> String {
    let mut out =
        "# Schedulers\n\nMade by `make docs` from the registry; a test holds it to that. \
                   All of this is also in `seekwell schedulers NAME`.\n\n"
            .to_owned();
    out += "| scheduler | layer | versions (first: default) | what it does |\n|---|---|---|---|\n";
    for s in all {
        out += &format!(
            "| [{}](#{}) | {} | {} | {} |\n",
            s.name,
            s.name,
            layer_name(s.layer),
            versions(s),
            s.summary
        );
    }
    for s in all {
        out += &format!(
            "\n## {}\n\n{}\n\nWhen not to use it: {}\n",
            s.name, s.history, s.not_when
        );
        let tunables = (s.tunables)(s.versions.first().map_or("", |v| v.0));
        if tunables.is_empty() {
            out += "\nNo tunables.\n";
        } else {
            out += "\n| tunable | unit | default | range | what it does |\n|---|---|---|---|---|\n";
        }
        for t in tunables {
            let (unit, range) = (t.unit, range(t));
            out += &format!(
                "| `{}` | {unit} | {} | {range} | {} |\n",
                t.name, t.default, t.help
            );
        }
        out += &format!("\nSource: {}.\n", s.source.trim_end_matches('.'));
    }
    out
}
