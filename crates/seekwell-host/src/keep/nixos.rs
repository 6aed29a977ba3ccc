//! Lines for a NixOS configuration. Shown and never written: the file is its owner's, and is
//! written in a language.

use super::{KeepError, Wanted, udev};

/// An option that holds the rule: `hardware.block.scheduler` knows disks by kernel name alone,
/// which may be another device's next time.
///
/// # Errors
/// As for a rule.
pub fn option(w: &Wanted<'_>) -> Result<String, KeepError> {
    let rule = udev::rule(w, "")?;
    let mut text = "services.udev.extraRules = ''\n".to_owned();
    for line in rule.text.lines() {
        // Two apostrophes end the text, `${` begins an expression.
        let line = line.replace("''", "'''").replace("${", "''${");
        text += &format!("  {line}\n");
    }
    text += "'';\n";
    Ok(text)
}
