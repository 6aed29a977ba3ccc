//! Lines for a NixOS configuration. They are shown and never written, because the configuration is
//! the user's own program text.

use super::{KeepError, Wanted, udev};

/// An option that contains the udev rule. `hardware.block.scheduler` would match kernel names only,
/// which may denote another device after a boot.
///
/// # Errors
/// The errors of a rule.
pub fn option(w: &Wanted<'_>) -> Result<String, KeepError> {
    let rule = udev::rule(w, "")?;
    let mut text = "services.udev.extraRules = ''\n".to_owned();
    for line in rule.text.lines() {
        // Two apostrophes end the text, `${` starts an expression.
        let line = line.replace("''", "'''").replace("${", "''${");
        text += &format!("  {line}\n");
    }
    text += "'';\n";
    Ok(text)
}
