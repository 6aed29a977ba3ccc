//! The picture of a trial: its periods in order of time, with the value of each second.

use super::{Anchor, LEFT, Picture, WIDE};
use crate::chart::{number, ticks};
use seekwell_lab::trial::Timeline;

/// Height of the plot.
const HIGH: f64 = 220.0;
/// Width of the labels of the vertical axis.
const LABELS: f64 = 56.0;
/// Part of the seconds that fit into the plot. The others are drawn at its upper edge.
const SHOWN: f64 = 0.99;
/// Classes of the schedulers' colours.
const CLASSES: [&str; 5] = ["read", "write", "third", "other", "bad"];

/// Returns the picture. Bands of one colour are the periods of one scheduler.
pub fn trial(t: &Timeline) -> String {
    let mut p = Picture::new(&t.metric);
    p.push(format_args!(
        "<style>.third{{fill:#2b8a52}}.band{{fill-opacity:.13;stroke:none}}\
         .dot{{fill-opacity:.55;stroke:none}}.value{{stroke-width:2.5;fill:none}}\
         @media(prefers-color-scheme:dark){{.third{{fill:#62c78b}}}}</style>"
    ));
    let class = |treatment: usize| CLASSES[treatment % CLASSES.len()];
    let mut x = LEFT;
    p.y += 18.0;
    for (i, name) in t.schedulers.iter().enumerate() {
        let y = p.y;
        p.push(format_args!(
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"12\" height=\"12\" class=\"{}\"/>",
            y - 11.0,
            class(i)
        ));
        p.text(x + 18.0, y, Anchor::Start, name);
        x += 18.0 + super::width(name, super::PLAIN) + 22.0;
        if x > WIDE - 120.0 {
            (x, p.y) = (LEFT, p.y + 18.0);
        }
    }
    let mut values: Vec<f64> = t.periods.iter().filter_map(|p| p.value).collect();
    let mut seconds: Vec<f64> = t
        .periods
        .iter()
        .flat_map(|p| &p.seconds)
        .map(|s| s.1)
        .collect();
    seconds.sort_by(f64::total_cmp);
    let last = (seconds.len() as f64 * SHOWN) as usize;
    values.extend(seconds.get(last.min(seconds.len().saturating_sub(1))));
    let highest = values
        .iter()
        .copied()
        .filter(|v| v.is_finite())
        .fold(0.0, f64::max);
    let steps = ticks(highest.max(1e-9), 5);
    let top = steps.last().copied().unwrap_or(1.0);
    let end_s = t.periods.last().map_or(1.0, |p| p.to_s).max(1e-9);
    let foot = p.y + 16.0 + HIGH;
    let at_x = |s: f64| LEFT + LABELS + (WIDE - 2.0 * LEFT - LABELS) * s / end_s;
    let at_y = |v: f64| foot - HIGH * (v / top).clamp(0.0, 1.0);
    for step in &steps {
        let y = at_y(*step);
        p.line(
            format!("M{:.1},{y:.1}H{:.1}", at_x(0.0), at_x(end_s)),
            "grid",
            1.0,
        );
        p.small(at_x(0.0) - 6.0, y + 4.0, Anchor::End, &number(*step));
    }
    for period in &t.periods {
        let class = class(period.treatment);
        let name = t
            .schedulers
            .get(period.treatment)
            .map_or("", |n| n.as_str());
        p.push(format_args!("<g>"));
        let early = if period.ended_early {
            ", ended by the guard"
        } else {
            ""
        };
        let value = period
            .value
            .map_or("no value".to_owned(), |v| format!("{v:.4}"));
        p.title(&format!(
            "{name}, from {:.0} s: {value}{early}",
            period.from_s
        ));
        let (from, to) = (at_x(period.from_s), at_x(period.to_s));
        p.push(format_args!(
            "<rect x=\"{from:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{HIGH}\" class=\"{class} band\"/>",
            foot - HIGH,
            (to - from).max(0.5)
        ));
        for (s, v) in &period.seconds {
            p.push(format_args!(
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"1.2\" class=\"{class} dot\"/>",
                at_x(*s),
                at_y(*v)
            ));
        }
        if let Some(v) = period.value.filter(|v| v.is_finite()) {
            let from = at_x(period.counts_from_s);
            p.push(format_args!(
                "<rect x=\"{from:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"2.5\" class=\"{class}\"/>",
                at_y(v) - 1.25,
                (to - from).max(0.5)
            ));
        }
        p.push(format_args!("</g>"));
    }
    p.line(
        format!("M{:.1},{foot:.1}H{:.1}", at_x(0.0), at_x(end_s)),
        "axis",
        1.0,
    );
    for step in ticks(end_s / 60.0, 8)
        .iter()
        .filter(|m| **m * 60.0 <= end_s)
    {
        p.small(
            at_x(step * 60.0),
            foot + 16.0,
            Anchor::Middle,
            &number(*step),
        );
    }
    p.y = foot + 22.0;
    p.paragraph(
        "Each band is a period, in the colour of its scheduler. A dot is the value of a second, and a \
         line the value of the period. Times are in minutes. If a band begins before its line, that part is the washout.",
        "dim",
    );
    p.finish()
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;
    use seekwell_lab::trial::Period;

    #[test]
    fn every_period_has_a_band_and_its_value() {
        let period = |i: usize| Period {
            treatment: i % 2,
            from_s: 35.0 * i as f64,
            to_s: 35.0 * (i + 1) as f64,
            counts_from_s: 35.0 * i as f64 + 5.0,
            value: (i != 2).then_some(4.0 + i as f64),
            ended_early: i == 3,
            seconds: vec![(35.0 * i as f64 + 6.0, 3.0), (35.0 * i as f64 + 7.0, 9.0)],
        };
        let t = Timeline {
            metric: "read mean, ms".to_owned(),
            schedulers: vec!["none".to_owned(), "<bfq>".to_owned()],
            periods: (0..6).map(period).collect(),
        };
        let svg = trial(&t);
        check::well_formed(&svg);
        assert_eq!(svg.matches(" band\"").count(), 6);
        assert_eq!(svg.matches("<circle").count(), 12);
        assert_eq!(svg.matches("height=\"2.5\"").count(), 5, "one has no value");
        assert_eq!(svg.matches("ended by the guard").count(), 1);
        assert!(!svg.contains("<bfq>"));
        check::well_formed(&trial(&Timeline::default()));
    }
}
