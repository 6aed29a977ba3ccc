//! Schedulers, devices, machines and formats as tables and as pages.

use crate::style::{DIM, HEAD, NAME};
use crate::table::{Align, Table, paint, painted, wrap};
use seekwell_core::Rule;
use seekwell_device::{Entry, Param, Preset, Source};
use seekwell_sched::kernels::stands_for;
use seekwell_sched::registry::{Layer, SchedulerInfo};
use seekwell_sched::tunable::{INT_MAX, Kind, Tunable, UINT_MAX, WBT_LAT_USEC};
use seekwell_sim::spec::machine::{Machine, WORDS};
use seekwell_trace::{FormatInfo, Volumes};

/// Returns the usual name of the layer.
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

/// Returns the version used for each range of kernel releases, for example "5.0 to 5.13 -> 5.10".
/// The text says "nearest" if the rules of those releases differ or were not examined.
fn releases(scheduler: &str) -> Vec<String> {
    let all = stands_for(scheduler).into_iter();
    all.map(|(version, span, same)| match same {
        true => format!("{span} -> {version}"),
        false => format!("{span} -> {version} (nearest)"),
    })
    .collect()
}

/// Returns the releases that the versions of all schedulers represent, as one paragraph.
pub fn all_releases(all: &[SchedulerInfo]) -> String {
    let of = |s: &SchedulerInfo| match releases(s.name) {
        none if none.is_empty() => None,
        some => Some(format!("{}: {}", s.name, some.join("; "))),
    };
    let known: Vec<_> = all.iter().filter_map(of).collect();
    format!(
        "The name of a kernel release selects the version that represents it (bfq-5.15, or \
         --kernel 5.15 for all). {}.",
        known.join(". ")
    )
}

/// Lists the schedulers, one line each.
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

/// Returns the range of a tunable. The limits of C types are written as words.
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

/// Returns the page of a scheduler; `version` is one of its versions.
pub fn scheduler(s: &SchedulerInfo, version: &str, width: usize) -> String {
    let mut out = String::new();
    paint(&mut out, s.name, NAME);
    let mut out = wrap(&format!("{out}: {}", s.summary), 0, width) + "\n";
    let mut facts = Table::new(&[("", Align::Left), ("", Align::Left)]);
    let pids = if s.per_process {
        "distinguished: a trace without pids does not show its behaviour"
    } else {
        "not distinguished"
    };
    facts.row(vec!["layer".into(), layer_name(s.layer).into()]);
    facts.row(vec!["versions".into(), versions(s).into()]);
    for (i, r) in releases(s.name).into_iter().enumerate() {
        let head = if i == 0 { "kernels" } else { "" };
        facts.row(vec![head.into(), r.into()]);
    }
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
    if let Some(t) = of_the_queue(s) {
        paint(&mut out, "  tunable of the queue\n", DIM);
        out += "  ";
        paint(&mut out, t.name, NAME);
        out += &format!("  default {} {}, {}\n", t.default, t.unit, range(t));
        out += &wrap(t.help, 6, width);
    }
    out.push('\n');
    out += &rules("RULES", s.rules, width);
    section(&mut out, "SOURCE", s.source, width);
    out
}

/// Returns the tunable that every queue of the layer has, and that is set like the scheduler's own.
fn of_the_queue(s: &SchedulerInfo) -> Option<&'static Tunable> {
    (s.layer == Layer::Mq).then_some(&WBT_LAT_USEC)
}

/// Returns a table of rules, each with its name, kernel function and sentence.
pub fn rules(head: &str, rules: &[&Rule], width: usize) -> String {
    let mut out = String::new();
    paint(&mut out, head, HEAD);
    paint(
        &mut out,
        "  names as in `seekwell explain`, with the kernel function\n",
        DIM,
    );
    for r in rules {
        out += "  ";
        paint(&mut out, r.id, NAME);
        out += &format!("  {}\n", r.kernel);
        out += &wrap(r.says, 6, width);
    }
    out
}

/// Lists the devices, one line each.
pub fn devices(all: &[Entry], width: usize) -> String {
    let mut t = Table::new(&[("NAME", Align::Left), ("WHAT IT IS", Align::Left)]);
    for d in all {
        t.row(vec![painted(&*d.name, NAME), d.summary.as_str().into()]);
        for a in &d.aliases {
            t.row(vec![
                painted(format!("  {a}"), DIM),
                painted("the same", DIM),
            ]);
        }
    }
    t.render_within(0, width)
}

/// Returns a parameter's value with its unit, shortened to fit one line.
fn value_of(q: &Param) -> String {
    let value = format!("{} {}", q.value, q.unit());
    // A curve has dozens of points. All of them are in the preset file.
    let value = match value.char_indices().nth(30) {
        Some((i, _)) => format!("{}...", &value[..i]),
        None => value,
    };
    value.trim_end().to_owned()
}

/// Returns the most important parameters of a device, in at most `most` lines, and the names of the
/// others. Parameters that the user typed are first, then published, fitted and estimated ones.
pub fn device_in_brief(p: &Preset, most: usize, width: usize) -> String {
    let mut title = String::new();
    paint(&mut title, &format!("{}:{}", p.kind, p.name), NAME);
    let title = wrap(&format!("{title}: {}", p.summary), 0, width);
    let rank = |q: &&Param| match q.source {
        Source::Override => 0,
        Source::DataSheet => 1,
        Source::Recalled => 2,
        Source::Measured => 3,
        Source::Fitted => 4,
        Source::Estimate => 5,
        Source::Default => 6,
    };
    let mut all: Vec<&Param> = p.params.iter().collect();
    all.sort_by_key(rank);
    let told = |shown: usize| {
        let mut t = Table::new(&[
            ("PARAMETER", Align::Left),
            ("VALUE", Align::Left),
            ("FROM", Align::Left),
            ("WHAT IT IS", Align::Left),
        ]);
        for q in &all[..shown] {
            t.row(vec![
                painted(q.def.key, NAME),
                value_of(q).into(),
                q.source.text().into(),
                q.def.doc.into(),
            ]);
        }
        let mut rest: Vec<(&str, Vec<&str>)> = Vec::new();
        for q in &all[shown..] {
            match rest.iter_mut().find(|r| r.0 == q.source.text()) {
                Some(r) => r.1.push(q.def.key),
                None => rest.push((q.source.text(), vec![q.def.key])),
            }
        }
        let mut out = format!("{title}{}", t.render_within(2, width));
        for (source, keys) in rest {
            out += wrap(&format!("{source}: {}", keys.join(", ")), 4, width)
                .get(2..)
                .unwrap_or("");
        }
        out + &wrap(
            "All values with their sources, and the curves: --details.",
            0,
            width,
        )
    };
    let mut fewer = (0..=all.len()).rev().map(told);
    let fits = |text: &String| text.lines().count() <= most;
    fewer.find(fits).unwrap_or_else(|| told(0))
}

/// Returns all parameters of a device with unit and source.
pub fn device(p: &Preset, width: usize) -> String {
    let mut out = String::new();
    paint(&mut out, &format!("{}:{}", p.kind, p.name), NAME);
    out += &format!(": {}\n\n", p.summary);
    let mut t = Table::new(&[
        ("PARAMETER", Align::Left),
        ("VALUE", Align::Left),
        ("FROM", Align::Left),
        ("WHAT IT IS", Align::Left),
    ]);
    for q in &p.params {
        let from = if q.reference.is_empty() {
            q.source.text().to_owned()
        } else {
            format!("{}*", q.source.text())
        };
        t.row(vec![
            painted(q.def.key, NAME),
            value_of(q).into(),
            from.into(),
            q.def.doc.into(),
        ]);
    }
    out += &t.render_within(2, width);
    out.push('\n');
    for q in p.params.iter().filter(|q| !q.reference.is_empty()) {
        out += &wrap(&format!("* {}: {}", q.def.key, q.reference), 2, width);
    }
    out
}

/// Lists the machines, one line each.
pub fn machines(all: &[Machine], width: usize) -> String {
    let mut t = Table::new(&[
        ("NAME", Align::Left),
        ("YEAR", Align::Right),
        ("WHAT IT IS", Align::Left),
    ]);
    for m in all {
        t.row(vec![
            painted(&m.name, NAME),
            m.year.to_string().into(),
            (&*m.summary).into(),
        ]);
    }
    t.render_within(0, width)
}

/// Returns the page of a machine.
pub fn machine(m: &Machine, width: usize) -> String {
    let mut out = String::new();
    paint(&mut out, &m.name, NAME);
    out += &format!("  {} ({})\n\n", m.summary, m.year);
    let mut t = Table::new(&[
        ("WORD", Align::Left),
        ("VALUE", Align::Left),
        ("SOURCE", Align::Left),
    ]);
    // The order is that of the documentation.
    for w in WORDS {
        for o in m.options.iter().filter(|o| o.name == w.name) {
            t.row(vec![
                painted(&o.name, NAME),
                (&*o.value).into(),
                (&*o.source).into(),
            ]);
        }
    }
    out += &t.render_within(0, width);
    let devices = format!("Modelled devices for it: {}", m.devices.join(", "));
    out.push('\n');
    out += &wrap(&devices, 0, width);
    out
}

/// Lists the trace formats, one line each.
pub fn formats(all: &[FormatInfo], width: usize) -> String {
    let mut t = Table::new(&[
        ("NAME", Align::Left),
        ("READ", Align::Left),
        ("WRITTEN", Align::Left),
        ("PIDS", Align::Left),
        ("COMPLETIONS", Align::Left),
        ("WHAT IT IS", Align::Left),
    ]);
    for f in all {
        t.row(vec![
            painted(f.name, NAME),
            "yes".into(),
            if f.create.is_some() { "yes" } else { "no" }.into(),
            f.carries.pids.to_string().into(),
            f.carries.completions.to_string().into(),
            f.summary.into(),
        ]);
    }
    t.render_within(0, width)
}

/// Returns the page of a trace format.
pub fn format(f: &FormatInfo, width: usize) -> String {
    let mut out = String::new();
    paint(&mut out, f.name, NAME);
    out += &format!(": {}\n\n", f.summary);
    let c = &f.carries;
    let mut t = Table::new(&[("", Align::Left), ("", Align::Left)]);
    t.row(vec!["file names".into(), f.extensions.join(", ").into()]);
    t.row(vec![
        "written, too".into(),
        if f.create.is_some() { "yes" } else { "no" }.into(),
    ]);
    t.row(vec!["times".into(), c.time.into()]);
    t.row(vec!["pids".into(), c.pids.to_string().into()]);
    t.row(vec!["completions".into(), c.completions.to_string().into()]);
    t.row(vec![
        "insert and issue times".into(),
        c.issues.to_string().into(),
    ]);
    t.row(vec!["priorities".into(), c.ioprio.to_string().into()]);
    t.row(vec!["flags".into(), c.flags.to_string().into()]);
    out += &t.render(2);
    out.push('\n');
    out + &wrap(f.help, 2, width)
}

/// Returns the page `docs/formats.md`.
pub fn formats_markdown(all: &[FormatInfo]) -> String {
    let mut out =
        "# Trace formats\n\nGenerated by `make docs` from the registry; a test compares them. \
         `seekwell formats NAME` prints the same.\n\n`seekwell replay FILE` and `seekwell convert \
         IN... -o OUT` read all formats, also compressed with zstd or gzip, from files, pipes and \
         standard input (`-`). They detect the format by its first bytes; where that is \
         impossible, give `--format NAME`. `convert` writes the formats marked as written, and \
         reports what the new format cannot represent. `seekwell explain` reads the CSV too.\n\n\
         | format | written | pids | completions | times | devices | what it is |\n\
         |---|---|---|---|---|---|---|\n"
            .to_owned();
    for f in all {
        let c = &f.carries;
        let devices = match f.volumes {
            Volumes::One => "one",
            Volumes::Numbered => "by MAJOR,MINOR",
            Volumes::Named => "by name",
        };
        let written = if f.create.is_some() { "yes" } else { "no" };
        out += &format!(
            "| [{}](#{}) | {written} | {} | {} | {} | {devices} | {} |\n",
            f.name, f.name, c.pids, c.completions, c.time, f.summary
        );
    }
    for f in all {
        out += &format!(
            "\n## {}\n\n{}\n\nUsual file names: {}.\n",
            f.name,
            f.help,
            f.extensions
                .iter()
                .map(|e| format!("`*.{e}`"))
                .collect::<Vec<_>>()
                .join(", ")
        );
    }
    out
}

/// Returns the page `docs/schedulers.md`.
pub fn schedulers_markdown(all: &[SchedulerInfo]) -> String {
    let mut out =
        "# Schedulers\n\nGenerated by `make docs` from the registry; a test compares them. \
         `seekwell schedulers NAME --details` prints the same.\n\n"
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
        let releases = releases(s.name);
        if !releases.is_empty() {
            out += &format!(
                "\nKernel releases, and the version for each: {}.\n",
                releases.join("; ")
            );
        }
        let tunables = (s.tunables)(s.versions.first().map_or("", |v| v.0));
        if tunables.is_empty() && s.layer == Layer::Mq {
            out += "\nThe scheduler has no tunables; `wbt_lat_usec` is a tunable of its queue.\n";
        } else if tunables.is_empty() {
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
        if let Some(t) = of_the_queue(s).filter(|_| !tunables.is_empty()) {
            out += &format!(
                "| `{}` (of the queue) | {} | {} | {} | {} |\n",
                t.name,
                t.unit,
                t.default,
                range(t),
                t.help
            );
        }
        out += "\n| rule in reasons | kernel function | what it says |\n|---|---|---|\n";
        for r in s.rules {
            out += &format!("| `{}` | `{}` | {} |\n", r.id, r.kernel, r.says);
        }
        out += &format!("\nSource: {}.\n", s.source.trim_end_matches('.'));
    }
    out
}
