//! Creates lines for a NixOS configuration. They are shown and never written, because the
//! configuration is a program of the user.

use super::{KeepError, Wanted, udev};

/// Returns a NixOS option that contains the udev rule. The option `hardware.block.scheduler` is not
/// used, because it matches kernel names. A kernel name may denote another device after a boot.
///
/// # Errors
/// Returns the errors of [`udev::rule`].
pub fn option(w: &Wanted<'_>) -> Result<String, KeepError> {
    let rule = udev::rule(w, "")?;
    let mut text = "services.udev.extraRules = ''\n".to_owned();
    for line in rule.text.lines() {
        // In NixOS, two apostrophes end a text, and `${` starts an expression.
        let line = line.replace("''", "'''").replace("${", "''${");
        text += &format!("  {line}\n");
    }
    text += "'';\n";
    Ok(text)
}
