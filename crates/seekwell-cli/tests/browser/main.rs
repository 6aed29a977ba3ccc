//! Tests the page in a real browser. No message may appear on the console, and the page may request
//! nothing external. Every chart must be drawn, every filter and link must work, and the keyboard
//! must be sufficient.
//!
//! Without a browser, each test prints this and ends. axe checks accessibility if the page's own
//! tools are installed (`npm ci` in crates/seekwell-report/page).

mod cdp;
mod page_checks;
mod pages;

use cdp::Browser;
use page_checks::{LOOK, assert_accessible, assert_charts_drawn, assert_no_messages_or_overflow};
use pages::{NAMES, NO_DIFFERENCE, imported_publication, page_from, real_experiment, results};
use seekwell_lab::analysis::analyse;
use seekwell_lab::results::read;
use std::path::PathBuf;

const WIDTHS: [(u32, &str); 4] = [
    (1280, "light"),
    (1280, "dark"),
    (390, "light"),
    (390, "dark"),
];

#[test]
fn real_experiment_page_renders_at_every_width_and_in_both_themes() {
    let Some(mut b) = Browser::start("real") else {
        return;
    };
    // scripts/pictures.sh uses a larger page, to take the pictures for the documents.
    let named = std::env::var_os("SEEKWELL_PAGE").map(PathBuf::from);
    let html = named.unwrap_or_else(|| real_experiment().0.clone());
    for (width, theme) in WIDTHS {
        b.open(&html, "", width, theme);
        b.value(LOOK);
        b.until(
            "['#prints-out', '#c-out', '#replay'].every((q) => document.querySelector(q).dataset.loaded)",
        );
        assert_no_messages_or_overflow(&mut b, &format!("{width} {theme}"));
        assert_charts_drawn(&mut b, &format!("{width} {theme}"));
        page_checks::save_pictures(&mut b, &format!("{width}-{theme}"));
        assert_accessible(&mut b, &format!("{width} {theme}"));
    }
}

#[test]
fn names_with_markup_are_shown_as_text_at_every_width() {
    let Some(mut b) = Browser::start("quiet") else {
        return;
    };
    let html = page_from("quiet", &results(1));
    for (width, theme) in [(1280, "light"), (320, "dark")] {
        b.open(&html, "", width, theme);
        b.value(LOOK);
        assert_no_messages_or_overflow(&mut b, &format!("{width} {theme}"));
        assert_charts_drawn(&mut b, &format!("{width} {theme}"));
        assert_eq!(b.value("window.evil === undefined"), true);
    }
    assert_accessible(&mut b, "names");
}

#[test]
fn imported_and_single_test_pages_render() {
    let Some(mut b) = Browser::start("small") else {
        return;
    };
    let html = imported_publication();
    b.open(&html, "", 1280, "light");
    b.value(LOOK);
    assert_no_messages_or_overflow(&mut b, "published");
    assert_charts_drawn(&mut b, "published");
    assert!(
        b.value("document.querySelectorAll('#map-table tbody tr').length")
            .as_u64()
            > Some(3)
    );
    // With one test under one scheduler, there is no comparison and no winner.
    let mut one = results(1);
    one.cells.truncate(1);
    one.cells[0].treatments = vec![0];
    one.treatments.truncate(1);
    one.runs.retain(|r| r.key.cell == 0 && r.key.treatment == 0);
    let html = page_from("one", &one);
    b.open(&html, "", 390, "light");
    b.value(LOOK);
    assert_no_messages_or_overflow(&mut b, "one");
    assert_charts_drawn(&mut b, "one");
    let said = b.value("document.querySelector('#answer').textContent");
    let said = said.as_str().expect("words");
    assert!(said.contains("One scheduler ran"), "{said}");
    assert_eq!(b.value("document.querySelector('#map').hidden"), true);
    assert_accessible(&mut b, "one");
}

#[test]
fn page_filters_apply_and_reset() {
    let Some(mut b) = Browser::start("filters") else {
        return;
    };
    let html = page_from("filters", &results(1));
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
    // A scheduler that the user hides is hidden in all parts of the page.
    let named = "[...document.querySelectorAll('#map-table thead th, #tests-out svg text.name, #overall-out svg text.name')].filter((e) => e.textContent.includes('cfq')).length";
    assert!(b.value(named).as_u64() > Some(1));
    b.value("document.querySelector('#chips button[data-name=\"cfq\"]').click()");
    assert_eq!(b.value(named), 0);
    // A link with this selection shows the same view. A name with markup is shown as text.
    b.open(&html, "#base=deadline&hide=cfq", 1280, "light");
    assert_eq!(b.value(named), 0);
    assert_eq!(b.value("document.querySelector('#base').value"), "deadline");
    let last = b.value("document.querySelector('#map-table thead th:last-child').textContent");
    assert_eq!(last.as_str(), Some(NAMES[3]));
    assert_eq!(b.said, Vec::<String>::new());
}

#[test]
fn keyboard_reaches_every_control_and_changes_are_announced() {
    let Some(mut b) = Browser::start("keys") else {
        return;
    };
    let html = page_from("keys", &results(1));
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
    // The map is a single Tab stop.
    let stops = b.value("[...document.querySelectorAll('#map-table td button')].filter((e) => e.tabIndex === 0).length");
    assert_eq!(stops, 1);
}

#[test]
fn replay_steps_plays_and_links_to_each_moment() {
    let Some(mut b) = Browser::start("replay") else {
        return;
    };
    let (html, _) = real_experiment();
    b.open(html, "", 1280, "light");
    let loaded = "document.querySelector('#replay').dataset.loaded";
    b.value("document.querySelector('#replay').scrollIntoView()");
    b.until(loaded);
    b.value("document.querySelector('#r-stage').focus()");
    b.key("Home");
    // Requests can be served before the first decision that is shown. They were dispatched before
    // the excerpt begins, and the page must say so.
    let early = b.value(
        "[...document.querySelectorAll('.lane')].map((l) => [l.querySelector('.lane-count').textContent, \
         l.querySelector('.why').textContent]).filter(([count, why]) => !count.includes('served in 0 ') && \
         why.includes('no dispatch yet') && !why.includes('dispatched before it begins'))",
    );
    assert_eq!(early, serde_json::json!([]));
    b.key("ArrowRight");
    let spoken = b.value("document.querySelector('#live').textContent");
    let spoken = spoken.as_str().expect("words").to_owned();
    assert!(
        spoken.contains("because") || spoken.contains("no reason"),
        "{spoken}"
    );
    b.key("ArrowRight");
    let clock = "document.querySelector('#r-clock').textContent";
    let why = "[...document.querySelectorAll('.why')].map((e) => e.textContent).join('|')";
    let (at, said) = (b.value(clock), b.value(why));
    let address = b.value("location.hash");
    let address = address.as_str().expect("an address").to_owned();
    assert!(address.contains("at="), "{address}");
    b.key(" ");
    b.until(&format!("{clock} !== {at}"));
    b.key(" ");
    assert_eq!(
        b.value("document.querySelector('#r-play').getAttribute('aria-pressed')"),
        "false"
    );
    // A link with a time opens the replay at that time.
    b.open(html, &address, 1280, "light");
    b.value("document.querySelector('#replay').scrollIntoView()");
    b.until(loaded);
    assert_eq!(b.value(clock), at);
    assert_eq!(b.value(why), said);
    // Select another scheduler in the second lane, then another scene, then a time that the search
    // finds.
    let pick = |id: &str, n: usize| {
        format!(
            "(() => {{ const s = document.querySelector('{id}'); s.selectedIndex = {n}; s.dispatchEvent(new Event('change')); return s.value; }})()"
        )
    };
    let other = b.value(&pick("#r-b", 2));
    let other = other.as_str().expect("a name").to_owned();
    b.until(&format!(
        "document.querySelectorAll('.lane-title b')[1]?.textContent === '{other}'"
    ));
    let scene = b.value(&pick("#r-scene", 1));
    b.until(&format!("{loaded} === {scene}"));
    b.value("document.querySelector('#r-moments button').click()");
    assert_no_messages_or_overflow(&mut b, "replay");
    // A click on a scheduler's picture opens its replay, and the back button returns.
    b.value("document.querySelector('#prints-out').scrollIntoView()");
    b.until("document.querySelectorAll('.print-of').length > 1");
    b.value("document.querySelectorAll('.print-of')[1].click()");
    assert_eq!(
        b.value("new URLSearchParams(location.hash.slice(1)).get('a')"),
        b.value("document.querySelectorAll('.print-of b')[1].textContent")
    );
}

#[test]
fn detail_views_are_linked_and_follow_the_selection() {
    let Some(mut b) = Browser::start("closer") else {
        return;
    };
    let (html, _) = real_experiment();
    b.open(html, "", 1280, "light");
    let row = "[...document.querySelectorAll('#map-table tbody tr')].find((r) => r.dataset.id?.includes('pgbench'))";
    b.value(&format!("{row}.querySelector('td button').click()"));
    b.until("document.querySelector('#c-out').dataset.loaded?.includes('pgbench')");
    b.until("document.querySelector('.course canvas')");
    let title = "document.querySelector('.course figcaption b').textContent";
    assert_eq!(b.value(title), "Second by second: transactions, per second");
    b.value("document.querySelector('.course button[data-kind=\"max\"]').click()");
    b.until(&format!("{title}.endsWith('longest')"));
    b.value("document.querySelector('.course .stage').focus()");
    b.key("ArrowRight");
    let spoken = b.value("document.querySelector('#live').textContent");
    assert!(
        spoken.as_str().is_some_and(|s| s.starts_with("1 s:")),
        "{spoken}"
    );
    b.value("document.querySelector('#tail').click()");
    b.until("document.querySelector('#tail').getAttribute('aria-pressed') === 'false'");
    let hash = b.value("location.hash");
    let hash = hash.as_str().expect("an address").to_owned();
    assert!(
        hash.contains("lat=max") && hash.contains("tail=0"),
        "{hash}"
    );
    b.open(html, &hash, 1280, "dark");
    b.value("document.querySelector('#c-out').scrollIntoView()");
    b.until(&format!(
        "document.querySelector('.course') && {title}.endsWith('longest')"
    ));
    // When the page is printed, it has all charts, and nothing exceeds the right margin.
    b.call(
        "Page.printToPDF",
        &serde_json::json!({"preferCSSPageSize": true}),
    );
    assert_no_messages_or_overflow(&mut b, "closer");
}

/// The numbers on the page equal those in the results, which this test reads by itself.
#[test]
fn page_numbers_equal_the_results() {
    let Some(mut b) = Browser::start("numbers") else {
        return;
    };
    let (html, folder) = real_experiment();
    let results = read(folder).expect("results");
    let analysis = analyse(&results);
    b.open(html, "", 1280, "light");
    let shown = b.value(
        "[...document.querySelectorAll('#map-table tbody tr[data-id]')].map((r) => [r.dataset.id, [...r.querySelectorAll('td')].map((t) => t.title)])",
    );
    let shown = shown.as_array().expect("rows");
    assert_eq!(shown.len(), analysis.cells.len());
    for row in shown {
        let cell = analysis.cells.iter().find(|c| row[0] == c.id().as_str());
        let cell = cell.expect("a cell of the results");
        for (side, title) in cell.sides.iter().zip(row[1].as_array().expect("cells")) {
            let mean = side.mean.expect("a value");
            let title = title.as_str().expect("a title");
            let figure = title
                .split(": ")
                .nth(1)
                .and_then(|t| t.split(' ').next())
                .expect("a figure");
            let figure: f64 = figure
                .trim_end_matches(',')
                .replace(',', "")
                .parse()
                .expect(title);
            // The page may show a time in s, ms or us.
            let near = [1.0, 1e-3, 1e3]
                .iter()
                .any(|k| (figure * k / mean - 1.0).abs() < 0.006);
            assert!(near, "{}: {title} shows {mean}", cell.name);
        }
    }
    let words = b.value(
        "[...document.querySelectorAll('.words tbody tr')].map((r) => r.cells[2].textContent)",
    );
    for (cell, said) in analysis
        .cells
        .iter()
        .zip(words.as_array().expect("verdicts"))
    {
        let said = said.as_str().expect("words").to_lowercase();
        assert!(
            said.starts_with(&cell.sentence.to_lowercase()),
            "{said}: {}",
            cell.sentence
        );
    }
}

#[test]
fn foreign_scripts_are_blocked_and_failed_runs_show_their_reason() {
    let Some(mut b) = Browser::start("safe") else {
        return;
    };
    let html = page_from("safe", &results(1));
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
fn page_of_a_thousand_tests_opens_within_the_time_and_size_limits() {
    let Some(mut b) = Browser::start("thousand") else {
        return;
    };
    let html = page_from("thousand", &results(165));
    let size = std::fs::metadata(&html).expect("the page").len();
    b.open(&html, "", 1280, "light");
    let cells = b.value("document.querySelectorAll('#map-table tbody tr').length");
    assert!(cells.as_u64() > Some(990), "{cells}");
    assert!(size < 4_000_000, "{size}");
    assert_eq!(
        b.value("document.querySelector('#find').closest('label').hidden"),
        false
    );
    // The search finds a test, and a link to a test further down opens its card.
    b.value("(() => { const f = document.querySelector('#find'); f.value = 'fs-mark 160'; f.dispatchEvent(new Event('input')); })()");
    let found = "document.querySelectorAll('#map-table tbody tr[data-id]').length";
    assert_eq!(b.value(found), 2);
    b.value("document.querySelector('#map-table tbody tr[data-id] a').click()");
    let card = b.value("document.activeElement.querySelector('h4')?.textContent");
    assert_eq!(card, "fs-mark 160");
    assert_eq!(b.said, Vec::<String>::new());
    println!(
        "{cells} rows, {size} bytes, {}",
        page_checks::timing(&mut b)
    );
}

/// Ten tests under five schedulers, twenty runs of an hour each.
#[test]
fn page_of_fifty_hour_long_cells_opens_within_the_time_and_size_limits() {
    let Some(mut b) = Browser::start("hour") else {
        return;
    };
    let html = pages::hour_long_experiment();
    let size = std::fs::metadata(&html).expect("the page").len();
    b.open(&html, "", 1280, "light");
    println!("{size} bytes, {}", page_checks::timing(&mut b));
    assert!(size < 4_000_000, "{size}");
    b.open(&html, "", 1280, "light");
    b.value("document.querySelector('#c-out').scrollIntoView()");
    b.until("document.querySelector('#c-out').dataset.loaded");
    assert_charts_drawn(&mut b, "hour");
    assert_no_messages_or_overflow(&mut b, "hour");
    b.value("document.querySelector('.course button[data-kind=\"max\"]').click()");
    b.until("document.querySelector('.course figcaption b').textContent.endsWith('longest')");
}
