//! The picture of a case: the position on the disk over time with the order of dispatch, and the
//! number of waiting requests over time.

use super::{Anchor, LEFT, Picture, SMALL, WIDE, width};
use crate::chart::{number, ticks};
use crate::explain::{letter, names};
use seekwell_core::{Action, BioId, Event, Instant, Op};
use seekwell_microscope::{Case, Step};
use std::collections::BTreeMap;

/// Left and right end of the x-axis, in SVG units.
const AXES: (f64, f64) = (104.0, WIDE - 32.0);
/// Height of the upper plot, and of the lower plot, in SVG units.
const HIGH: f64 = 340.0;
const LOW: f64 = 84.0;
/// Maximum number of timers and bios that are drawn, so that the picture of a large case can be
/// opened.
const MOST: usize = 4000;

/// A bio from its arrival to its completion.
#[derive(Clone)]
struct Way {
    id: BioId,
    event: Event,
    arrives: Instant,
    dispatched: Option<Instant>,
    completed: Option<Instant>,
    /// Position in the order of dispatch, from 1. The bios of one request have the same position.
    order: usize,
    /// The reason why the bio was dispatched at that time.
    why: String,
}

/// Returns the rule that decided, and the values of the decision.
fn reason(e: &Event) -> String {
    let said = e.text(crate::explain::process);
    match (e.rule, said.as_str()) {
        (Some(rule), "") => rule.id.to_owned(),
        (Some(rule), detail) => format!("{}: {detail}", rule.id),
        (None, detail) => detail.to_owned(),
    }
}

/// Follows each bio through the steps.
fn ways(steps: &[Step]) -> Vec<Way> {
    let mut all: Vec<Way> = Vec::new();
    let mut by_id: BTreeMap<BioId, usize> = BTreeMap::new();
    let (mut order, mut why) = (0, Vec::new());
    for s in steps {
        let e = &s.event;
        let mut each = |act: &mut dyn FnMut(&mut Way)| {
            for b in &s.bios {
                if let Some(w) = by_id.get(b).and_then(|i| all.get_mut(*i)) {
                    act(w);
                }
            }
        };
        match e.action {
            Action::Queue => {
                for id in &s.bios {
                    by_id.insert(*id, all.len());
                    all.push(Way {
                        id: *id,
                        event: e.clone(),
                        arrives: e.at,
                        dispatched: None,
                        completed: None,
                        order: 0,
                        why: String::new(),
                    });
                }
                why.clear();
            }
            Action::Why => why.push(reason(e)),
            Action::Issue => {
                order += 1;
                let said = std::mem::take(&mut why).join("; ");
                each(&mut |w| {
                    (w.dispatched, w.order) = (Some(e.at), order);
                    w.why.clone_from(&said);
                });
            }
            // The driver requeued the request, so its bios wait again.
            Action::Requeue => each(&mut |w| w.dispatched = None),
            Action::Complete => each(&mut |w| w.completed = w.completed.or(Some(e.at))),
            _ => {}
        }
    }
    all.truncate(MOST);
    all
}

/// Maps times and sectors to positions in the picture.
struct Axes {
    end_ms: f64,
    sectors: (f64, f64),
    top: f64,
}

fn ms(t: Instant) -> f64 {
    t.since_start() as f64 / 1e6
}

impl Axes {
    fn x(&self, t_ms: f64) -> f64 {
        AXES.0 + (AXES.1 - AXES.0) * (t_ms / self.end_ms).clamp(0.0, 1.0)
    }
    fn y(&self, sector: f64) -> f64 {
        let (low, high) = self.sectors;
        self.top + HIGH * (1.0 - (sector - low) / (high - low))
    }
    /// Returns round sectors that enclose the requested range.
    fn around(low: f64, high: f64) -> (Vec<f64>, (f64, f64)) {
        let span = (high - low).max(8.0);
        let step = ticks(span * 1.1, 5)[1];
        let first = (low / step).floor() * step;
        let n = ((high - first) / step).ceil().max(1.0) as usize;
        let all: Vec<f64> = (0..=n).map(|i| first + step * i as f64).collect();
        let last = first + step * n as f64;
        (all, (first, last))
    }
}

fn class(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        _ => "other",
    }
}

/// Returns the picture of a case whose run has steps.
pub fn explain(case: &Case, steps: &[Step], left: &[BioId]) -> String {
    let all = ways(steps);
    let layer = seekwell_sched::find(&case.elevator);
    let layer = layer.map_or(String::new(), |(s, v, _)| format!("{} {v}", s.name));
    let mut p = Picture::new(&format!("{}: {layer}", case.case));
    if !case.note.is_empty() {
        p.paragraph(&case.note, "dim");
    }
    if all.is_empty() {
        p.paragraph("Nothing arrives.", "dim");
        return p.finish();
    }
    legend(&mut p);
    let last = steps.iter().map(|s| ms(s.event.at)).fold(0.0, f64::max);
    let last = if last > 0.0 { last } else { 1.0 };
    let of = |w: &Way| (w.event.sector.0 as f64, w.event.sectors.0 as f64);
    let low = all.iter().map(|w| of(w).0).fold(f64::INFINITY, f64::min);
    let high = all.iter().map(|w| of(w).0 + of(w).1).fold(0.0, f64::max);
    let (marks, sectors) = Axes::around(low, high);
    p.y += 36.0;
    let axes = Axes {
        end_ms: last * 1.02,
        sectors,
        top: p.y,
    };
    frame(&mut p, &axes, &marks, last);
    timers(&mut p, &axes, steps);
    requests(&mut p, &axes, &all);
    p.y = axes.top + HIGH + 30.0;
    waiting(&mut p, &axes, &all, last);
    if !left.is_empty() {
        let left = names(left).replace('+', " ");
        p.paragraph(&format!("never dispatched: {left}"), "bad");
    }
    p.finish()
}

fn legend(p: &mut Picture) {
    p.y += 20.0;
    let y = p.y;
    let mut x = LEFT;
    let mark = |p: &mut Picture, x: f64, what: &str| {
        match what {
        "arrives" => p.push(format_args!(
            "<circle cx=\"{x:.1}\" cy=\"{:.1}\" r=\"4\" class=\"read hollow\" stroke-width=\"1.5\"/>",
            y - 4.0
        )),
        "in the device" => p.push(format_args!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"14\" height=\"5\" class=\"read\"/>",
            x - 5.0,
            y - 6.5
        )),
        "write" => p.push(format_args!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"14\" height=\"5\" class=\"write\"/>",
            x - 5.0,
            y - 6.5
        )),
        "waits" => p.line(format!("M{:.1} {:.1}h14", x - 5.0, y - 4.0), "wait", 1.5),
        _ => p.line(format!("M{:.1} {:.1}v12", x, y - 10.0), "queue", 1.5),
    }
    };
    for what in ["arrives", "waits", "in the device", "write", "timer"] {
        mark(p, x + 5.0, what);
        let said = match what {
            "in the device" => "read in the device, by order of dispatch",
            what => what,
        };
        p.small(x + 18.0, y, Anchor::Start, said);
        x += 18.0 + width(said, SMALL) + 22.0;
    }
}

fn frame(p: &mut Picture, axes: &Axes, marks: &[f64], last: f64) {
    p.small(AXES.0, axes.top - 10.0, Anchor::Start, "sector");
    for &m in marks {
        let y = axes.y(m);
        p.line(format!("M{} {y:.1}H{}", AXES.0, AXES.1), "grid", 1.0);
        p.small(AXES.0 - 8.0, y + 4.0, Anchor::End, &number(m));
    }
    let (bottom, (left, right)) = (axes.top + HIGH, AXES);
    p.line(
        format!("M{left} {}V{bottom}H{right}", axes.top),
        "axis",
        1.0,
    );
    across(p, axes, bottom, last);
}

/// Draws the ticks of the time axis.
fn across(p: &mut Picture, axes: &Axes, bottom: f64, last: f64) {
    for t in ticks(last, 8).into_iter().filter(|t| *t <= last) {
        let x = axes.x(t);
        p.line(format!("M{x:.1} {bottom:.1}v5"), "axis", 1.0);
        p.small(x, bottom + 18.0, Anchor::Middle, &number(t));
    }
}

fn timers(p: &mut Picture, axes: &Axes, steps: &[Step]) {
    let fired = steps.iter().filter(|s| s.event.action == Action::Timer);
    for s in fired.take(MOST) {
        let x = axes.x(ms(s.event.at));
        p.push(format_args!(
            "<path d=\"M{x:.1} {:.1}v14\" class=\"queue\" stroke-width=\"1.5\">",
            axes.top - 4.0
        ));
        p.title(&format!("{} ms: timer {}", s.event.at, reason(&s.event)));
        p.push(format_args!("</path>"));
    }
}

fn requests(p: &mut Picture, axes: &Axes, all: &[Way]) {
    // The line follows the head from one dispatch to the next.
    let mut sent: Vec<&Way> = all.iter().filter(|w| w.dispatched.is_some()).collect();
    sent.sort_by_key(|w| (w.order, w.event.sector));
    let place = |w: &Way| {
        let at = w.dispatched.unwrap_or(w.arrives);
        let y = axes.y(w.event.sector.0 as f64 + f64::from(w.event.sectors.0) / 2.0);
        (axes.x(ms(at)), y)
    };
    let mut path = String::new();
    for w in &sent {
        let (x, y) = place(w);
        let go = if path.is_empty() { 'M' } else { 'L' };
        path += &format!("{go}{x:.1} {y:.1}");
    }
    if sent.len() > 1 {
        p.line(path, "path", 1.0);
    }
    for w in all {
        let ((x, y), from) = (place(w), axes.x(ms(w.arrives)));
        if x > from {
            p.push(format_args!(
                "<path d=\"M{from:.1} {y:.1}H{x:.1}\" class=\"wait\" stroke-width=\"1.5\" \
                 stroke-dasharray=\"2 3\"/>"
            ));
        }
    }
    let (mut taken, mut told) = (Vec::new(), 0);
    for w in &sent {
        let (x, y) = place(w);
        let end = w.completed.map_or(x + 3.0, |t| axes.x(ms(t)));
        let at = w.dispatched.unwrap_or(w.arrives);
        p.push(format_args!(
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"5\" class=\"{}\" \
             stroke-width=\"0\" data-order=\"{}\" data-sector=\"{}\" data-ms=\"{at}\">",
            y - 2.5,
            (end - x).max(2.0),
            class(w.event.op),
            w.order,
            w.event.sector
        ));
        let done = w.completed;
        let done = done.map_or(String::new(), |t| format!(", done at {t} ms"));
        let why = match w.why.as_str() {
            "" => String::new(),
            why => format!(", because {why}"),
        };
        p.title(&format!(
            "{at} ms: {} dispatched as {}{done}{why}",
            describe_bio(w),
            w.order
        ));
        p.push(format_args!("</rect>"));
        if w.order > told {
            told = w.order;
            label(p, &mut taken, x, y, w.order);
        }
    }
    for w in all {
        let (y, from) = (place(w).1, axes.x(ms(w.arrives)));
        p.push(format_args!(
            "<circle cx=\"{from:.1}\" cy=\"{y:.1}\" r=\"4\" class=\"{} hollow\" \
             stroke-width=\"1.5\">",
            class(w.event.op)
        ));
        p.title(&format!("{} ms: {} arrives", w.arrives, describe_bio(w)));
        p.push(format_args!("</circle>"));
    }
}

/// Describes a bio, for example "3 R 200+8 from process 1".
fn describe_bio(w: &Way) -> String {
    let (e, letter) = (&w.event, letter(w.event.op, w.event.flags));
    let whose = e
        .task
        .map_or("no process".to_owned(), crate::explain::process);
    format!(
        "{} {letter} {}+{} from {whose}",
        w.id.0, e.sector, e.sectors
    )
}

/// Writes the position in the order of dispatch, if there is space for it.
fn label(p: &mut Picture, taken: &mut Vec<(f64, f64, f64)>, x: f64, y: f64, order: usize) {
    let text = order.to_string();
    let wide = width(&text, SMALL);
    let free = |y: f64| {
        let apart = |t: &(f64, f64, f64)| (t.1 - y).abs() > 13.0 || x > t.0 + t.2 || x + wide < t.0;
        taken.iter().all(apart)
    };
    for at in [y - 6.0, y + 15.0] {
        if free(at) && x + wide < WIDE {
            p.styled(x, at, SMALL, "", Anchor::Start, false, &text);
            taken.push((x, at, wide));
            return;
        }
    }
}

/// Draws the number of bios that had arrived and were not dispatched, and the number in the device.
fn waiting(p: &mut Picture, axes: &Axes, all: &[Way], last: f64) {
    let mut changes: Vec<(Instant, i64, i64)> = Vec::new();
    for w in all {
        changes.push((w.arrives, 1, 0));
        if let Some(t) = w.dispatched {
            changes.push((t, -1, 1));
            changes.extend(w.completed.map(|t| (t, 0, -1)));
        }
    }
    changes.sort_by_key(|c| c.0);
    let steps = |of: fn(&(Instant, i64, i64)) -> i64| {
        let (mut n, mut out) = (0, vec![(0.0, 0)]);
        for c in changes.iter().filter(|c| of(c) != 0) {
            n += of(c);
            // Changes at the same instant are one step.
            match out.last_mut().filter(|l| l.0 == ms(c.0)) {
                Some(l) => l.1 = n,
                None => out.push((ms(c.0), n)),
            }
        }
        out
    };
    let (queued, inside) = (steps(|c| c.1), steps(|c| c.2));
    let most = queued.iter().chain(&inside).map(|s| s.1).max().unwrap_or(1);
    let marks = whole(most.max(1));
    let high = marks.last().copied().unwrap_or(1.0);
    let (top, bottom) = (p.y + 22.0, p.y + 22.0 + LOW);
    let y = |n: f64| bottom - LOW * n / high;
    p.small(
        AXES.0,
        top - 10.0,
        Anchor::Start,
        "bios: waiting (line), in the device (area)",
    );
    for m in marks {
        p.line(format!("M{} {:.1}H{}", AXES.0, y(m), AXES.1), "grid", 1.0);
        p.small(AXES.0 - 8.0, y(m) + 4.0, Anchor::End, &number(m));
    }
    let outline = |s: &[(f64, i64)]| {
        let mut d = format!("M{:.1} {:.1}", axes.x(0.0), y(s[0].1 as f64));
        for (t, n) in &s[1..] {
            d += &format!("H{:.1}V{:.1}", axes.x(*t), y(*n as f64));
        }
        d + &format!("H{:.1}", axes.x(last))
    };
    let area = outline(&inside);
    p.push(format_args!(
        "<path d=\"{area}V{bottom:.1}H{:.1}Z\" class=\"read\" stroke-width=\"0\" \
         fill-opacity=\"0.35\"/>",
        axes.x(0.0)
    ));
    p.line(outline(&queued), "queue", 2.0);
    p.line(
        format!("M{} {top}V{bottom}H{}", AXES.0, AXES.1),
        "axis",
        1.0,
    );
    across(p, axes, bottom, last);
    p.small(
        (AXES.0 + AXES.1) / 2.0,
        bottom + 38.0,
        Anchor::Middle,
        "time, ms",
    );
    p.y = bottom + 44.0;
}

/// Returns the ticks of an axis of counts, which are whole numbers.
fn whole(most: i64) -> Vec<f64> {
    let mut t = ticks(most as f64, 3);
    t.retain(|m| m.fract() == 0.0);
    t
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;
    use seekwell_microscope::format::CsvOptions;
    use seekwell_microscope::{self as cases, read_cases};

    fn run_of_five_requests(scheduler: &str) -> (Case, cases::Outcome) {
        let dir =
            std::env::temp_dir().join(format!("seekwell-plot-{}-{scheduler}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let file = dir.join("<img onerror=1>.csv");
        let text =
            "0,1,1,R,400,8\n100,2,1,R,800,8\n200,3,1,W,200,8\n300,4,1,R,500,8\n300,5,2,R,508,8\n";
        std::fs::write(&file, text).expect("five bios");
        let options = CsvOptions {
            elevator: scheduler.to_owned(),
            ..CsvOptions::default()
        };
        let mut all = read_cases(&file, &options).expect("a case");
        std::fs::remove_dir_all(&dir).expect("ours");
        let case = all.remove(0);
        let out = cases::run(&case, true).expect("it runs");
        (case, out)
    }

    #[test]
    fn each_dispatch_is_drawn_at_its_time_and_sector() {
        for scheduler in ["deadline", "noop", "cfq", "mq-deadline"] {
            let (case, out) = run_of_five_requests(scheduler);
            let svg = explain(&case, &out.events, &out.left);
            check::well_formed(&svg);
            check::no_overlap(&svg);
            assert!(svg.contains(scheduler) && !svg.contains("<img"));
            for (i, (t, bios)) in out.dispatch.iter().enumerate() {
                let sectors = [400, 800, 200, 500, 508];
                for b in bios {
                    let sector = sectors[b.0 as usize - 1];
                    let mark = format!(
                        "data-order=\"{}\" data-sector=\"{sector}\" data-ms=\"{t}\"",
                        i + 1
                    );
                    assert!(svg.contains(&mark), "{scheduler}: {mark}");
                }
            }
            assert!(
                svg.contains("because "),
                "the reasons are told: {scheduler}"
            );
        }
    }

    #[test]
    fn axis_ticks_surround_the_requested_sectors() {
        let (marks, (low, high)) = Axes::around(79_999_000.0, 80_000_400.0);
        assert!(low <= 79_999_000.0 && high >= 80_000_400.0 && marks.len() <= 9);
        let (_, (low, high)) = Axes::around(0.0, 8.0);
        assert!(low == 0.0 && high >= 8.0);
        assert_eq!(whole(1), [0.0, 1.0]);
        assert!(whole(3).iter().all(|m| m.fract() == 0.0));
    }
}
