//! `seekwell apply` below a root of its own: files, settings, and the way back.

use super::host::{Copy, acts_below, phone};
use crate::seekwell;
use std::fs;

/// A workstation's disk with what udev knows of it.
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
fn a_choice_is_shown_written_and_taken_away() {
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
    // Looking changes nothing, and neither does a question that nobody can answer.
    for (more, says, code) in [
        (&["bfq", "--persist", "--dry-run"][..], "--dry-run", 0),
        (&["bfq", "--persist"], "add --yes", 2),
        (&["bfqq", "--persist", "--yes"], "`bfq`", 2),
        (&["--undo"], "nothing that seekwell wrote for sda", 2),
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
    acts_below(&c, &r.out);
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
fn a_word_for_the_kernel_that_is_ignored_is_pointed_out() {
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

/// A phone of 2014: single-queue names, an eMMC without udev, a kernel that heeds the word.
#[test]
fn a_phone_is_switched_and_kept_by_its_own_means() {
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
    // Its serial number is an attribute.
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
    acts_below(&c, &r.err);
}
