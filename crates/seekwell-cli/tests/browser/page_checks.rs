//! Checks for every page.

use super::cdp::Browser;
use std::path::Path;

/// Looks at the whole page: opens all folds and scrolls through.
pub const LOOK: &str = "(async () => {
  // What comes into sight is told with a frame, and a busy machine has few of them.
  const frame = () => new Promise((r) => requestAnimationFrame(r));
  const drawn = async () => { await frame(); await frame(); };
  const style = document.createElement('style');
  style.textContent = '.device { content-visibility: visible !important }';
  document.head.append(style);
  for (let i = 0; i < 3; i++) document.querySelectorAll('details').forEach((d) => { d.open = true; });
  for (let y = 0; y < document.body.scrollHeight; y += 600) { scrollTo(0, y); await drawn(); }
  scrollTo(0, 0);
  return true;
})()";

/// Checks that there is no message on the console, no external request, and nothing wider than the
/// window.
pub fn assert_no_messages_or_overflow(b: &mut Browser, what: &str) {
    assert_eq!(b.said, Vec::<String>::new(), "{what}");
    assert_eq!(b.asked, Vec::<String>::new(), "{what}");
    let wide = b.value("document.documentElement.scrollWidth - innerWidth");
    if wide.as_i64() > Some(0) {
        let who = b.value(
            "[...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll')).map((e) => e.tagName + '.' + e.className).slice(0, 5).join()",
        );
        panic!("{what}: {wide} px too wide: {who}");
    }
}

/// Checks that every chart is drawn.
pub fn assert_charts_drawn(b: &mut Browser, what: &str) {
    let empty = b.value(
        "[...document.querySelectorAll('.chart')].filter((c) => !c.querySelector('svg path, svg rect')).length",
    );
    assert_eq!(empty, 0, "{what}: every chart has ink");
    let blank = b.value(
        "[...document.querySelectorAll('canvas')].filter((c) => !c.width || !new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer).some((v) => v)).length",
    );
    assert_eq!(blank, 0, "{what}: every canvas has ink");
}

/// Returns serious accessibility problems that axe finds. Prints a message if axe is not installed.
pub fn assert_accessible(b: &mut Browser, what: &str) {
    let axe = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../seekwell-report/page/node_modules/axe-core/axe.min.js"
    );
    let Ok(axe) = std::fs::read_to_string(axe) else {
        println!("skipped: axe is not installed (npm ci in crates/seekwell-report/page)");
        return;
    };
    b.value(&format!("(() => {{ {axe}\n return true; }})()"));
    let found = b.value(
        "axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations.filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) => `${v.id}: ${v.nodes.length}: ${v.nodes[0].target.join(' ')}: ${v.nodes[0].failureSummary}`))",
    );
    assert_eq!(found, serde_json::json!([]), "{what}");
}

/// Returns the time to open the page on the browser's clock, and that of an empty page for
/// comparison.
pub fn timing(b: &mut Browser) -> String {
    let clock = "(() => { const n = performance.getEntriesByType('navigation')[0]; return Math.round(n.domComplete || n.loadEventStart); })()";
    let ready = b.value("document.documentElement.dataset.ready");
    let page = b.value(clock);
    b.call(
        "Page.navigate",
        &serde_json::json!({"url": "data:text/html,<title>blank</title>"}),
    );
    b.until("document.title === 'blank' && document.readyState === 'complete'");
    let blank = b.value(clock);
    format!("open after {page} ms (script: {ready} ms); a blank page after {blank} ms")
}

/// Saves pictures of the page's top and of the replay, if SEEKWELL_PICTURES names a directory.
/// scripts/pictures.sh sets it.
pub fn save_pictures(b: &mut Browser, name: &str) {
    let Some(dir) = std::env::var_os("SEEKWELL_PICTURES") else {
        return;
    };
    for (part, at) in [
        ("top", "body"),
        ("closer", "#closer"),
        ("replay", "#replay"),
    ] {
        b.value(&format!(
            "document.querySelector('{at}').scrollIntoView({{ behavior: 'instant' }})"
        ));
        b.value("new Promise((r) => setTimeout(r, 100))");
        let path = Path::new(&dir).join(format!("report-{part}-{name}.png.b64"));
        std::fs::write(path, b.picture()).expect("a picture");
    }
}
