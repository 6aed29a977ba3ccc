//! Any text as a fio job file.
#![no_main]

/// Every variable is set; files to include are none.
fn variable(_: &str) -> Option<String> {
    Some("1m".to_owned())
}

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = seekwell_workload::fio::parse("fuzz.fio", text, &variable);
});
