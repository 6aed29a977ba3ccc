//! Published figures beside the model's: `cargo run --release --example validate`.

fn main() -> Result<(), seekwell_device::DeviceError> {
    for r in seekwell_device::validate::validate()? {
        let (lo, hi) = r.published;
        let published = if lo == hi {
            format!("{lo}")
        } else {
            format!("{lo}-{hi}")
        };
        let bound = match r.allowed {
            a if a.is_finite() => format!("(<= {:.0})", a * 100.0),
            _ => String::new(),
        };
        println!(
            "{:<14} {:<40} {published:>11} {:>8.2} {:<5} {:>+6.1} % {:<9} {:<10} {}{}",
            r.device.split(',').next().unwrap_or(""),
            r.figure,
            r.model,
            r.unit,
            r.error * 100.0,
            bound,
            r.relation.text(),
            r.source,
            if r.holds() { "" } else { "   MISSES ITS BOUND" }
        );
    }
    Ok(())
}
