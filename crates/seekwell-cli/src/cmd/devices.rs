//! `seekwell devices [NAME]`: lists or describes the modelled devices.

use crate::cells::{catching, interrupted};
use crate::cli::Devices;
use crate::fail::Failure;
use crate::out::{Out, width};
use crate::progress::Progress;
use crate::setups;
use seekwell_device::{Preset, catalogue, describe};
use seekwell_evidence::curves::{Axis, Plot};
use seekwell_host::stop::signal;
use seekwell_report::compare::first::LINES;
use seekwell_report::{brief, catalog, chart, validation};
use serde_json::{Value, json};

fn as_json(p: &Preset) -> Value {
    let param = |q: &seekwell_device::Param| {
        json!({
            "name": q.def.key, "value": q.value.to_string(), "unit": q.unit(),
            "source": q.source.text(), "reference": q.reference, "help": q.def.doc,
        })
    };
    json!({
        "name": format!("{}:{}", p.kind, p.name),
        "aliases": p.aliases,
        "summary": p.summary,
        "parameters": p.params.iter().map(param).collect::<Vec<_>>(),
    })
}

fn rows_as_json(tables: &[validation::Measurements]) -> Value {
    let rows = tables.iter().flat_map(|(g, rows)| {
        rows.iter().map(|r| {
            let f = r.figure;
            json!({
                "table": g.title, "device": f.device, "figure": f.figure, "unit": f.unit,
                "published": [f.published.0, f.published.1], "source": f.source,
                "model": r.model, "error": r.error(), "holds": r.holds(),
                "bound": Some(f.bound.share()).filter(|a| a.is_finite()),
                "bound_from": f.bound.origin(),
                "kind": f.relation.text(), "null": r.null, "null_error": r.null_error(),
            })
        })
    });
    rows.collect()
}

fn validate(a: &Devices, quiet: bool) -> Result<(), Failure> {
    Out::check(a.output.output.as_deref())?;
    let figures = seekwell_evidence::validation::groups().map(|g| g.figures.len());
    let figures: usize = figures.sum();
    let progress = Progress::new(quiet, "figures", figures, 1);
    let tables = catching(|| {
        // Figures are computed one after the other. This callback counts them for the progress bar.
        let mut under_way = None;
        seekwell_evidence::validation::run(&mut |done, all| {
            drop(under_way.take());
            let next = (done < all).then(|| progress.task(0, ""));
            let going = signal().is_none();
            under_way = next;
            going
        })
    })?;
    drop(progress);
    let tables = tables.map_err(|e| Failure::input(e.to_string()))?;
    let mut out = Out::open(a.output.output.as_deref())?;
    if a.json {
        out.json(&rows_as_json(&tables))?;
    } else if a.markdown {
        out.text(&validation::markdown(&tables))?;
    } else if a.details {
        out.text(&validation::text(&tables, width()))?;
    } else {
        out.text(&validation::in_brief(&tables, width()))?;
    }
    out.done()?;
    let measured: usize = tables.iter().map(|t| t.1.len()).sum();
    match signal().filter(|_| measured < figures) {
        None => Ok(()),
        Some(signal) => Err(interrupted(signal, measured, figures, "figures")),
    }
}

fn plots_as_json(plots: &[Plot]) -> Value {
    let axis = |a: &Axis| json!({"label": a.label, "unit": a.unit});
    let plot = |p: &Plot| {
        let curves = p.curves.iter();
        json!({
            "title": p.title, "x": axis(&p.x), "y": axis(&p.y),
            "curves": curves
                .map(|c| json!({"name": c.name, "points": c.points}))
                .collect::<Vec<_>>(),
        })
    };
    plots.iter().map(plot).collect()
}

/// Prints the description of one device.
fn print_device(a: &Devices, name: &str) -> Result<(), Failure> {
    let bad = |e: seekwell_device::DeviceError| Failure::input(e.to_string());
    let (output, plot) = (a.output.output.as_deref(), a.plot.as_deref());
    for file in [output, plot] {
        Out::check(file)?;
        Out::apart(file, setups::preset_file(name))?;
    }
    Out::apart(output, plot)?;
    let p = describe(name).map_err(bad)?;
    let plots =
        seekwell_evidence::curves::pictures(name).map_err(|e| Failure::input(e.to_string()))?;
    if let Some(file) = &a.plot {
        let mut svg = Out::open(Some(file))?;
        svg.text(&chart::svg(&p.summary, &plots))?;
        svg.done()?;
    }
    let mut out = Out::open(a.output.output.as_deref())?;
    if a.json {
        let mut all = as_json(&p);
        all["plots"] = plots_as_json(&plots);
        out.json(&all)?;
    } else {
        if !a.details {
            out.text(&catalog::device_in_brief(&p, LINES, width()))?;
            return out.done();
        }
        out.text(&catalog::device(&p, width()))?;
        for plot in &plots {
            out.text("\n")?;
            out.text(&chart::terminal(plot, width()))?;
        }
    }
    out.done()
}

/// Lists the devices, or describes one.
pub fn run(a: &Devices, quiet: bool) -> Result<(), Failure> {
    if a.validate {
        return validate(a, quiet);
    }
    if let Some(name) = &a.name {
        return print_device(a, name);
    }
    let all = catalogue();
    let mut out = Out::open(a.output.output.as_deref())?;
    if a.json {
        let describe = |name: &str| describe(name).map_err(|e| Failure::input(e.to_string()));
        let list: Result<Vec<_>, _> = all
            .iter()
            .map(|e| describe(&e.name).map(|p| as_json(&p)))
            .collect();
        out.json(&Value::from(list?))?;
    } else {
        let (text, more) = match a.details {
            true => (catalog::devices(&all, width()), ""),
            false => (brief::devices(&all, width()), "Descriptions: --details. "),
        };
        out.text(&text)?;
        out.prose(&format!(
            "\n{more}One device in full: seekwell devices NAME. Parameters may be changed \
             (NAME,parameter=value,...). The path of a preset file can be used in place of NAME."
        ))?;
    }
    out.done()
}
