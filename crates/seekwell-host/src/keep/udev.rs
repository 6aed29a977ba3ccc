//! A udev rule for one very disk, in the shape of SUSE's `60-io-scheduler.rules`: whole disks only,
//! mapped devices on change only, nothing where a queue takes no scheduler, nothing for zoned
//! disks before Linux 6.10. It stands behind the distribution's own (62), and behind others of which
//! it is known that they would override it.

use super::{KeepError, Kept, Wanted, word};
use std::path::PathBuf;

/// Releases of Linux from 6.10 on, as a pattern of udev's.
const SINCE_6_10: &str = "6.1[0-9]*|6.[2-9][0-9]*|[7-9].*|[1-9][0-9].*";

/// What the names of rules may begin with, in udev's order.
fn beginnings() -> impl Iterator<Item = String> {
    let numbers = (62..=99).map(|n: u32| n.to_string());
    numbers.chain(["zz".to_owned(), "zzzz".to_owned()])
}

/// A rule that sets scheduler and tunables (attributes of `queue/` or `queue/iosched/`) whenever
/// this device appears. Its name sorts behind `behind`, as far as names can.
///
/// # Errors
/// The device has no name that survives a boot, takes no scheduler, or a word cannot stand there.
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
    // Of a zoned disk another kernel may be booted later, which takes it under mq-deadline only.
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
