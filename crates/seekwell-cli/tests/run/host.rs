//! Runs `seekwell host` on copies of the trees of other machines. The tests need no root and do not
//! depend on this machine.

use crate::{command, good, ran, seekwell};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A copied tree, in cargo's directory for tests.
pub struct Copy(pub PathBuf);

impl Copy {
    pub fn new(name: &str) -> Copy {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("made");
        Copy(dir)
    }
    /// Returns every file and directory with its text.
    pub fn all(&self) -> BTreeMap<PathBuf, Option<String>> {
        let mut all = BTreeMap::new();
        let mut left = vec![self.0.clone()];
        while let Some(dir) = left.pop() {
            for e in fs::read_dir(dir).expect("read").flatten() {
                all.insert(e.path(), fs::read_to_string(e.path()).ok());
                if e.path().is_dir() {
                    left.push(e.path());
                }
            }
        }
        all
    }
    pub fn put(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("not the root")).expect("made");
        fs::write(path, text).expect("written");
    }
    pub fn disk(&self, name: &str, dev: &str, scheduler: &str, size: u64) {
        let at = |file: &str| format!("sys/block/{name}/{file}");
        self.put(&at("dev"), dev);
        self.put(&at("size"), &(size / 512).to_string());
        self.put(&at("queue/scheduler"), scheduler);
        self.put(&at("queue/rotational"), "0\n");
        self.put(&at("queue/nr_requests"), "256\n");
        self.put(&at("queue/read_ahead_kb"), "128\n");
        self.put(&at("queue/max_sectors_kb"), "1280\n");
        self.put(&at("queue/wbt_lat_usec"), "2000\n");
        self.put(&at("queue/write_cache"), "write back\n");
    }
    pub fn root(&self) -> &str {
        self.0.to_str().expect("text")
    }
}

/// Makes the tree of a phone of 2014, with dozens of partitions on an eMMC and single-queue names.
pub fn phone(name: &str) -> Copy {
    let c = Copy::new(name);
    c.disk("mmcblk0", "179:0", "noop deadline row [cfq]\n", 16 << 30);
    c.put("sys/block/mmcblk0/device/name", "MMC16G\n");
    c.put("sys/block/mmcblk0/device/serial", "0x1b2c3d4e\n");
    for n in 1..=28 {
        c.put(&format!("sys/block/mmcblk0/mmcblk0p{n}/partition"), "1\n");
        c.put(
            &format!("sys/block/mmcblk0/mmcblk0p{n}/dev"),
            &format!("179:{n}\n"),
        );
    }
    c.put(
        "proc/self/mountinfo",
        "1 1 0:1 / / ro - rootfs rootfs ro\n2 1 179:28 / /data rw - ext4 /dev/block/userdata rw\n",
    );
    fs::create_dir_all(c.0.join("data/app")).expect("made");
    c
}

#[test]
fn host_lists_a_phone_and_its_layers() {
    let c = phone("host-phone");
    for columns in ["80", "200"] {
        let mut cmd = command(&["host", "--root", c.root()]);
        let r = ran(cmd
            .env("COLUMNS", columns)
            .output()
            .expect("the binary runs"));
        assert_eq!((r.code, &*r.err), (0, ""));
        let wide = r.out.lines().map(|l| l.chars().count()).max();
        assert!(wide <= columns.parse().ok(), "{columns}: {}", r.out);
        assert!(
            r.out.contains("[cfq]") && r.out.contains("mmcblk0p28: /data"),
            "{}",
            r.out
        );
        assert_eq!(r.out.contains("0x1b2c3d4e"), columns == "200", "{}", r.out);
    }
    let out = good(&["host", "--root", c.root(), "/data/app"]);
    assert!(out.contains("mmcblk0 schedules, with cfq."), "{out}");
    assert!(out.contains("a part of mmcblk0"), "{out}");
    let doc: Value =
        serde_json::from_str(&good(&["host", "--root", c.root(), "--json"])).expect("JSON");
    let d = &doc["devices"][0];
    assert_eq!(d["kind"], "mmc");
    assert_eq!(d["scheduler"]["active"], "cfq");
    assert_eq!(d["partitions"][27]["mounts"][0], "/data");
    assert_eq!(d["size_bytes"], 16u64 << 30);
}

#[test]
fn invalid_sysfs_values_are_reported_below_the_table() {
    let c = phone("host-wrong");
    c.put("sys/block/mmcblk0/queue/nr_requests", "many\n");
    let out = good(&["host", "--root", c.root()]);
    let said = "! mmcblk0/queue/nr_requests: not a plausible number: \"many\"";
    assert!(out.contains(said), "{out}");
}

#[test]
fn missing_devices_and_trees_are_reported() {
    let c = phone("host-missing");
    let r = seekwell(&["host", "--root", c.root(), "mmcblk1"]);
    assert_eq!((r.code, &*r.out), (2, ""));
    assert!(r.err.contains("did you mean `mmcblk0`"), "{}", r.err);
    let r = seekwell(&["host", "--root", "/proc/self/fd"]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("has no sys/block below it"), "{}", r.err);
}

/// The command works on any machine and without root.
#[test]
fn host_describes_this_machine_without_root() {
    let r = seekwell(&["host"]);
    assert_eq!(r.code, 0, "{}", r.err);
    let r = seekwell(&["host", "/"]);
    assert_eq!(r.code, 0, "{}", r.err);
    assert!(r.out.contains("from the top down"), "{}", r.out);
    let r = seekwell(&["switch", "sda"]);
    assert_eq!((r.code, &*r.out), (2, ""), "a scheduler is missing");
}

/// The schedulers of a phone have other names. The command that undoes the switch is printed.
#[test]
fn switch_works_in_a_copied_phone_tree() {
    let c = phone("host-switch");
    let switch = |words: &[&str]| seekwell(&[&["switch", "--root", c.root()], words].concat());
    let r = switch(&["mmcblk0", "row"]);
    assert_eq!(r.code, 0, "{}", r.err);
    assert!(
        r.out.contains("mmcblk0: cfq -> row, read back"),
        "{}",
        r.out
    );
    let back = format!("switch --root {} mmcblk0 cfq", c.root());
    assert!(r.out.contains(&back), "the way back: {}", r.out);
    let scheduler = || fs::read_to_string(c.0.join("sys/block/mmcblk0/queue/scheduler"));
    assert_eq!(
        scheduler().expect("there").trim(),
        "noop deadline [row] cfq"
    );
    let before = c.all();
    for (words, says) in [
        (
            &["mmcblk0", "mq-deadline"][..],
            "nearest here is `deadline`",
        ),
        (&["mmcblk0", "bfq"], "bfq"),
        (&["mmcblk0", "cfq", "-t", "warp=1"], "no tunable \"warp\""),
        (&["mmcblk0", "row", "-t", "warp=1"], "no tunable \"warp\""),
        (&["mmcblk1", "noop"], "did you mean `mmcblk0`"),
        (&["/data/app", "none"], "nearest here is `noop`"),
        (&["mmcblk0", "noop", "--for", "true"], "cannot be used with"),
    ] {
        let r = switch(words);
        assert_eq!(r.code, 2, "{words:?}: {}", r.err);
        assert!(r.err.contains(says), "{words:?}: {}", r.err);
        assert_commands_name_the_tree(&c, &r.err);
    }
    assert_eq!(c.all(), before, "a refusal changes nothing");
    // The printed command restores the settings in this tree.
    let line = r.out.lines().find_map(|l| l.trim().strip_prefix("back: "));
    let mut sh = std::process::Command::new("sh");
    sh.args(["-c", line.expect("one")]);
    let o = ran(sh.output().expect("sh runs"));
    assert_eq!(o.code, 0, "{line:?}: {}", o.err);
    assert_eq!(
        scheduler().expect("there").trim(),
        "noop deadline row [cfq]"
    );
}

/// Checks that each printed command names the copied tree. Without the option --root, the command
/// would change this machine.
pub fn assert_commands_name_the_tree(c: &Copy, printed: &str) {
    let named = format!("--root {}", c.root());
    for line in printed.lines().filter(|l| !l.starts_with("Usage:")) {
        let acts = ["switch", "apply", "host"]
            .iter()
            .any(|w| line.contains(&format!("seekwell {w}")));
        assert!(!acts || line.contains(&named), "{line}");
        assert!(!line.contains("sudo seekwell"), "{line}");
    }
}

/// The printed command switches the device in the copy.
#[test]
fn suggested_switch_command_names_the_tree() {
    let c = phone("host-advice");
    let out = good(&["host", "--root", c.root(), "/data/app"]);
    assert!(out.contains("To change the scheduler: "), "{out}");
    let words: Vec<&str> = out.split_whitespace().collect();
    let line = format!("seekwell switch --root {} mmcblk0 SCHEDULER", c.root());
    assert!(words.join(" ").contains(&line), "{out}");
}

/// The unit file is written, recognised as Seekwell's, and removed together with its directories.
#[test]
fn restore_unit_is_installed_and_removed() {
    let c = phone("host-unit");
    let restore = |word: &str| seekwell(&["host", "restore", word, "--root", c.root()]);
    let r = restore("--install-unit");
    assert_eq!(r.code, 2);
    assert!(r.err.contains("no systemd"), "{}", r.err);
    fs::create_dir_all(c.0.join("etc/systemd/system")).expect("made");
    let before = c.all();
    let r = restore("--install-unit");
    assert_eq!(r.code, 0, "{}", r.err);
    assert_commands_name_the_tree(&c, &r.out);
    assert!(
        r.err.contains("systemctl enable seekwell-restore.service"),
        "{}",
        r.err
    );
    let unit = c.0.join("etc/systemd/system/seekwell-restore.service");
    let text = fs::read_to_string(&unit).expect("written");
    assert!(
        text.contains(" host restore\n") && r.out.contains("  [Install]"),
        "{}",
        r.out
    );
    let again = restore("--install-unit");
    assert_eq!(again.code, 0, "twice is once: {}", again.err);
    if Path::new("/usr/bin/systemd-analyze").exists() {
        let o = std::process::Command::new("systemd-analyze")
            .arg("verify")
            .arg(&unit)
            .output();
        let o = o.expect("it runs");
        let said = String::from_utf8_lossy(&o.stderr).into_owned();
        // Look only for this unit, because a container lacks other units.
        assert!(!said.contains("seekwell-restore.service:"), "{said}");
    } else {
        println!("skipped: systemd-analyze verify: not here");
    }
    // A unit file that the user has changed is kept.
    fs::write(&unit, text.clone() + "# mine\n").expect("written");
    let r = restore("--remove-unit");
    assert_eq!(r.code, 2);
    assert!(
        r.err.contains("was changed since seekwell wrote it"),
        "{}",
        r.err
    );
    fs::write(&unit, text).expect("written");
    let r = restore("--remove-unit");
    assert_eq!(r.code, 0, "{}", r.err);
    assert_eq!(c.all(), before, "byte for byte");
    let r = restore("--remove-unit");
    assert!(r.err.contains("no files that seekwell wrote"), "{}", r.err);
}

/// An interrupted `apply` is undone, and a complete one is kept.
#[test]
fn interrupted_apply_is_undone_by_host_restore() {
    let c = Copy::new("host-half");
    c.disk("sda", "8:0", "none [mq-deadline] kyber bfq\n", 4 << 40);
    c.put("run/udev/data/b8:0", "E:ID_SERIAL=WDC_WD40EFRX_WCC4E0001\n");
    c.put("proc/sys/kernel/osrelease", "6.18.44\n");
    let before = c.all();
    let apply = || {
        let words = [
            "apply",
            "kyber",
            "-d",
            "sda",
            "--persist",
            "--yes",
            "--root",
            c.root(),
        ];
        let r = seekwell(&words);
        assert_eq!(r.code, 0, "{}", r.err);
        c.put(
            "sys/block/sda/queue/scheduler",
            "none mq-deadline [kyber] bfq\n",
        );
    };
    let restore = || good(&["host", "restore", "--root", c.root()]);
    apply();
    let after = c.all();
    assert_eq!(
        restore(),
        "There is nothing to restore: no killed run left settings, files or programs.\n"
    );
    assert_eq!(c.all(), after, "what was finished stays");
    // After a power cut, the note would say that the change was in progress.
    let notes = c.0.join("var/lib/seekwell/applied");
    let note = fs::read_dir(notes)
        .expect("there")
        .flatten()
        .next()
        .expect("one")
        .path();
    let text = fs::read_to_string(&note).expect("a note");
    assert!(text.contains("\"done\": true"), "{text}");
    fs::write(&note, text.replace("\"done\": true", "\"done\": false")).expect("written");
    let out = restore();
    assert!(
        out.contains("sda: an apply was interrupted; its files are restored"),
        "{out}"
    );
    assert!(
        out.contains("on the other machine: udevadm control --reload"),
        "{out}"
    );
    c.put(
        "sys/block/sda/queue/scheduler",
        "none [mq-deadline] kyber bfq\n",
    );
    assert_eq!(c.all(), before, "byte for byte");
}
