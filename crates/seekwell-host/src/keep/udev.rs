//! Creates a udev rule for a single disk, in the form of SUSE's `60-io-scheduler.rules`. The rule
//! applies only to whole disks, and to mapped devices only on change events. It has no effect on
//! queues without schedulers, nor on zoned disks before Linux 6.10. Its file name starts with 62,
//! so that it comes after the rules of the distribution. If a known later rule would override it,
//! its name gets a higher number.

use super::{KeepError, Kept, Wanted, word};
use std::path::PathBuf;

/// Udev pattern that matches the releases of Linux from 6.10 on.
const SINCE_6_10: &str = "6.1[0-9]*|6.[2-9][0-9]*|[7-9].*|[1-9][0-9].*";

/// Returns the possible prefixes of rule names, in udev's order.
fn beginnings() -> impl Iterator<Item = String> {
    let numbers = (62..=99).map(|n: u32| n.to_string());
    numbers.chain(["zz".to_owned(), "zzzz".to_owned()])
}

/// Returns a rule that sets the scheduler and tunables whenever this device appears. The tunables
/// are attributes of `queue/` or `queue/iosched/`. The name of the rule sorts after `behind`, if
/// that is possible.
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
    // An older kernel may be booted later. It supports zoned disks only with mq-deadline.
    let older = match w.device.is_zoned() {
        true => format!("SYSCTL{{kernel.osrelease}}!=\"{SINCE_6_10}\", "),
        false => String::new(),
    };
    let text = format!(
        "# The scheduler of one disk: {}.\n\
         SUBSYSTEM!=\"block\", GOTO=\"seekwell_end\"\n\
         ACTION!=\"add|change\", GOTO=\"seekwell_end\"\n\
         ENV{{DEVTYPE}}!=\"disk\", GOTO=\"seekwell_end\"\n\
         KERNEL==\"dm-*\", ACTION!=\"change\", GOTO=\"seekwell_end\"\n\
         TEST!=\"queue/scheduler\", GOTO=\"seekwell_end\"\n\
         ATTR{{queue/scheduler}}==\"none\", GOTO=\"seekwell_end\"\n\
         ATTR{{queue/zoned}}==\"host-*\", {older}GOTO=\"seekwell_end\"\n\
         {key}==\"{value}\", {}\n\
         LABEL=\"seekwell_end\"\n",
        w.describe(),
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
