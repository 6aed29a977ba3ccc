use super::*;
use crate::block::made_up::MadeUp;
use std::path::Path;

/// Returns a machine with a recent kernel and one disk that is in udev's database.
fn machine(name: &str) -> MadeUp {
    let t = MadeUp::new(name);
    t.disk(
        "sda",
        "pci0/ata1/host0/target0/0:0:0:0",
        "none [mq-deadline] kyber bfq",
    )
    .put("sys/block/sda/dev", "8:0\n")
    .put("sys/block/sda/queue/rotational", "1\n")
    .put(
        "sys/block/sda/uevent",
        "MAJOR=8\nMINOR=0\nDEVNAME=sda\nDEVTYPE=disk\n",
    )
    .put("run/udev/data/b8:0", "E:ID_SERIAL=S1\nE:ID_BUS=ata\n")
    .put("proc/sys/kernel/osrelease", "6.12.9\n");
    t
}

fn with(t: &MadeUp, planned: &[Kept]) -> Vec<String> {
    let m = t.machine();
    let d = m.device("sda").expect("there");
    at_boot(&m, d, planned)
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn messages(t: &MadeUp) -> Vec<String> {
    with(t, &[])
}

fn rule(t: &MadeUp, path: &str, text: &str) {
    t.put(path, text);
}

const ETC: &str = "etc/udev/rules.d";

#[test]
fn last_udev_rule_by_name_wins() {
    let t = machine("boot-order");
    assert!(messages(&t).is_empty());
    rule(
        &t,
        &format!("{ETC}/60-a.rules"),
        "KERNEL==\"sd[a-z]\", ATTR{queue/scheduler}=\"bfq\"\n",
    );
    rule(
        &t,
        "usr/lib/udev/rules.d/90-b.rules",
        "\n# x\nKERNEL==\"sd*\", ATTR{queue/scheduler}=\"kyber\"\n",
    );
    assert_eq!(
        messages(&t),
        ["/usr/lib/udev/rules.d/90-b.rules:3 sets kyber"]
    );
    // For an attribute, udev treats ":=" as "=", so a later rule overrides it.
    rule(
        &t,
        &format!("{ETC}/60-a.rules"),
        "ATTR{queue/scheduler}:=\"bfq\"\n",
    );
    assert_eq!(
        messages(&t),
        ["/usr/lib/udev/rules.d/90-b.rules:3 sets kyber"]
    );
    // Files in `/run` hide those in `/usr/lib`, files in `/etc` hide both, and a link to
    // `/dev/null` hides a file.
    rule(
        &t,
        "run/udev/rules.d/90-b.rules",
        "ATTR{queue/scheduler}=\"none\"\n",
    );
    assert_eq!(messages(&t), ["/run/udev/rules.d/90-b.rules:1 sets none"]);
    std::os::unix::fs::symlink("/dev/null", t.at(&format!("{ETC}/90-b.rules"))).expect("linked");
    assert_eq!(messages(&t), ["/etc/udev/rules.d/60-a.rules:1 sets bfq"]);
}

#[test]
fn udev_conditions_are_decided_as_far_as_possible() {
    let t = machine("boot-conditions");
    let one = |conditions: &str| {
        let text = format!("{conditions}, ATTR{{queue/scheduler}}=\"bfq\"\n");
        rule(&t, &format!("{ETC}/70-x.rules"), &text);
        match messages(&t).first() {
            None => "no",
            Some(s) if s.contains("may set bfq (if its conditions hold") => "maybe",
            Some(s) if s.ends_with("70-x.rules:1 sets bfq") => "yes",
            Some(s) => panic!("{s}"),
        }
    };
    for (conditions, is) in [
        (
            "ACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"sd[a-z]\"",
            "yes",
        ),
        ("KERNEL==\"nvme*\"", "no"),
        ("KERNEL!=\"sda\"", "no"),
        ("ENV{DEVTYPE}==\"disk\", ENV{ID_SERIAL}==\"S1\"", "yes"),
        ("ENV{ID_SERIAL}==\"S2\"", "no"),
        ("ENV{ID_MODEL}==\"\"", "yes"),
        ("ATTR{queue/rotational}==\"1\"", "yes"),
        ("ATTR{queue/rotational}==\"0\"", "no"),
        // For a missing attribute, both "==" and "!=" are false.
        ("ATTR{nope}==\"1\"", "no"),
        ("ATTR{nope}!=\"1\"", "no"),
        ("TEST==\"queue/scheduler\"", "yes"),
        ("TEST!=\"queue/scheduler\"", "no"),
        ("ATTR{queue/scheduler}!=\"none\"", "yes"),
        ("ATTR{queue/scheduler}==\"*[[]bfq]*\"", "maybe"),
        ("ATTR{queue/scheduler}==\"*kyber*\"", "yes"),
        ("DEVPATH==\"/devices/pci0/*/block/sda\"", "yes"),
        ("PROGRAM==\"/bin/true\"", "maybe"),
        ("KERNEL==\"sdb\", PROGRAM==\"/bin/true\"", "no"),
        ("SUBSYSTEMS==\"scsi\"", "maybe"),
        ("IMPORT{cmdline}==\"quiet\"", "no"),
        // The state at boot may differ from the current state.
        ("TEST==\"queue/iosched\"", "maybe"),
        ("ATTR{queue/nr_requests}==\"64\"", "maybe"),
    ] {
        assert_eq!(one(conditions), is, "{conditions}");
    }
    // The parent device is visible.
    t.put("sys/devices/pci0/ata1/host0/target0/0:0:0:0/model", "WDC\n");
    t.dir("sys/bus/scsi");
    t.link(
        "sys/devices/pci0/ata1/host0/target0/0:0:0:0/subsystem",
        "sys/bus/scsi",
    );
    assert_eq!(one("SUBSYSTEMS==\"scsi\", ATTRS{model}==\"WDC*\""), "yes");
    assert_eq!(one("SUBSYSTEMS==\"usb\""), "no");
}

#[test]
fn udev_jumps_and_properties_are_followed() {
    let t = machine("boot-jumps");
    let jump = |condition: &str| {
        let text =
            format!("{condition}, GOTO=\"end\"\nATTR{{queue/scheduler}}=\"bfq\"\nLABEL=\"end\"\n");
        rule(&t, &format!("{ETC}/70-x.rules"), &text);
        messages(&t)
    };
    assert_eq!(
        jump("SUBSYSTEM!=\"block\""),
        ["/etc/udev/rules.d/70-x.rules:2 sets bfq"]
    );
    assert!(jump("SUBSYSTEM==\"block\"").is_empty());
    assert!(jump("PROGRAM==\"/bin/x\"")[0].contains("may set bfq"));
    // After the label, execution continues in both cases.
    let text = "PROGRAM==\"/bin/x\", GOTO=\"a\"\nENV{.S}=\"none\"\nLABEL=\"a\"\n\
                ATTR{queue/scheduler}=\"kyber\"\n";
    rule(&t, &format!("{ETC}/70-x.rules"), text);
    assert_eq!(messages(&t), ["/etc/udev/rules.d/70-x.rules:4 sets kyber"]);
    // Another GOTO leads past the label.
    let text = "PROGRAM==\"/bin/x\", GOTO=\"a\"\nGOTO=\"end\"\nLABEL=\"a\"\n\
                ATTR{queue/scheduler}=\"kyber\"\nLABEL=\"end\"\n";
    rule(&t, &format!("{ETC}/70-x.rules"), text);
    assert!(messages(&t)[0].contains(":4 may set kyber"));
    // The database contains only the final value of a property, which a later rule may have set.
    let text = "ENV{ID_BUS}==\"ata\", ATTR{queue/scheduler}=\"kyber\"\n";
    rule(&t, &format!("{ETC}/70-x.rules"), text);
    assert_eq!(messages(&t), ["/etc/udev/rules.d/70-x.rules:1 sets kyber"]);
    rule(&t, &format!("{ETC}/80-x.rules"), "ENV{ID_BUS}=\"ata\"\n");
    assert!(messages(&t)[0].contains("70-x.rules:1 may set kyber"));
    rule(&t, &format!("{ETC}/80-x.rules"), "");
    // A rule sets a property, whose value comes from the kernel's command line.
    t.put("proc/cmdline", "quiet elevator=bfq\n");
    let text = "IMPORT{cmdline}=\"elevator\"\nENV{elevator}!=\"\", ATTR{queue/scheduler}=\"$env{elevator}\"\n";
    rule(&t, &format!("{ETC}/70-x.rules"), text);
    assert_eq!(messages(&t), ["/etc/udev/rules.d/70-x.rules:2 sets bfq"]);
}

#[test]
fn planned_rule_is_ordered_among_the_existing_ones() {
    let t = machine("boot-planned");
    rule(
        &t,
        &format!("{ETC}/90-io.rules"),
        "KERNEL==\"sd*\", ATTR{queue/scheduler}=\"kyber\"\n",
    );
    let kept = |name: &str| Kept {
        path: Path::new("/etc/udev/rules.d").join(name),
        text: "ENV{ID_SERIAL}==\"S1\", ATTR{queue/scheduler}=\"none\"\n".to_owned(),
        activate: Vec::new(),
        after_undo: Vec::new(),
    };
    assert_eq!(
        with(&t, &[kept("62-s.rules")]),
        ["/etc/udev/rules.d/90-io.rules:1 sets kyber"]
    );
    assert_eq!(
        with(&t, &[kept("91-s.rules")]),
        ["/etc/udev/rules.d/91-s.rules:1 sets none"]
    );
    // The rule is for an event that does not happen at boot.
    let text = "ACTION==\"change\", KERNEL==\"sd*\", ATTR{queue/scheduler}=\"kyber\"\n";
    rule(&t, &format!("{ETC}/90-io.rules"), text);
    let both = with(&t, &[kept("62-s.rules")]);
    assert_eq!(both[0], "/etc/udev/rules.d/62-s.rules:1 sets none");
    assert!(
        both[1].contains("may set kyber (if udev gets the event \"change\""),
        "{both:?}"
    );
    // A program that a rule runs comes after all rules, whatever the name of the rule's file.
    let text = "RUN+=\"/bin/sh -c 'echo bfq > /sys/block/%k/queue/scheduler'\"\n";
    rule(&t, &format!("{ETC}/10-io.rules"), text);
    rule(&t, &format!("{ETC}/90-io.rules"), "");
    let all = with(&t, &[kept("62-s.rules")]);
    assert_eq!(
        all,
        ["/etc/udev/rules.d/10-io.rules:1 (a program that udev runs after all rules) sets bfq"]
    );
}

#[test]
fn active_tuned_profile_applies_after_udev_rules() {
    let t = machine("boot-tuned");
    rule(
        &t,
        &format!("{ETC}/90-io.rules"),
        "KERNEL==\"sd*\", ATTR{queue/scheduler}=\"kyber\"\n",
    );
    t.put("etc/tuned/active_profile", "mine\n");
    t.put(
        "etc/tuned/mine/tuned.conf",
        "[main]\ninclude=base\n[disk]\nreadahead=4096\n",
    );
    t.put(
        "usr/lib/tuned/base/tuned.conf",
        "[main]\nsummary=x\n\n[disk]\nelevator=bfq\n",
    );
    let why = "(if tuned runs at boot)";
    let base = "/usr/lib/tuned/base/tuned.conf:5 (tuned profile mine)";
    assert_eq!(
        messages(&t),
        [
            "/etc/udev/rules.d/90-io.rules:1 sets kyber".to_owned(),
            format!("{base} may set bfq {why}")
        ]
    );
    t.put(
        "etc/systemd/system/multi-user.target.wants/tuned.service",
        "",
    );
    t.put(
        "usr/lib/systemd/system/tuned.service",
        "[Service]\nExecStart=/usr/sbin/tuned\n",
    );
    assert_eq!(messages(&t), [format!("{base} sets bfq")]);
    // A line of the profile replaces the same line of the included profile. Lines for other disks
    // do not count.
    let own = |more: &str| {
        t.put(
            "etc/tuned/mine/tuned.conf",
            format!("[main]\ninclude=base\n[disk]\n{more}"),
        )
    };
    own("elevator=none\n");
    assert_eq!(
        messages(&t),
        ["/etc/tuned/mine/tuned.conf:4 (tuned profile mine) sets none"]
    );
    let rule = ["/etc/udev/rules.d/90-io.rules:1 sets kyber"];
    own("devices=!sda\n");
    assert_eq!(messages(&t), rule);
    own("devices=vd*,sdb\n");
    assert_eq!(messages(&t), rule);
    own("devices_udev_regex=ID_SERIAL=S2\n");
    assert_eq!(messages(&t), rule);
    own("devices_udev_regex=ID_SERIAL=S1\n");
    assert_eq!(messages(&t), [format!("{base} sets bfq")]);
    // The profiles include each other.
    t.put(
        "usr/lib/tuned/base/tuned.conf",
        "[main]\ninclude=mine\n[disk]\nelevator=bfq\n",
    );
    assert_eq!(messages(&t).len(), 1);
}

#[test]
fn enabled_services_are_searched_for_scheduler_writes() {
    let t = machine("boot-services");
    let unit = "usr/lib/systemd/system/io.service";
    t.put(unit, "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo bfq > /sys/block/sda/queue/scheduler'\n");
    assert!(messages(&t).is_empty(), "nothing wants it");
    t.put("etc/systemd/system/multi-user.target.wants/io.service", "");
    assert_eq!(
        messages(&t),
        ["/usr/lib/systemd/system/io.service:3 (io.service) sets bfq"]
    );
    // The service runs a script.
    t.put(unit, "[Service]\nExecStart=-/usr/local/bin/io.sh start\n");
    t.put(
        "usr/local/bin/io.sh",
        "#!/bin/sh\n# sets it\nfor d in /sys/block/sd*/queue/scheduler; do echo none > $d; done\n",
    );
    assert_eq!(
        messages(&t),
        ["/usr/local/bin/io.sh:3 (io.service) sets none"]
    );
    t.put(
        "etc/systemd/system/io.service",
        "[Service]\nExecStart=/bin/true\n",
    );
    assert!(
        messages(&t).is_empty(),
        "the administrator's own file hides it"
    );
    t.put(
        "etc/tmpfiles.d/io.conf",
        "w /sys/block/sda/queue/scheduler - - - - kyber\n",
    );
    assert_eq!(
        messages(&t),
        ["/etc/tmpfiles.d/io.conf:1 (systemd-tmpfiles) sets kyber"]
    );
    t.put(
        "etc/rc.local",
        "#!/bin/sh\necho bfq > /sys/block/sdb/queue/scheduler\n",
    );
    assert_eq!(messages(&t).len(), 1, "another disk");
}

#[test]
fn elevator_parameter_applies_first_before_kernel_5_0() {
    let t = machine("boot-elevator");
    t.put("proc/cmdline", "quiet elevator=bfq\n");
    assert!(messages(&t).is_empty());
    t.put("proc/sys/kernel/osrelease", "4.19.0\n");
    assert_eq!(messages(&t), ["/proc/cmdline:1 sets bfq"]);
    rule(
        &t,
        &format!("{ETC}/60-a.rules"),
        "KERNEL==\"sda\", ATTR{queue/scheduler}=\"kyber\"\n",
    );
    assert_eq!(messages(&t), ["/etc/udev/rules.d/60-a.rules:1 sets kyber"]);
}
