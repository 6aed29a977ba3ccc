//! The page in a real browser: no message on the console, no request that leaves the file, every
//! filter does what it says, and the keyboard is enough.

mod cdp;

use cdp::Browser;
use seekwell_lab::results::{
    About, Cell, Folder, MetricInfo, Outcome, Run, RunKey, Treatment, Value,
};
use seekwell_lab::results::{RESULTS, Results};
use std::path::{Path, PathBuf};
use std::process::Command;

const NAMES: [&str; 4] = [
    "noop",
    "deadline",
    "cfq",
    "<img src=x onerror=window.evil=1>",
];
const NO_DIFFERENCE: usize = 1;
const FAILED: usize = 2;

/// Two devices; a test with a winner, one without a difference, one that failed under one
/// scheduler, and a sweep of four points.
fn results(copies: usize) -> Results {
    let metric = |higher| MetricInfo {
        name: if higher { "transactions" } else { "fsync" }.to_owned(),
        unit: if higher { "1/s" } else { "ms" }.to_owned(),
        higher_is_better: higher,
        step: None,
    };
    let mut cells: Vec<Cell> = Vec::new();
    for copy in 0..copies {
        for device in ["hitachi-7k200", "x25m-\"g2\"-160"] {
            let mut add = |workload: &str, clients: Option<u32>, higher| {
                let end = if copy > 0 {
                    format!(" {copy}")
                } else {
                    String::new()
                };
                let at = clients.map(|c| format!(":clients={c}")).unwrap_or_default();
                cells.push(Cell {
                    name: format!("{device} {workload}{at}{end}"),
                    device: device.to_owned(),
                    workload: format!("{workload}{at}{end}"),
                    substrate: "sim".to_owned(),
                    axes: clients
                        .map(|c| ("workload.clients".to_owned(), c.to_string()))
                        .into_iter()
                        .collect(),
                    primary: metric(higher),
                    treatments: (0..NAMES.len()).collect(),
                    ..Cell::default()
                });
            };
            add("fsync-latency", None, false);
            add("hdparm", None, true);
            add("fs-mark", None, true);
            if copy == 0 {
                for n in [1, 2, 4, 8] {
                    add("pgbench", Some(n), true);
                }
            }
        }
    }
    let mut runs = Vec::new();
    for (c, cell) in cells.iter().enumerate() {
        let higher = cell.primary.higher_is_better;
        for block in 0..10u32 {
            for t in 0..NAMES.len() {
                let scatter = 1.0 + 0.004 * f64::from((block * 7 + t as u32 * 5 + c as u32) % 11);
                let loud = !cell.workload.starts_with("hdparm");
                let effect = if loud { [1.0, 1.3, 4.2, 1.31][t] } else { 1.0 };
                let failed = cell.workload.starts_with("fs-mark") && t == FAILED && c % 2 == 1;
                let value = 37.0 * scatter * if higher { effect } else { 1.0 / effect };
                runs.push(Run {
                    key: RunKey {
                        cell: c,
                        block,
                        treatment: t,
                    },
                    place: (t as u32 + block) % NAMES.len() as u32,
                    outcome: match failed {
                        true => Outcome::Failed("no space left on device (ENOSPC)".to_owned()),
                        false => Outcome::Done,
                    },
                    values: vec![Value {
                        metric: cell.primary.clone(),
                        value,
                        n: 1000,
                    }],
                    ..Run::default()
                });
            }
        }
    }
    for r in &mut runs {
        if matches!(r.outcome, Outcome::Failed(_)) {
            r.values.clear();
        }
    }
    Results {
        about: About {
            name: "three questions & one answer".to_owned(),
            paired: true,
            source: "experiment".to_owned(),
            ..About::default()
        },
        treatments: NAMES
            .map(|n| Treatment {
                label: n.to_owned(),
                ..Treatment::default()
            })
            .to_vec(),
        cells,
        runs,
        summaries: Vec::new(),
    }
}

/// The page of some results, made by the binary.
fn page(name: &str, results: &Results) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{name}"));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("a directory");
    let folder = dir.join("results");
    Folder::store(&folder, results).expect("it is stored");
    assert!(folder.join(RESULTS).is_file());
    let html = dir.join("page.html");
    let o = Command::new(env!("CARGO_BIN_EXE_seekwell"))
        .args([
            "report".as_ref(),
            folder.as_os_str(),
            "-o".as_ref(),
            html.as_os_str(),
        ])
        .output()
        .expect("the binary runs");
    assert!(o.status.success(), "{o:?}");
    html
}

/// Looks at everything once: folds open, scrolled through.
const LOOK: &str = "(async () => {
  for (let i = 0; i < 3; i++) document.querySelectorAll('details').forEach((d) => { d.open = true; });
  for (let y = 0; y < document.body.scrollHeight; y += 600) { scrollTo(0, y); await new Promise((r) => setTimeout(r, 10)); }
  scrollTo(0, 0);
  return true;
})()";

#[test]
fn the_page_is_quiet_at_every_width_and_in_both_themes() {
    let Some(mut b) = Browser::start("quiet") else {
        return;
    };
    let html = page("quiet", &results(1));
    for (width, theme) in [
        (1280, "light"),
        (1280, "dark"),
        (390, "light"),
        (320, "dark"),
    ] {
        b.open(&html, "", width, theme);
        b.value(LOOK);
        assert_eq!(b.said, Vec::<String>::new(), "{width} {theme}");
        assert_eq!(b.asked, Vec::<String>::new(), "{width} {theme}");
        let wide = b.value("document.documentElement.scrollWidth - innerWidth");
        assert!(
            wide.as_i64() <= Some(0),
            "{width} {theme}: {wide} px too wide"
        );
        assert!(b.value("window.evil === undefined").as_bool() == Some(true));
        let drawn = b.value(
            "[...document.querySelectorAll('.chart')].every((c) => c.querySelector('svg path'))",
        );
        assert_eq!(drawn, true, "{width} {theme}: every chart has ink");
        let ink = b.value(
            "[...document.querySelectorAll('canvas')].every((c) => new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer).some((v) => v))",
        );
        assert_eq!(ink, true, "{width} {theme}: every canvas has ink");
        if let Some(dir) = std::env::var_os("SEEKWELL_PICTURES") {
            let text = b.picture();
            let path = Path::new(&dir).join(format!("report-{width}-{theme}.png.b64"));
            std::fs::write(path, text).expect("a picture");
        }
    }
}

#[test]
fn filters_change_what_they_say_and_back() {
    let Some(mut b) = Browser::start("filters") else {
        return;
    };
    let html = page("filters", &results(1));
    b.open(&html, "", 1280, "light");
    let cells =
        "[...document.querySelectorAll('#map-table td')].map((e) => e.textContent).join('|')";
    let before = b.value(cells);
    let pick = |v: &str| {
        format!(
            "(() => {{ const s = document.querySelector('#base'); s.value = '{v}'; s.dispatchEvent(new Event('change')); }})()"
        )
    };
    b.value(&pick("deadline"));
    let held = b.value(cells);
    assert_ne!(held, before);
    assert_eq!(b.value("location.hash"), "#base=deadline");
    b.value(&pick(""));
    assert_eq!(b.value(cells), before);
    let rows =
        "[...document.querySelectorAll('#map-table tbody tr')].filter((r) => !r.hidden).length";
    let all = b.value(rows).as_u64().expect("rows");
    b.value("document.querySelector('#only').click()");
    let only = b.value(rows).as_u64().expect("rows");
    assert_eq!(
        all - only,
        2 * NO_DIFFERENCE as u64,
        "hdparm of both devices"
    );
    b.value("document.querySelector('#only').click()");
    assert_eq!(b.value(rows).as_u64(), Some(all));
    // A scheduler hidden is hidden everywhere.
    let named = "[...document.querySelectorAll('#map-table thead th, #tests-out svg text.name, #overall-out svg text.name')].filter((e) => e.textContent.includes('cfq')).length";
    assert!(b.value(named).as_u64() > Some(1));
    b.value("document.querySelector('#chips button[data-name=\"cfq\"]').click()");
    assert_eq!(b.value(named), 0);
    // A link shows the same view, and a name that is markup is only a name.
    b.open(&html, "#base=deadline&hide=cfq", 1280, "light");
    assert_eq!(b.value(named), 0);
    assert_eq!(b.value("document.querySelector('#base').value"), "deadline");
    let last = b.value("document.querySelector('#map-table thead th:last-child').textContent");
    assert_eq!(last.as_str(), Some(NAMES[3]));
    assert_eq!(b.said, Vec::<String>::new());
}

#[test]
fn the_keyboard_is_enough_and_what_it_does_is_spoken() {
    let Some(mut b) = Browser::start("keys") else {
        return;
    };
    let html = page("keys", &results(1));
    b.open(&html, "", 1280, "light");
    b.value("document.querySelector('#map-table td button').focus()");
    b.key("ArrowRight");
    b.key("ArrowDown");
    let at = b.value("[document.activeElement.closest('td').dataset.s, document.activeElement.closest('tr').dataset.id]");
    assert_eq!(at[0], "1");
    assert_eq!(at[1], "hitachi-7k200 hdparm");
    b.key("Enter");
    let card = b.value("document.activeElement.querySelector('h4').textContent");
    assert_eq!(card, "hdparm", "the fold it lies in is opened");
    b.value("document.querySelector('.card.sweep .stage').focus()");
    b.key("ArrowRight");
    let spoken = b.value("document.querySelector('#live').textContent");
    let spoken = spoken.as_str().expect("words");
    assert!(spoken.contains("2: ") && spoken.contains("cfq"), "{spoken}");
    b.value("document.querySelector('.fold').click()");
    let open = b.value("[...document.querySelectorAll('tr.kid')].filter((r) => !r.hidden).length");
    assert_eq!(open, 4);
    // One stop of Tab in the map.
    let stops = b.value("[...document.querySelectorAll('#map-table td button')].filter((e) => e.tabIndex === 0).length");
    assert_eq!(stops, 1);
}

#[test]
fn no_other_script_runs_and_a_failed_run_says_why() {
    let Some(mut b) = Browser::start("safe") else {
        return;
    };
    let html = page("safe", &results(1));
    b.open(&html, "", 1280, "light");
    b.value("(() => { const s = document.createElement('script'); s.textContent = 'window.evil = 1'; document.body.append(s); })()");
    assert_eq!(b.value("window.evil === undefined"), true);
    let why =
        b.value("[...document.querySelectorAll('.card .why li')].map((e) => e.textContent).join()");
    assert!(
        why.as_str()
            .is_some_and(|w| w.contains("cfq: no space left on device (ENOSPC)")),
        "{why}"
    );
    let text = std::fs::read_to_string(&html).expect("the page");
    let text = text.split("<script").next().expect("text");
    assert!(
        text.contains("no space left on device"),
        "also without a script"
    );
}

#[test]
fn a_thousand_tests_open_and_stay_under_the_limit() {
    let Some(mut b) = Browser::start("thousand") else {
        return;
    };
    let html = page("thousand", &results(165));
    let size = std::fs::metadata(&html).expect("the page").len();
    b.open(&html, "", 1280, "light");
    let cells = b.value("document.querySelectorAll('#map-table tbody tr').length");
    let ms = b.value("document.documentElement.dataset.ready");
    println!("{cells} rows, {size} bytes, set up in {ms} ms");
    assert!(cells.as_u64() > Some(990), "{cells}");
    assert!(size < 4_000_000, "{size}");
    assert_eq!(
        b.value("document.querySelector('#find').closest('label').hidden"),
        false
    );
    assert_eq!(b.said, Vec::<String>::new());
}
