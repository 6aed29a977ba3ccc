//! Tests `seekwell apply` in a copied tree: files, settings, and undo.

use super::host::{Copy, assert_commands_name_the_tree, phone};
use crate::seekwell;
use std::fs;

/// Makes the tree of a workstation with one disk, and with udev's data about it.
fn disk(name: &str) -> Copy {
    let c = Copy::new(name);
    c.disk("sda", "8:0", "none [mq-deadline] kyber bfq\n", 4 << 40);
    c.put("sys/block/sda/device/model", "WDC WD40EFRX\n");
    c.put("run/udev/data/b8:0", "E:ID_SERIAL=WDC_WD40EFRX_WCC4E0001\n");
    c.put("proc/sys/kernel/osrelease", "6.18.44\n");
    c
}

fn scheduler(c: &Copy, device: &str) -> String {
    fs::read_to_string(c.0.join(format!("sys/block/{device}/queue/scheduler"))).expect("there")
}

#[test]
fn scheduler_choice_is_previewed_applied_persisted_and_undone() {
    let c = disk("apply");
    let args = |more: &[&'static str]| -> Vec<String> {
        let base = ["apply", "--device", "sda", "--root", c.root()];
        base.iter().chain(more).map(|s| (*s).to_owned()).collect()
    };
    let run = |more: &[&'static str]| {
        let all = args(more);
        seekwell(&all.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let before = c.all();
    // Neither a dry run nor a question without an answer changes anything.
    for (more, says, code) in [
        (&["bfq", "--persist", "--dry-run"][..], "--dry-run", 0),
        (&["bfq", "--persist"], "add --yes", 2),
        (&["bfqq", "--persist", "--yes"], "`bfq`", 2),
        (&["--undo"], "no files that seekwell wrote for sda", 2),
        (&["cfq", "--persist=boot"], "nearest here is `bfq`", 2),
        (&["bfq", "--persist=boot"], "ignores elevator=", 2),
    ] {
        let r = run(more);
        assert_eq!(r.code, code, "{more:?}: {}", r.err);
        let all = format!("{}{}", r.out, r.err);
        assert!(all.contains(says), "{more:?}: {all}");
        assert_eq!(c.all(), before, "{more:?}");
    }
    let nixos = run(&["bfq", "--persist=nixos", "--dry-run"]).out;
    assert!(nixos.contains("services.udev.extraRules"), "{nixos}");
    let r = run(&["bfq", "--persist", "--yes"]);
    assert_eq!(r.code, 0, "{}", r.err);
    for says in ["mq-deadline -> bfq, read back", "written: ", "undo: "] {
        assert!(r.out.contains(says), "{says}: {}", r.out);
    }
    assert_commands_name_the_tree(&c, &r.out);
    let name = "etc/udev/rules.d/62-seekwell-WDCWD40EFRXWCC4E0001.rules";
    let rule = fs::read_to_string(c.0.join(name)).expect("written");
    assert!(
        r.out.contains(rule.lines().nth(8).expect("the match")),
        "shown: {}",
        r.out
    );
    assert_eq!(scheduler(&c, "sda").trim(), "none mq-deadline kyber [bfq]");
    let r = run(&["--undo"]);
    assert_eq!(r.code, 0, "{}", r.err);
    assert_eq!(c.all(), before, "byte for byte");
}

#[test]
fn ignored_elevator_kernel_parameter_is_reported() {
    let c = disk("apply-elevator");
    c.put("etc/default/grub", "GRUB_CMDLINE_LINUX=\"elevator=noop\"\n");
    let r = seekwell(&[
        "apply",
        "kyber",
        "-d",
        "sda",
        "--root",
        c.root(),
        "--dry-run",
    ]);
    assert_eq!(r.code, 0, "{}", r.err);
    assert!(
        r.err
            .contains("/etc/default/grub: says elevator=noop, which Linux 6.18"),
        "{}",
        r.err
    );
}

/// A phone of 2014 has single-queue names, an eMMC without udev, and a kernel that obeys
/// `elevator=`.
#[test]
fn phone_scheduler_is_switched_and_persisted_with_the_phones_own_means() {
    let c = phone("apply-phone");
    c.put("proc/sys/kernel/osrelease", "3.4.0-gd59db4e\n");
    let run = |more: &[&str]| {
        let base = ["apply", "-d", "mmcblk0", "--root", c.root()];
        seekwell(&[&base, more].concat())
    };
    let r = run(&["row", "--persist=boot"]);
    assert_eq!(r.code, 0, "{}", r.err);
    assert!(r.out.contains("elevator=row"), "{}", r.out);
    assert_eq!(scheduler(&c, "mmcblk0").trim(), "noop deadline [row] cfq");
    // The serial number of an eMMC is an attribute in sysfs.
    let r = run(&["deadline", "--persist", "--dry-run"]);
    assert!(
        r.out.contains("ATTR{device/serial}==\"0x1b2c3d4e\", "),
        "{}",
        r.out
    );
    let r = run(&["none"]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("nearest here is `noop`"), "{}", r.err);
    let r = seekwell(&["apply", "noop", "-d", "mmcblk0p3", "--root", c.root()]);
    assert!(r.err.contains("is a part of mmcblk0"), "{}", r.err);
    let r = seekwell(&["apply", "noop", "-d", "mmcblk1", "--root", c.root()]);
    assert!(r.err.contains("`seekwell host --root "), "{}", r.err);
    assert_commands_name_the_tree(&c, &r.err);
}

/// A rule may run after Seekwell's rule, or a tuned profile may be active. The command then names
/// the file and line, and the scheduler that it would set.
#[test]
fn boot_configuration_that_overrides_the_choice_is_named() {
    let c = disk("apply-later");
    c.put(
        "etc/udev/rules.d/90-io-schedulers.rules",
        "# comment\nACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"sd[a-z]\", \
         ATTR{queue/scheduler}=\"kyber\"\n",
    );
    let before = c.all();
    let run = |more: &[&str]| {
        let base = ["apply", "--device", "sda", "--root", c.root()];
        let r = seekwell(&[&base, more].concat());
        assert_eq!(r.code, 0, "{more:?}: {}", r.err);
        r.out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let rule = "/etc/udev/rules.d/90-io-schedulers.rules:2 sets kyber";
    // Without --persist, the file sets its scheduler at the next boot.
    let out = run(&["none", "--dry-run"]);
    assert!(
        out.contains(&format!("At boot {rule}. The choice lasts until then")),
        "{out}"
    );
    // Seekwell gives its rule a name that sorts later, and says why.
    let out = run(&["none", "--persist", "--dry-run"]);
    let name = "91-seekwell-WDCWD40EFRXWCC4E0001.rules";
    assert!(out.contains(rule) && out.contains(name), "{out}");
    assert!(!out.contains("At boot"), "nothing comes after it: {out}");
    // A rule that sets the same scheduler is no problem.
    let out = run(&["kyber", "--persist", "--dry-run"]);
    assert!(out.contains("62-seekwell-") && !out.contains(rule), "{out}");
    assert_eq!(c.all(), before);
    // The command finds the rule that it has written, and does not write a second one.
    let out = run(&["none", "--persist", "--yes"]);
    assert!(
        out.contains(&format!("written: {}/etc/udev/rules.d/{name}", c.root())),
        "{out}"
    );
    let out = run(&["bfq", "--persist", "--yes"]);
    assert!(out.contains(&format!("/{name}:")), "{out}");
    let rules = fs::read_dir(c.0.join("etc/udev/rules.d")).expect("there");
    assert_eq!(rules.count(), 2);
    // tuned runs after all rules. A rule cannot override it, but a profile can.
    c.put("etc/tuned/active_profile", "mine\n");
    c.put("etc/tuned/mine/tuned.conf", "[disk]\nelevator=bfq\n");
    let tuned =
        "/etc/tuned/mine/tuned.conf:2 (tuned profile mine) may set bfq (if tuned runs at boot)";
    let out = run(&["none", "--persist", "--dry-run"]);
    assert!(
        out.contains(tuned) && out.contains("--persist=tuned"),
        "{out}"
    );
    let out = run(&["none", "--persist=tuned", "--dry-run"]);
    assert!(
        out.contains("elevator=none") && !out.contains("At boot"),
        "{out}"
    );
    let host = crate::good(&["host", "--root", c.root()]);
    let host = host.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(host.contains(&format!("sda: {tuned}")), "{host}");
    let doc = crate::good(&["host", "--json", "--root", c.root()]);
    let doc: serde_json::Value = serde_json::from_str(&doc).expect("JSON");
    let last = &doc["at_boot"]
        .as_array()
        .expect("a list")
        .last()
        .expect("tuned")["setter"];
    assert_eq!(
        (last["line"].as_u64(), last["sets"].as_str()),
        (Some(2), Some("bfq"))
    );
    run(&["--undo"]);
}

/// Makes files like those that `kill -9` leaves before a file gets its final name.
#[test]
fn half_written_files_of_a_killed_apply_are_removed() {
    let half = |c: &Copy| {
        c.put("etc/udev/rules.d/.62-seekwell-X.rules.seekwell", "half");
        c.put("var/lib/seekwell/applied/.X.json.seekwell", "half");
    };
    let words = ["an unfinished file of a killed run; removed"; 2];
    let said = |text: &str| text.matches(words[0]).count();
    let c = disk("apply-half");
    half(&c);
    let apply = ["apply", "bfq", "-d", "sda", "--root", c.root()];
    let r = seekwell(&apply);
    assert_eq!((r.code, said(&r.err)), (0, words.len()), "{}", r.err);
    assert!(
        !c.0.join("etc/udev/rules.d/.62-seekwell-X.rules.seekwell")
            .exists()
    );
    half(&c);
    let undo = ["apply", "--undo", "-d", "sda", "--root", c.root()];
    let r = seekwell(&undo);
    assert_eq!(
        (r.code, said(&r.out)),
        (0, words.len()),
        "{}{}",
        r.out,
        r.err
    );
    // There is nothing else to undo, so the removal is the result that is printed.
    half(&c);
    let r = seekwell(&undo);
    assert_eq!(
        (r.code, said(&r.out)),
        (0, words.len()),
        "{}{}",
        r.out,
        r.err
    );
    assert_eq!(seekwell(&undo).code, 2, "nothing is left");
    half(&c);
    let restore = ["host", "restore", "--root", c.root()];
    let out = crate::good(&restore);
    assert_eq!(said(&out), words.len(), "{out}");
    assert_eq!(
        crate::good(&restore),
        "There is nothing to restore: no killed run left settings, files or programs.\n"
    );
    assert!(!c.0.join("var/lib/seekwell").exists());
}

/// If other users may write a note, the note is rejected with a message. `host restore` rejects it
/// too.
#[test]
fn note_writable_by_others_is_rejected() {
    use std::os::unix::fs::PermissionsExt;
    let c = disk("apply-untrusted");
    let base = ["apply", "-d", "sda", "--root", c.root()];
    let r = seekwell(&[&base[..], &["bfq", "--persist", "--yes"]].concat());
    assert_eq!(r.code, 0, "{}", r.err);
    let dir = c.0.join("var/lib/seekwell/applied");
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).expect("ours");
    let r = seekwell(&[&base[..], &["--undo"]].concat());
    let why = "belongs to another user, or others may write to it";
    assert!(r.code == 2 && r.err.contains(why), "{}", r.err);
    let r = seekwell(&["host", "restore", "--root", c.root()]);
    assert!(r.code == 4 && r.err.contains(why), "{}{}", r.out, r.err);
}
