//! Any text as a fio job file.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = seekwell_workload::fio::parse("fuzz.fio", text, &|_| Some("1m".to_owned()));
});
