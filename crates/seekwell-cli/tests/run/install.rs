//! An installation contains a manual page per command, completions, and the systemd unit.

use crate::good;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the commands that a help text lists.
fn commands(help: &str) -> Vec<String> {
    let list = help.split("Commands:\n").nth(1).unwrap_or_default();
    let list = list.split("\n\n").next().unwrap_or_default();
    let named = list.lines().filter_map(|l| l.strip_prefix("  "));
    let named = named.filter(|l| !l.starts_with(' '));
    let first = named.filter_map(|l| l.split(' ').next());
    first.filter(|c| *c != "help").map(str::to_owned).collect()
}

/// `make install` and the Debian package have this layout.
#[test]
fn installation_has_binary_pages_completions_and_unit() {
    let dest = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("installed");
    let _ = fs::remove_dir_all(&dest);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/tree.sh");
    let binary = env!("CARGO_BIN_EXE_seekwell");
    let o = Command::new("bash")
        .arg(script)
        .args([binary, "/usr"])
        .env("DESTDIR", &dest)
        .output()
        .expect("bash");
    let err = String::from_utf8_lossy(&o.stderr).into_owned();
    assert!(o.status.success() && err.is_empty(), "{err}");
    let all = commands(&good(&["--help"]));
    assert!(
        all.len() > 20 && all.contains(&"switch".to_owned()),
        "{all:?}"
    );
    for c in all.iter().map(|c| format!("-{c}")).chain([String::new()]) {
        let page = dest.join(format!("usr/share/man/man1/seekwell{c}.1"));
        let text = fs::read_to_string(&page).unwrap_or_else(|e| panic!("{}: {e}", page.display()));
        assert!(
            text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"),
            "{c}"
        );
    }
    for file in [
        "usr/share/bash-completion/completions/seekwell",
        "usr/share/zsh/vendor-completions/_seekwell",
        "usr/share/fish/vendor_completions.d/seekwell.fish",
    ] {
        let text = fs::read_to_string(dest.join(file)).expect(file);
        for c in &all {
            assert!(text.contains(c.as_str()), "{file}: {c}");
        }
    }
    let unit = fs::read_to_string(dest.join("lib/systemd/system/seekwell-restore.service"));
    let unit = unit.expect("a unit");
    assert!(
        unit.contains("\nExecStart=/usr/bin/seekwell host restore\n"),
        "{unit}"
    );
    let installed = dest.join("usr/bin/seekwell");
    let size = |path: &Path| fs::metadata(path).expect("there").len();
    assert!(size(&installed) <= size(Path::new(binary)));
    let o = Command::new(&installed)
        .arg("--version")
        .output()
        .expect("it runs");
    assert!(String::from_utf8_lossy(&o.stdout).starts_with("seekwell "));
    fs::remove_dir_all(&dest).expect("ours");
}
