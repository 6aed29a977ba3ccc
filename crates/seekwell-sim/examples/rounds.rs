//! Agreement with recorded blk-mq rounds, by class, and of two null models for comparison.
//!
//! `cargo run -p seekwell-sim --example rounds -- FILE...`

use seekwell_microscope::format::CsvOptions;
use seekwell_microscope::read_cases;
use seekwell_microscope::rounds::{Round, agreement};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for file in std::env::args().skip(1) {
        let cases = read_cases(file.as_ref(), &CsvOptions::default())?;
        let rounds: Vec<Round> = cases
            .iter()
            .map(Round::from_case)
            .collect::<Result<_, _>>()?;
        println!("{file}\n{}", agreement(&rounds)?);
    }
    Ok(())
}
