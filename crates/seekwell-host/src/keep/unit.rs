//! Creates a systemd unit that restores the leftovers of an interrupted run at every boot.
//!
//! Settings do not survive a boot, but unfinished experiments and incomplete files do. The unit
//! runs only if such leftovers exist.

use super::Kept;
use crate::block::Device;
use std::path::{Path, PathBuf};

/// Name of the unit.
pub const NAME: &str = "seekwell-restore.service";

/// Returns a value that represents the unit in notes, in place of a disk.
pub fn subject() -> Device {
    Device {
        name: NAME.to_owned(),
        identity: vec![("UNIT".to_owned(), NAME.to_owned())],
        ..Device::default()
    }
}

/// Quotes a path for ExecStart.
fn quoted(path: &Path) -> String {
    let mut word = String::from("\"");
    for c in path.display().to_string().chars() {
        match c {
            '%' => word.push_str("%%"),
            '$' => word.push_str("$$"),
            '"' | '\\' => word.extend(['\\', c]),
            c => word.push(c),
        }
    }
    word.push('"');
    word
}

/// Returns the unit, which runs `program`.
pub fn unit(program: &Path) -> Kept {
    let text = format!(
        "[Unit]\n\
         Description=Seekwell: restore the settings and files of an interrupted run\n\
         After=local-fs.target\n\
         ConditionDirectoryNotEmpty=|/run/seekwell\n\
         ConditionDirectoryNotEmpty=|/var/lib/seekwell/runs\n\
         ConditionDirectoryNotEmpty=|/var/lib/seekwell/applied\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         ExecStart={} host restore\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n",
        quoted(program)
    );
    Kept {
        path: PathBuf::from("/etc/systemd/system").join(NAME),
        text,
        activate: vec![
            "systemctl daemon-reload".to_owned(),
            format!("systemctl enable {NAME}"),
        ],
        after_undo: vec!["systemctl daemon-reload".to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_in_the_unit_path_are_escaped() {
        let text = unit(Path::new("/opt/a b/50%$\"x")).text;
        assert!(
            text.contains("ExecStart=\"/opt/a b/50%%$$\\\"x\" host restore\n"),
            "{text}"
        );
    }
}
