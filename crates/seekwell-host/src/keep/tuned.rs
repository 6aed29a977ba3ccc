//! Creates a profile of tuned. The plugin `[disk]` finds the disk by properties of udev and sets
//! the scheduler. Tunables are set by `[sysfs]`, which identifies a disk only by its kernel name.
//! The profile contains a comment about this.

use super::{KeepError, Kept, Wanted, word};
use std::path::PathBuf;

/// Escapes the special characters of a regular expression.
fn escaped(text: &str) -> String {
    let mut all = String::new();
    for c in text.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            all.push('\\');
        }
        all.push(c);
    }
    all
}

/// Returns a profile that includes the active profile `base`. Without `base` the profile stands
/// alone.
///
/// # Errors
/// Returns the same errors as for a rule. It also fails if udev has no property that identifies the
/// disk.
pub fn profile(w: &Wanted<'_>, base: Option<&str>) -> Result<Kept, KeepError> {
    w.fit()?;
    if w.device.is_zoned() {
        return Err(KeepError::Unfit(format!(
            "{} is zoned, and a profile of tuned cannot depend on the kernel release: use udev \
             (--persist=udev)",
            w.device.name
        )));
    }
    let (key, _, raw) = w.identity()?;
    let property = key.strip_prefix("ENV{").and_then(|k| k.strip_suffix('}'));
    let Some(property) = property else {
        return Err(KeepError::Unfit(format!(
            "tuned identifies disks by udev's database, which has no serial number for {}: use \
             udev (--persist=udev)",
            w.device.name
        )));
    };
    let slug = w.slug()?;
    let mut text = format!(
        "# The scheduler of one disk: {}.\n[main]\nsummary=Scheduler of one disk, by seekwell\n",
        w.describe()
    );
    if let Some(base) = base {
        text += &format!("include={}\n", word(base)?);
    }
    text += &format!(
        "\n[disk]\ndevices_udev_regex={property}={}\nelevator={}\n",
        escaped(raw),
        word(w.scheduler)?
    );
    let mut more = Vec::new();
    for (file, value) in w.settings()? {
        match file.as_str() {
            "read_ahead_kb" => text += &format!("readahead={value}\n"),
            _ => more.push(format!(
                "/sys/block/{}/queue/{file}={value}\n",
                w.device.name
            )),
        }
    }
    if !more.is_empty() {
        text += "\n# These lines use the kernel name of the disk: check them if disks are \
                 added.\n[sysfs]\n";
        text.extend(more);
    }
    Ok(Kept {
        path: PathBuf::from(format!("/etc/tuned/seekwell-{slug}/tuned.conf")),
        text,
        activate: vec![format!("tuned-adm profile seekwell-{slug}")],
        after_undo: vec![match base {
            Some(base) => format!("tuned-adm profile {base}"),
            None => "tuned-adm recommend".to_owned(),
        }],
    })
}
