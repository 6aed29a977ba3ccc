use super::*;
use crate::block::Tree;
use crate::block::made_up::MadeUp;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn tree(files: &[(&str, &str)]) -> MadeUp {
    let t = MadeUp::new("keep");
    t.disk("sda", "ata1", "none [mq-deadline] bfq")
        .put("sys/block/sda/dev", "8:0\n");
    for (path, text) in files {
        t.put(path, text);
    }
    t
}

fn disk(files: &[(&str, &str)]) -> Device {
    tree(files).machine().device("sda").expect("there").clone()
}

fn wanted<'a>(
    device: &'a Device,
    scheduler: &'a str,
    tunables: &'a [(String, String)],
) -> Wanted<'a> {
    Wanted {
        device,
        scheduler,
        tunables,
        zones_keep_order: false,
    }
}

fn set(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|p| (p.0.into(), p.1.into())).collect()
}

const UDEV: (&str, &str) = (
    "run/udev/data/b8:0",
    "E:ID_SERIAL=WDC_WD40_WD-WCC4E0001\nE:ID_WWN=0x50014ee2\n",
);

#[test]
fn udev_rule_matches_the_disk_by_serial_number() {
    let d = disk(&[UDEV]);
    let tunables = set(&[("low_latency", "0"), ("nr_requests", "64")]);
    let k = udev::rule(&wanted(&d, "bfq", &tunables), "").expect("a rule");
    let mut lines = k.text.lines();
    let line = lines.find(|l| l.starts_with("ENV{ID_SERIAL}"));
    assert_eq!(
        line.expect("matched"),
        "ENV{ID_SERIAL}==\"WDC_WD40_WD-WCC4E0001\", ATTR{queue/scheduler}=\"bfq\", \
         ATTR{queue/nr_requests}=\"64\", ATTR{queue/iosched/low_latency}=\"0\""
    );
    let name = "62-seekwell-WDCWD40WDWCC4E0001.rules";
    assert!(k.path.ends_with(name), "{k:?}");
    for l in k.text.lines().filter(|l| !l.starts_with('#')) {
        assert_eq!(l.matches('"').count() % 2, 0, "{l}");
    }
}

/// Without properties of udev, attributes identify a disk. Blanks inside a vendor's text are kept.
#[test]
fn udev_rule_matches_by_attributes_without_udev_properties() {
    let wwid = (
        "sys/block/sda/device/wwid",
        "t10.ATA     WDC WD40  [x]   \n",
    );
    let d = disk(&[wwid]);
    let w = wanted(&d, "bfq", &[]);
    let text = udev::rule(&w, "").expect("a rule").text;
    let matched = "ATTR{device/wwid}==\"t10.ATA     WDC WD40  ?x?\", ";
    assert!(text.contains(matched), "{text}");
    // tuned can match only properties of udev.
    let none = tuned::profile(&w, None).expect_err("no property");
    assert!(
        none.to_string().contains("use udev (--persist=udev)"),
        "{none}"
    );
}

#[test]
fn settings_that_cannot_be_persisted_are_rejected() {
    let rule = |d: &Device, s: &str, t: &[(String, String)]| udev::rule(&wanted(d, s, t), "");
    let nameless = Err(KeepError::Nameless("sda".into()));
    assert_eq!(rule(&disk(&[]), "bfq", &[]), nameless);
    let quote = disk(&[("sys/block/sda/serial", "a\", RUN+=\"/bin/x\n")]);
    assert_eq!(rule(&quote, "bfq", &[]), nameless);
    let d = disk(&[("sys/block/sda/serial", "S1\n")]);
    let bad = rule(&d, "bfq\", RUN+=\"x", &[]);
    assert!(matches!(bad, Err(KeepError::Word(_))), "{bad:?}");
    let bad = rule(&d, "bfq", &set(&[("../../x", "1")]));
    assert!(matches!(bad, Err(KeepError::Word(_))), "{bad:?}");
    let zoned = disk(&[
        ("sys/block/sda/serial", "S1\n"),
        ("sys/block/sda/queue/zoned", "host-managed\n"),
    ]);
    assert_eq!(
        rule(&zoned, "bfq", &[]),
        Err(KeepError::Zoned("sda".into()))
    );
    // Since Linux 6.10 this is allowed. The rule has no effect on an older kernel.
    let new = Wanted {
        zones_keep_order: true,
        ..wanted(&zoned, "bfq", &[])
    };
    let text = udev::rule(&new, "").expect("a rule").text;
    let line = text.lines().find(|l| l.contains("queue/zoned"));
    let line = line.expect("what an older kernel does");
    assert!(
        line.starts_with("ATTR{queue/zoned}==\"host-*\", SYSCTL{kernel.osrelease}!=\"6.1[0-9]*|")
    );
    let none = tuned::profile(&new, None).expect_err("a profile knows no kernel");
    assert!(none.to_string().contains("--persist=udev"), "{none}");
    let fixed = disk(&[
        ("sys/block/sda/serial", "S1\n"),
        ("sys/block/sda/queue/scheduler", "none\n"),
    ]);
    let none = Err(KeepError::NoScheduler("sda".into()));
    assert_eq!(rule(&fixed, "bfq", &[]), none);
}

#[test]
fn tuned_and_nixos_configurations_contain_the_same_settings() {
    let d = disk(&[UDEV]);
    let tunables = set(&[("low_latency", "0"), ("read_ahead_kb", "256")]);
    let w = wanted(&d, "bfq", &tunables);
    let k = tuned::profile(&w, Some("throughput-performance")).expect("a profile");
    let path = "/etc/tuned/seekwell-WDCWD40WDWCC4E0001/tuned.conf";
    assert_eq!(k.path, Path::new(path));
    for line in [
        "include=throughput-performance",
        "devices_udev_regex=ID_SERIAL=WDC_WD40_WD-WCC4E0001",
        "elevator=bfq",
        "readahead=256",
        "/sys/block/sda/queue/iosched/low_latency=0",
    ] {
        assert!(k.text.lines().any(|l| l == line), "{line}: {}", k.text);
    }
    assert_eq!(k.after_undo, ["tuned-adm profile throughput-performance"]);
    let n = nixos::option(&w).expect("lines");
    assert!(n.starts_with("services.udev.extraRules = ''\n"), "{n}");
    assert_eq!(n.matches("''").count(), 2, "{n}");
    assert!(n.contains("  ENV{ID_SERIAL}==\"WDC_"), "{n}");
}

#[test]
fn elevator_parameter_is_rejected_from_kernel_5_0_on() {
    let old = boot::parameter("4.19.0-13-amd64", "deadline");
    assert_eq!(old.as_deref(), Ok("elevator=deadline"));
    assert_eq!(
        boot::parameter("2.6.32", "cfq").as_deref(),
        Ok("elevator=cfq")
    );
    for new in ["5.0.0", "6.18.44-fc", "10.1"] {
        let none = boot::parameter(new, "bfq");
        assert!(matches!(none, Err(KeepError::Ignored { .. })));
    }
    let none = boot::parameter("linux", "bfq");
    assert!(matches!(none, Err(KeepError::Release(_))));
    assert!(boot::parameter("4.9.1", "cfq ro").is_err());
}

#[test]
fn existing_elevator_parameter_is_found() {
    let t = tree(&[
        (
            "etc/default/grub",
            "# elevator=x\nGRUB_CMDLINE_LINUX=\"quiet elevator=noop\"\n",
        ),
        (
            "boot/loader/entries/a.conf",
            "title a\noptions root=/dev/sda1 elevator=cfq\n",
        ),
        ("boot/loader/entries/b.conf", "options root=/dev/sda1\n"),
    ]);
    let found = boot::existing(&t.tree());
    let found: Vec<_> = found.iter().map(|f| (f.0.to_str(), &*f.1)).collect();
    assert_eq!(
        found,
        [
            (Some("/etc/default/grub"), "noop"),
            (Some("/boot/loader/entries/a.conf"), "cfq")
        ]
    );
}

/// Returns every file and directory below a path, with its content and mode.
fn all_of(dir: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    use std::os::unix::fs::MetadataExt;
    let mut all = BTreeMap::new();
    let mut left = vec![dir.to_owned()];
    while let Some(dir) = left.pop() {
        for e in fs::read_dir(&dir).expect("read").flatten() {
            let meta = fs::symlink_metadata(e.path()).expect("there");
            let bytes = match meta.is_file() {
                true => fs::read(e.path()).expect("read"),
                false => Vec::new(),
            };
            all.insert(e.path().display().to_string(), (meta.mode(), bytes));
            if meta.is_dir() {
                left.push(e.path());
            }
        }
    }
    all
}

fn machine_disk(tree: &Tree) -> Device {
    tree.device("sda").expect("there")
}

#[test]
fn undo_restores_the_tree_byte_for_byte() {
    let t = tree(&[UDEV, ("etc/udev/hwdb.bin", "x")]);
    let at = t.at("");
    let before = all_of(&at);
    let tree = t.tree();
    let d = machine_disk(&tree);
    // Two changes with different schedulers are made. The undo must cover both.
    for s in ["bfq", "none"] {
        let w = wanted(&d, s, &[]);
        let mut all = vec![udev::rule(&w, "").expect("a rule")];
        all.push(tuned::profile(&w, None).expect("a profile"));
        files::write(&tree, &d, s, None, &all).expect("written");
        for k in &all {
            let text = fs::read_to_string(tree.at(&k.path)).expect("there");
            assert_eq!(text, k.text);
        }
    }
    assert_eq!(
        files::noted(&tree, &d)
            .expect("read")
            .expect("one")
            .scheduler,
        "none"
    );
    let undone = files::undo(&tree, "sda", Some(&d)).expect("undone");
    assert_eq!(undone.files.len(), 2);
    assert_eq!(all_of(&at), before);
    let none = files::undo(&tree, "sda", Some(&d));
    assert!(matches!(none, Err(files::FilesError::Nothing(_))));
}

#[test]
fn foreign_files_are_left_unchanged() {
    let t = tree(&[UDEV]);
    let tree = t.tree();
    let d = machine_disk(&tree);
    let k = udev::rule(&wanted(&d, "bfq", &[]), "").expect("a rule");
    let rule = k.path.to_str().expect("text")[1..].to_owned();
    t.put(&rule, "# mine\n");
    let all = [k];
    let e = files::write(&tree, &d, "bfq", None, &all).expect_err("somebody's");
    assert!(matches!(e, files::FilesError::Foreign(_)), "{e}");
    assert!(!t.at("var").exists(), "and nothing was begun");
    fs::remove_file(t.at(&rule)).expect("ours");
    files::write(&tree, &d, "bfq", None, &all).expect("written");
    // Somebody has changed the file, so it is not removed.
    t.put(&rule, "# changed\n");
    let e = files::undo(&tree, "sda", Some(&d)).expect_err("changed");
    assert!(matches!(e, files::FilesError::Changed(_)), "{e}");
    assert_eq!(
        fs::read_to_string(t.at(&rule)).expect("there"),
        "# changed\n"
    );
    // Somebody has removed the file. The undo still succeeds.
    fs::remove_file(t.at(&rule)).expect("ours");
    files::undo(&tree, "sda", Some(&d)).expect("undone");
    assert!(!t.at("var").exists());
    // A symbolic link is not followed.
    std::os::unix::fs::symlink("/etc/passwd", t.at(&rule)).expect("linked");
    let e = files::write(&tree, &d, "bfq", None, &all).expect_err("a link");
    assert!(matches!(e, files::FilesError::NotPlain(_)), "{e}");
}

/// After a boot another disk may have the name. The note is found by the identity of the disk.
#[test]
fn note_is_found_by_disk_identity_after_a_rename() {
    let t = tree(&[UDEV]);
    t.disk("sdb", "ata2", "none [mq-deadline] bfq")
        .put("sys/block/sdb/dev", "8:16\n")
        .put("run/udev/data/b8:16", "E:ID_SERIAL=OTHER_1\n");
    let tree = t.tree();
    let d = machine_disk(&tree);
    let k = udev::rule(&wanted(&d, "bfq", &[]), "").expect("a rule");
    files::write(&tree, &d, "bfq", None, &[k]).expect("written");
    // The two disks have exchanged their names.
    t.put("run/udev/data/b8:0", "E:ID_SERIAL=OTHER_1\n");
    t.put("run/udev/data/b8:16", UDEV.1);
    let (a, b) = (machine_disk(&tree), tree.device("sdb").expect("there"));
    let none = files::undo(&tree, "sda", Some(&a));
    assert!(matches!(none, Err(files::FilesError::Nothing(_))));
    let undone = files::undo(&tree, "sdb", Some(&b)).expect("by its serial number");
    assert_eq!(undone.files.len(), 1);
}

/// Returns the path of the note about the only disk.
fn note_of(t: &MadeUp) -> std::path::PathBuf {
    let notes = t.at("var/lib/seekwell/applied");
    let first = fs::read_dir(notes).expect("there").flatten().next();
    first.expect("one").path()
}

/// Simulates a kill before a file gets its final name.
#[test]
fn half_written_files_are_found_and_removed() {
    let t = tree(&[UDEV]);
    let before = all_of(&t.at(""));
    let early = [
        "var/lib/seekwell/applied/.WDC-1.json.seekwell",
        "etc/udev/rules.d/.62-seekwell-WDC.rules.seekwell",
        "etc/udev/rules.d/.91-seekwell-WDC.rules.seekwell",
        "etc/systemd/system/.seekwell-restore.service.seekwell",
        "etc/tuned/seekwell-WDC/.tuned.conf.seekwell",
    ];
    let dirs = [
        "etc/udev/rules.d",
        "etc/systemd/system",
        "etc/tuned/seekwell-WDC",
    ];
    for d in dirs {
        t.dir(d);
    }
    for e in early {
        t.put(e, "half");
    }
    // A file of somebody else, a file that is being written, and a symbolic link.
    let foreign = "etc/udev/rules.d/.50-mine.rules.seekwell";
    let held = "etc/udev/rules.d/.62-seekwell-B.rules.seekwell";
    t.put(foreign, "x").put(held, "x");
    let lock = fs::File::open(t.at(held)).expect("there");
    lock.try_lock().expect("locked");
    let link = "etc/udev/rules.d/.62-seekwell-C.rules.seekwell";
    t.link(link, foreign);
    let open_to_all = "etc/udev/rules.d/.62-seekwell-D.rules.seekwell";
    t.put(open_to_all, "x");
    mode(&t, open_to_all, 0o666);
    let gone = files::sweep(&t.tree());
    let gone: Vec<String> = gone
        .iter()
        .map(|p| p.display().to_string()[1..].to_owned())
        .collect();
    let mut wanted = early.map(str::to_owned).to_vec();
    wanted.sort();
    let mut found = gone.clone();
    found.sort();
    assert_eq!(found, wanted);
    for kept in [foreign, held, link, open_to_all] {
        assert!(t.at(kept).symlink_metadata().is_ok(), "{kept}");
    }
    assert!(
        !t.at("var").join("lib/seekwell").exists(),
        "an empty directory goes"
    );
    for p in [foreign, held, link, open_to_all] {
        fs::remove_file(t.at(p)).expect("ours");
    }
    fs::remove_dir_all(t.at("var")).expect("ours");
    fs::remove_dir_all(t.at("etc")).expect("ours");
    assert_eq!(all_of(&t.at("")), before);
    // An object with the temporary name does not prevent the change.
    let d = machine_disk(&t.tree());
    let k = udev::rule(&wanted_bfq(&d), "").expect("a rule");
    let rule = k
        .path
        .file_name()
        .expect("named")
        .to_str()
        .expect("text")
        .to_owned();
    t.put(&format!("etc/udev/rules.d/.{rule}.seekwell"), "half");
    files::write(&t.tree(), &d, "bfq", None, &[k]).expect("written");
    assert!(!t.at(&format!("etc/udev/rules.d/.{rule}.seekwell")).exists());
}

fn wanted_bfq(d: &Device) -> Wanted<'_> {
    wanted(d, "bfq", &[])
}

fn mode(t: &MadeUp, path: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(t.at(path), fs::Permissions::from_mode(mode)).expect("ours");
}

#[test]
fn note_writable_by_others_is_rejected() {
    let t = tree(&[UDEV]);
    let tree = t.tree();
    let d = machine_disk(&tree);
    let k = udev::rule(&wanted_bfq(&d), "").expect("a rule");
    let rule = tree.at(&k.path);
    files::write(&tree, &d, "bfq", None, std::slice::from_ref(&k)).expect("written");
    let note = note_of(&t)
        .strip_prefix(t.at(""))
        .expect("below")
        .display()
        .to_string();
    let refused = |why: &str| {
        let e = files::undo(&tree, "sda", Some(&d)).expect_err(why);
        assert!(matches!(e, files::FilesError::Untrusted(_)), "{why}: {e}");
        assert!(e.to_string().contains("others may write to it"), "{e}");
        let e = files::write(&tree, &d, "none", None, std::slice::from_ref(&k));
        assert!(matches!(e, Err(files::FilesError::Untrusted(_))), "{why}");
        let (devices, errors) = files::cut_short(&tree);
        assert_eq!((devices.len(), errors.len()), (0, 1), "{why}");
        assert!(rule.exists(), "{why}: nothing is done by it");
    };
    mode(&t, &note, 0o622);
    refused("a note that all may write");
    mode(&t, &note, 0o600);
    for dir in ["var/lib/seekwell/applied", "var/lib/seekwell"] {
        mode(&t, dir, 0o777);
        refused(dir);
        mode(&t, dir, 0o755);
    }
    if rustix::process::geteuid().is_root() {
        use std::os::unix::fs::chown;
        for path in [&*note, "var/lib/seekwell/applied", "var/lib/seekwell"] {
            chown(t.at(path), Some(65_534), None).expect("root may");
            refused(path);
            chown(t.at(path), Some(0), None).expect("root may");
        }
    } else {
        println!("skipped: notes of another user: needs root");
    }
    // The note lists a file that Seekwell does not write.
    let text = fs::read_to_string(t.at(&note)).expect("there");
    t.put(
        &note,
        text.replace(k.path.to_str().expect("text"), "/etc/cron.d/x"),
    );
    let e = files::undo(&tree, "sda", Some(&d)).expect_err("not a rule");
    assert!(matches!(e, files::FilesError::Note(_)), "{e}");
    t.put(&note, text);
    files::undo(&tree, "sda", Some(&d)).expect("undone");
}

/// Setuid and setgid bits are never set, whatever a note contains.
#[test]
fn undo_never_sets_setuid_or_setgid_bits() {
    use std::os::unix::fs::MetadataExt;
    let t = tree(&[UDEV]);
    let tree = t.tree();
    let d = machine_disk(&tree);
    let k = udev::rule(&wanted_bfq(&d), "").expect("a rule");
    files::write(&tree, &d, "bfq", None, std::slice::from_ref(&k)).expect("written");
    let note = note_of(&t);
    let text = fs::read_to_string(&note).expect("there");
    let was = "\"before\": \"#!/bin/sh\\n\",\n      \"mode\": 2541,\n      \"path\"";
    let planted = text.replacen("\"path\"", was, 1);
    assert_ne!(planted, text);
    fs::write(&note, planted).expect("ours");
    files::undo(&tree, "sda", Some(&d)).expect("undone");
    let meta = fs::metadata(tree.at(&k.path)).expect("as it was before");
    // In octal, 2541 is 04755.
    assert_eq!(meta.mode() & 0o7777, 0o755);
}

/// A rule that must come later gets another name. The old file is removed.
#[test]
fn renamed_rule_replaces_the_old_rule_file() {
    let t = tree(&[UDEV]);
    let tree = t.tree();
    let before = all_of(&t.at(""));
    let d = machine_disk(&tree);
    let at = |behind: &str| udev::rule(&wanted_bfq(&d), behind).expect("a rule");
    let (first, second) = (at(""), at("90-io-schedulers.rules"));
    let name = |k: &Kept| {
        k.path
            .file_name()
            .expect("named")
            .to_str()
            .expect("text")
            .to_owned()
    };
    assert_eq!(name(&second), "91-seekwell-WDCWD40WDWCC4E0001.rules");
    assert!(name(&at("99-zz.rules")).starts_with("zz-seekwell-"));
    assert!(name(&at("62-seekwell-a.rules")).starts_with("63-"));
    for k in [&first, &second] {
        files::write(&tree, &d, "bfq", None, std::slice::from_ref(k)).expect("written");
        files::confirm(&tree, &d).expect("kept");
    }
    assert!(!tree.at(&first.path).exists() && tree.at(&second.path).exists());
    files::undo(&tree, "sda", Some(&d)).expect("undone");
    assert_eq!(all_of(&t.at("")), before);
}
