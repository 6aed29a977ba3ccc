//! A udev rule for a single disk, in the form of SUSE's `60-io-scheduler.rules`: whole disks only,
//! mapped devices only on change events, no effect on queues without schedulers or, before Linux
//! 6.10, on zoned disks. Its number 62 sorts it after the distribution's rules; it moves further
//! back if a later rule is known to override it.

use super::{KeepError, Kept, Wanted, word};
use std::path::PathBuf;

/// Releases of Linux from 6.10 on, as a udev pattern.
const SINCE_6_10: &str = "6.1[0-9]*|6.[2-9][0-9]*|[7-9].*|[1-9][0-9].*";

/// Possible prefixes of rule names, in udev's order.
fn beginnings() -> impl Iterator<Item = String> {
    let numbers = (62..=99).map(|n: u32| n.to_string());
    numbers.chain(["zz".to_owned(), "zzzz".to_owned()])
}

/// A rule that sets scheduler and tunables (attributes of `queue/` or `queue/iosched/`) whenever
/// this device appears. Its name sorts after `behind`, if that is possible.
///
/// # Errors
/// The device has no persistent identity or no scheduler, or a word is not allowed in a rule.
pub fn rule(w: &Wanted<'_>, behind: &str) -> Result<Kept, KeepError> {
    w.fit()?;
    let (key, value, _) = w.identity()?;
    let mut set = vec![format!(
        "ATTR{{queue/scheduler}}=\"{}\"",
        word(w.scheduler)?
    )];
    for (file, value) in w.settings()? {
        set.push(format!("ATTR{{queue/{file}}}=\"{value}\""));
    }
    // An older kernel may be booted later, and it supports zoned disks under mq-deadline only.
    let older = match w.device.is_zoned() {
        true => format!("SYSCTL{{kernel.osrelease}}!=\"{SINCE_6_10}\", "),
        false => String::new(),
    };
    let text = format!(
        "# {}. The scheduler it is to have.\n\
         SUBSYSTEM!=\"block\", GOTO=\"seekwell_end\"\n\
         ACTION!=\"add|change\", GOTO=\"seekwell_end\"\n\
         ENV{{DEVTYPE}}!=\"disk\", GOTO=\"seekwell_end\"\n\
         KERNEL==\"dm-*\", ACTION!=\"change\", GOTO=\"seekwell_end\"\n\
         TEST!=\"queue/scheduler\", GOTO=\"seekwell_end\"\n\
         ATTR{{queue/scheduler}}==\"none\", GOTO=\"seekwell_end\"\n\
         ATTR{{queue/zoned}}==\"host-*\", {older}GOTO=\"seekwell_end\"\n\
         {key}==\"{value}\", {}\n\
         LABEL=\"seekwell_end\"\n",
        w.said(),
        set.join(", "),
    );
    let slug = w.slug()?;
    let named = |first: &str| format!("{first}-seekwell-{slug}.rules");
    let later = |first: &String| *named(first) > *behind && !behind.starts_with(&**first);
    let first = beginnings().find(later).unwrap_or("zzzz".to_owned());
    let file = named(&first);
    let name = &w.device.name;
    let reload = "udevadm control --reload".to_owned();
    Ok(Kept {
        path: PathBuf::from(format!("/etc/udev/rules.d/{file}")),
        text,
        activate: vec![
            reload.clone(),
            format!(
                "udevadm trigger --action=change --name-match={}",
                name.replace('!', "/")
            ),
        ],
        after_undo: vec![reload],
    })
}
