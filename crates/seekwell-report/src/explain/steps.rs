//! Steps of a case: each event, its reason, and the state after it.

use super::{letter, names};
use crate::style::{DIM, GOOD, HEAD, NAME};
use crate::table::{columns_of, paint, wrap};
use anstyle::Style;
use seekwell_core::{Action, BioId, Class, Event, Instant, More, TaskId};
use seekwell_microscope::format::When;
use seekwell_microscope::{Case, CaseError, CaseInput, Step, What};
use seekwell_sched::find;

/// Returns the name of the case, the scheduler and the conditions.
pub fn heading(case: &Case) -> String {
    let mut out = String::new();
    paint(&mut out, &case.case, HEAD);
    if !case.note.is_empty() {
        out += &format!(": {}", case.note);
    }
    let layer = find(&case.elevator).map_or(String::new(), |(s, v, _)| {
        format!("{} {v} ({})", s.name, crate::catalog::layer_name(s.layer))
    });
    let d = &case.device;
    let ms = d.service_us / 1000.0;
    let spin = if d.rotational {
        "rotating"
    } else {
        "not rotating"
    };
    out += &format!(
        "\n{layer}, HZ {}; device: {ms} ms/request, depth {}, {spin}\n",
        case.hz, d.depth
    );
    for (k, v) in case.tunable_texts() {
        out += &format!("  {k} = {v}\n");
    }
    out
}

/// Column where the text of a line begins.
const TEXT: usize = 25;

struct Writer<'a> {
    out: String,
    width: usize,
    time: Option<Instant>,
    state: Option<&'a str>,
}

impl<'a> Writer<'a> {
    /// Writes one line. A time that equals that of the previous line is omitted.
    fn line(&mut self, at: Instant, word: &str, style: Style, text: &str) {
        let time = if self.time == Some(at) {
            String::new()
        } else {
            at.to_string()
        };
        self.time = Some(at);
        self.out += &format!("{time:>12}  ");
        paint(&mut self.out, &format!("{word:<9}"), style);
        if TEXT + columns_of(text) <= self.width {
            self.out += &format!("  {text}\n");
        } else {
            // Text that does not fit continues on the next line, indented by two more columns.
            let rest = wrap(text, TEXT + 2, self.width.max(2 * TEXT));
            self.out += &format!("  {}", rest.trim_start_matches(' '));
        }
    }
    fn plain(&mut self, at: Instant, word: &str, text: &str) {
        self.line(at, word, crate::style::PLAIN, text);
    }
    fn state(&mut self, at: Instant, state: Option<&'a String>) {
        let Some(s) = state.map(String::as_str) else {
            return;
        };
        // A state that did not change is not shown.
        if s.is_empty() || self.state == Some(s) {
            return;
        }
        self.state = Some(s);
        for l in s.lines() {
            self.line(at, "state", DIM, l);
        }
    }
}

fn place(e: &Event) -> String {
    let op = letter(e.op, e.flags);
    format!("{op} {}+{}", e.sector, e.sectors)
}

fn class(c: Class) -> &'static str {
    match c {
        Class::None => "none",
        Class::Rt => "RT",
        Class::Be => "BE",
        Class::Idle => "IDLE",
    }
}

fn control(what: &What) -> Option<String> {
    Some(match what {
        What::Bio { .. } => return None,
        What::Exit(t) => format!("process {} exits", t.0),
        What::Prio(t, p) => format!("process {}: ioprio {} {}", t.0, class(p.class), p.level),
        What::Tunable(k, v) => format!("{k} = {v}"),
        What::Drain => "forced drain".to_owned(),
        What::Weight(g, w) => format!("cgroup {g}: weight {w}"),
        What::Plug(t) => format!("task {} opens a plug", t.0),
        What::Unplug(t) => format!("task {} closes its plug", t.0),
        What::Requeue(id) => format!("the driver requeues the request of bio {id}"),
        What::Switch(name) => format!("switch to {name}"),
    })
}

/// Controls (exits, writes to tunables and so on) are not events. They are shown between the
/// submissions, in the order of the case.
struct Controls {
    list: Vec<(usize, Instant, String)>,
    bios: Vec<(BioId, usize)>,
    next: usize,
}

impl Controls {
    fn new(inputs: &[CaseInput]) -> Self {
        let (mut list, mut bios) = (Vec::new(), Vec::new());
        for (i, input) in inputs.iter().enumerate() {
            match (&input.what, input.when) {
                (What::Bio { id, .. }, _) => bios.push((BioId(*id), i)),
                (what, When::At(t)) => list.extend(control(what).map(|c| (i, t, c))),
                (_, When::After(..)) => {}
            }
        }
        list.sort_by_key(|c| (c.1, c.0));
        bios.sort();
        Controls {
            list,
            bios,
            next: 0,
        }
    }
    /// Returns the next control, if it occurred before this event.
    fn before(&mut self, e: Option<&Event>) -> Option<(Instant, String)> {
        let (i, t, text) = self.list.get(self.next)?;
        let comes_first = e.is_none_or(|e| {
            let place = e
                .bio
                .and_then(|b| self.bios.binary_search_by_key(&b, |x| x.0).ok());
            let place = place.map_or(usize::MAX, |k| self.bios[k].1);
            *t < e.at || (*t == e.at && e.action == Action::Queue && *i < place)
        });
        comes_first.then(|| {
            self.next += 1;
            (*t, text.clone())
        })
    }
}

fn arrival(steps: &[Step]) -> (String, usize) {
    let e = &steps[0].event;
    let text = format!(
        "{} {} from {}",
        names(&steps[0].bios),
        place(e),
        e.task.map_or("no process".to_owned(), process)
    );
    let mut used = 1;
    if steps
        .get(used)
        .is_some_and(|s| s.event.action == Action::GetRq)
    {
        used += 1;
    }
    let same = |s: &&Step| s.event.at == e.at;
    let (said, more) = match steps.get(used).filter(same) {
        Some(s) if s.event.action == Action::Insert => (": inserted".to_owned(), 1),
        Some(s) if s.event.action == Action::BackMerge => (
            format!(
                ": merged at the end, {} is now {}",
                names(&s.bios),
                place(&s.event)
            ),
            1,
        ),
        Some(s) if s.event.action == Action::FrontMerge => (
            format!(
                ": merged at the start, {} is now {}",
                names(&s.bios),
                place(&s.event)
            ),
            1,
        ),
        _ => (String::new(), 0),
    };
    (text + &said, used + more)
}

/// Returns the name of a task in cases.
pub(crate) fn process(t: TaskId) -> String {
    format!("process {}", t.0)
}

/// Describes a timer that was armed, cancelled or expired.
fn timer(e: &Event) -> String {
    let More::Timer { slot, until } = e.more else {
        return e.detail.clone();
    };
    let whom = e
        .task
        .map_or(String::new(), |t| format!(" for {}", process(t)));
    match e.action {
        Action::Arm => format!("{slot} armed{whom}, until {until}"),
        Action::Disarm => format!("{slot} cancelled, {} early", {
            let left = until.since(e.at);
            format!("{:.3} ms", left.as_ms_f64())
        }),
        _ => format!("{slot} fires"),
    }
}

/// Returns the rule, the values of this decision, and the kernel function of the rule.
fn reason(e: &Event) -> String {
    let said = e.text(process);
    let Some(rule) = e.rule else {
        return said;
    };
    let colon = if said.is_empty() { "" } else { ": " };
    let mut out = format!("{}{colon}{said} ", rule.id);
    paint(&mut out, &format!("[{}]", rule.kernel), DIM);
    out
}

/// Returns every step of a run, in lines of at most `width` columns.
///
/// # Errors
///
/// The inputs violate the case format.
pub fn steps(
    case: &Case,
    events: &[Step],
    left: &[BioId],
    width: usize,
) -> Result<String, CaseError> {
    let mut controls = Controls::new(&case.inputs()?);
    let mut w = Writer {
        out: String::new(),
        width,
        time: None,
        state: None,
    };
    paint(
        &mut w.out,
        &format!("{:>12}  {:<9}  {}\n", "ms", "", "what"),
        HEAD,
    );
    let mut i = 0;
    while let Some(step) = events.get(i) {
        let e = &step.event;
        while let Some((t, text)) = controls.before(Some(e)) {
            w.plain(t, "control", &text);
        }
        let who = names(&step.bios);
        let mut used = 1;
        match e.action {
            Action::Queue => {
                let (text, n) = arrival(&events[i..]);
                used = n;
                w.plain(e.at, "arrives", &text);
            }
            Action::Why => {
                w.line(e.at, "because", NAME, &reason(e));
            }
            Action::Elevator => {
                let next = events.get(i + 1).map(|s| &s.event);
                if next.is_none_or(|n| n.action != Action::Issue || n.rq != e.rq) {
                    w.plain(e.at, "moves", &format!("{who} to the dispatch list"));
                }
            }
            Action::Issue => w.line(e.at, "dispatch", GOOD, &format!("{who} {}", place(e))),
            Action::Complete => w.plain(e.at, "completes", &format!("{who} {}", place(e))),
            Action::Timer => w.line(e.at, "timer", HEAD, &timer(e)),
            Action::Arm | Action::Disarm => w.plain(e.at, "timer", &timer(e)),
            Action::Join => {
                w.plain(
                    e.at,
                    "joined",
                    &format!("{who} is one request: {}", place(e)),
                );
            }
            Action::Part => {
                let text = format!("{who} {}: the device has it, a flush follows", place(e));
                w.plain(e.at, "written", &text);
            }
            Action::Insert => w.plain(e.at, "inserted", &format!("{who} {}", place(e))),
            other => {
                let word = format!("{other:?}").to_lowercase();
                w.plain(e.at, &word, &format!("{who} {}", place(e)));
            }
        }
        i += used;
        w.state(e.at, events[i - 1].state.as_ref());
        if let Some(again) = events[i - 1].again {
            let times = crate::units::count(again.times);
            let text = format!("repeated {times} more times; this is the last one");
            w.line(again.until, "again", DIM, &text);
        }
    }
    while let Some((t, text)) = controls.before(None) {
        w.plain(t, "control", &text);
    }
    if !left.is_empty() {
        w.out += &format!("never dispatched: {}\n", names(left).replace('+', " "));
    }
    Ok(w.out)
}
