//! Pages of standings built by hand.

use super::*;

fn mean(percent: f64) -> Mean {
    let factor = 1.0 + percent / 100.0;
    Mean {
        factor,
        interval95: Some((factor - 0.01, factor + 0.01)),
    }
}

fn place(scheduler: &str, figures: [f64; 3], front: bool) -> Place {
    Place {
        scheduler: scheduler.to_owned(),
        means: figures.map(|p| Some(mean(p))),
        front,
    }
}

fn standing() -> Standing {
    Standing {
        places: vec![
            place("own<b>", [1.0, -2.0, 0.0], false),
            place("none", [-6.0, -3.0, 0.0], false),
            place("bfq", [5.0, 5.0, 0.0], true),
        ],
        behind: vec![Behind {
            cell: "disk / <i>work".to_owned(),
            figure: Figure::P99,
            rival: "bfq".to_owned(),
            mean: mean(-40.0),
            seeds: 3,
        }],
        cells: 8,
        seeds: 3,
    }
}

fn made(s: &Standing) -> String {
    let ground = Ground {
        devices: &["hdd:hitachi-7k200"],
        workloads: &["fs-mark:files=30"],
        traces: &[],
    };
    let facts = Facts {
        seeds: (1, 3),
        ground,
        failed: 0,
        again: "seekwell arena own".to_owned(),
    };
    page(s, &facts).expect("a page")
}

#[test]
fn dominating_rival_and_losses_are_named() {
    let page = made(&standing());
    assert!(
        page.contains("bfq is at least as good in throughput"),
        "{page}"
    );
    assert!(page.contains("furthest behind in the 99th percentile of disk"));
    assert!(page.contains("\u{2212}40.0 % against bfq"));
    // Two other schedulers, three figures, eight cells, 2.5 % each: 1.2.
    assert!(page.contains("1 of 24 comparisons"));
    assert!(page.contains("up to 2 could be listed here by chance"));
}

#[test]
fn arena_page_escapes_names_and_fetches_nothing() {
    let page = made(&standing());
    assert!(!page.contains("own<b>") && !page.contains("<i>work"));
    assert_eq!(page.matches("<svg").count(), 2);
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("<script"));
}

#[test]
fn arena_page_without_deficits_or_fairness_is_complete() {
    let mut s = standing();
    s.behind.clear();
    for p in &mut s.places {
        p.means[2] = None;
    }
    s.places[0].front = true;
    let page = made(&s);
    assert!(page.contains("On the front is also bfq.") && page.contains("behind any rival"));
    assert_eq!(page.matches("<svg").count(), 1);
}

#[test]
fn every_mark_is_inside_the_picture() {
    let svg = picture::front(&standing(), Figure::P99).expect("one");
    let number = |text: &str, name: &str| -> f64 {
        let rest = text
            .split_once(&format!("{name}=\""))
            .expect("it has one")
            .1;
        rest.split('"')
            .next()
            .and_then(|n| n.parse().ok())
            .expect("a number")
    };
    let marks: Vec<(f64, f64)> = svg
        .split("<circle ")
        .skip(1)
        .map(|c| (number(c, "cx"), number(c, "cy")))
        .collect();
    assert_eq!(marks.len(), 3);
    assert!(
        marks
            .iter()
            .all(|m| (0.0..560.0).contains(&m.0) && (0.0..380.0).contains(&m.1))
    );
    // Better values are to the right and at the top.
    assert!(marks[2].0 > marks[0].0 && marks[0].0 > marks[1].0);
    assert!(marks[2].1 < marks[0].1 && marks[0].1 < marks[1].1);
}
