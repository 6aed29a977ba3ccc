//! Agreement of every case in the given files, and of two null models for comparison.
//!
//! `cargo run -p seekwell-sim --example cases -- FILE...`

use seekwell_microscope::format::CsvOptions;
use seekwell_microscope::{Agreement, read_cases, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for file in std::env::args().skip(1) {
        let cases = read_cases(file.as_ref(), &CsvOptions::default())?;
        let (mut whole, mut same, mut all) = (0, 0, 0);
        for case in &cases {
            let Some(want) = case.expected()? else {
                continue;
            };
            let got = run(case, false)?;
            let a = Agreement::compare(&want, case.expected_timers().as_deref(), &got);
            all += a.expected;
            same += a.same;
            if a.identical() {
                whole += 1;
                continue;
            }
            println!(
                "{}: {}/{} same, prefix {}, timers {:?}",
                case.case, a.same, a.expected, a.prefix, a.timers
            );
            if let (Some(w), g) = (want.get(a.prefix), got.dispatch.get(a.prefix)) {
                let g = g.map(|g| (g.0.to_string(), &g.1));
                println!("  want {} {:?}, got {g:?}", w.0, w.1);
            }
            if a.timers == Some(false) {
                let w = case.expected_timers().unwrap_or_default();
                let k = w
                    .iter()
                    .zip(&got.timers)
                    .take_while(|(a, b)| a == b)
                    .count();
                let f = |v: &[seekwell_core::Instant]| v.get(k).map(|t| t.to_string());
                println!("  timer {k}: want {:?}, got {:?}", f(&w), f(&got.timers));
            }
        }
        println!(
            "{file}: {whole}/{} cases identical, {same}/{all} decisions",
            cases.len()
        );
    }
    Ok(())
}
