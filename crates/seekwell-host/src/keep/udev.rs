//! A udev rule for one very disk, in the shape of SUSE's `60-io-scheduler.rules`: whole disks only,
//! mapped devices on change only, nothing where a queue takes no scheduler, nothing for zoned
//! disks. It stands behind the distribution's own (62).

use super::{KeepError, Kept, Wanted, word};
use std::path::PathBuf;

/// A rule that sets scheduler and tunables (attributes of `queue/` or `queue/iosched/`) whenever
/// this device appears.
///
/// # Errors
/// The device has no name that survives a boot, takes no scheduler, or a word cannot stand there.
pub fn rule(w: &Wanted<'_>) -> Result<Kept, KeepError> {
    w.fit()?;
    let (key, value, _) = w.identity()?;
    let mut set = vec![format!(
        "ATTR{{queue/scheduler}}=\"{}\"",
        word(w.scheduler)?
    )];
    for (file, value) in w.settings()? {
        set.push(format!("ATTR{{queue/{file}}}=\"{value}\""));
    }
    let text = format!(
        "# {}. The scheduler it is to have.\n\
         SUBSYSTEM!=\"block\", GOTO=\"seekwell_end\"\n\
         ACTION!=\"add|change\", GOTO=\"seekwell_end\"\n\
         ENV{{DEVTYPE}}!=\"disk\", GOTO=\"seekwell_end\"\n\
         KERNEL==\"dm-*\", ACTION!=\"change\", GOTO=\"seekwell_end\"\n\
         TEST!=\"queue/scheduler\", GOTO=\"seekwell_end\"\n\
         ATTR{{queue/scheduler}}==\"none\", GOTO=\"seekwell_end\"\n\
         ATTR{{queue/zoned}}==\"host-*\", GOTO=\"seekwell_end\"\n\
         {key}==\"{value}\", {}\n\
         LABEL=\"seekwell_end\"\n",
        w.said(),
        set.join(", "),
    );
    let name = &w.device.name;
    let reload = "udevadm control --reload".to_owned();
    Ok(Kept {
        path: PathBuf::from(format!("/etc/udev/rules.d/62-seekwell-{}.rules", w.slug()?)),
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
