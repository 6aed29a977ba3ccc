//! Unknown names on the command line, and the suggestions.

use crate::{good, scratch, seekwell};

fn trace(name: &str) -> String {
    scratch(name, b"t_ns,op,sector,sectors\n0,R,0,8\n9000000,W,800,8\n")
}

#[test]
fn misspelt_names_get_a_suggestion() {
    let file = trace("names.csv");
    let rows: &[(&[&str], &str)] = &[
        (&["replay", &file, "-s", "mqdeadline"], "`mq-deadline`"),
        (&["replay", &file, "-s", "as"], "`anticipatory`"),
        (&["replay", &file, "-s", "dedline"], "`deadline`"),
        (&["schedulers", "cfg"], "`cfq`"),
        (&["explain", &file, "-s", "elevator=as"], "`anticipatory`"),
        (
            &["replay", &file, "-s", "deadline:fifobatch=1"],
            "`fifo_batch`",
        ),
        (&["replay", &file, "-t", "fifo_bach=1"], "`fifo_batch`"),
        (&["run", "androbench"], "`androbench-io`"),
        (&["compare", "-w", "fsmark:files=3"], "`fs-mark`"),
        (&["workloads", "pgbnech"], "`pgbench`"),
        (&["run", "fs-mark", "--param", "file=3"], "`files`"),
        (
            &["replay", &file, "-d", "hitachi-7k20", "-s", "noop"],
            "hdd:hitachi-7k200",
        ),
        (&["devices", "hdd:hitachi-7k20"], "`hdd:hitachi-7k200`"),
        (&["devices", "hdd:hitachi-7k200,rmp=1"], "`rpm`"),
        (&["formats", "blktrase"], "`blktrace`"),
        (&["replay", &file, "--format", "iolog"], "`fio-iolog-v3`"),
        (&["demo", "write-starvation"], ""),
    ];
    for (args, meant) in rows {
        let r = seekwell(args);
        assert_eq!((r.code, &*r.out), (2, ""), "{args:?}: {}", r.err);
        assert!(r.err.contains(meant), "{args:?}: {}", r.err);
        assert_eq!(r.err.lines().count(), 1, "one sentence: {}", r.err);
    }
}

#[test]
fn ambiguous_device_word_lists_the_matching_devices() {
    let r = seekwell(&["compare", "-d", "nvme"]);
    assert_eq!(r.code, 2);
    let these = "there are ssd:nvme-dc-2t, ssd:nvme-dramless-1t, ssd:nvme-gen4-tlc-2t, ";
    assert!(r.err.contains(these), "{}", r.err);
    // The kind of a device can be left out if only one preset has the name.
    let file = trace("bare-name.csv");
    let out = good(&["replay", &file, "-d", "hitachi-7k200", "-s", "noop"]);
    assert!(out.contains("Travelstar") || out.contains("7k200"), "{out}");
}

/// A current BFQ on a phone of 2013 may not be what the user meant, so there is a note.
#[test]
fn scheduler_of_another_era_than_the_device_is_reported() {
    let file = trace("time.csv");
    let err = |device: &str, schedulers: &str| {
        let r = seekwell(&["replay", &file, "-d", device, "-s", schedulers]);
        assert_eq!(r.code, 0, "{}", r.err);
        let quiet = ["replay", &file, "-d", device, "-s", schedulers, "--quiet"];
        assert_eq!(seekwell(&quiet).err, "");
        r.err
    };
    let told = err("emmc:motog", "row,bfq");
    assert!(
        told.contains("emmc:motog dates from 2013, but bfq means version 6.12")
            && told.contains("bfq-v7r8"),
        "{told}"
    );
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(err("emmc:motog", "cfq").contains("cfq-3.4"));
    assert!(err("hdd:hus728t8", "bfq").contains("dates from 2018"));
    // There is no note in four cases: the user named the version, both versions run, the disk and
    // the version may have met in the same kernel, or the device is newer.
    for (device, schedulers) in [
        ("emmc:motog", "bfq-v7r8,cfq-3.4,row"),
        ("emmc:motog", "bfq,bfq-v7r8"),
        ("emmc:motog", "mq-deadline"),
        ("hdd:hitachi-7k200", "cfq,deadline"),
        ("ssd:nvme-gen4-tlc-2t", "bfq"),
        // Since 2019, blk-mq is the only layer of the kernel.
        ("ssd:nvme-dc-2t", "bfq"),
        ("ssd:sata-tlc-1t", "bfq"),
        ("hdd:exos-x18", "bfq"),
        ("sd:samsung-evoplus32", "bfq"),
    ] {
        assert_eq!(err(device, schedulers), "", "{device} {schedulers}");
    }
    assert_eq!(
        seekwell(&["replay", &file, "-s", "bfq,noop"]).err,
        "",
        "no device chosen"
    );
    let page = good(&["schedulers", "--details"]);
    assert!(
        page.contains("NAME-VERSION") && page.contains("bfq-v7r8"),
        "{page}"
    );
}

/// In a sentence, `none` is quoted. Without quotes, "undefeated: none" reads as if no scheduler
/// were undefeated.
#[test]
fn scheduler_named_none_is_quoted_in_sentences() {
    let device = "ssd:sata-tlc-1t";
    let two = ["-w", "fs-mark:files=10", "-w", "fs-mark:files=20"];
    let with = |command: &str, more: &[&str]| {
        let head = [command, "-d", device, "-s", "none,bfq,kyber"];
        good(&[&head, more, &["--seeds", "3", "--quiet"]].concat())
    };
    let single = [two[0], two[1]];
    let said = [
        with("compare", &two),
        with("compare", &[&two[..], &["--details"]].concat()),
        with("recommend", &two),
        with("recommend", &single),
        with("replay", &[&trace("prose.csv")]),
    ];
    let mut quoted = 0;
    for text in &said {
        // Lines may be broken at any blank.
        let prose = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for before in [
            "Undefeated:",
            "against",
            "Keep",
            "Take",
            "of",
            "behind",
            "and",
            "Verdict:",
            "today):",
        ] {
            let bare = format!("{before} none");
            assert!(!prose.contains(&bare), "{bare}: {text}");
        }
        for after in [
            "ahead",
            "behind",
            "leads",
            "is ahead",
            "level",
            "not decided",
        ] {
            let bare = format!(" none {after}");
            assert!(!prose.contains(&bare), "{bare}: {text}");
        }
        quoted += prose.matches("`none`").count();
    }
    assert!(quoted >= said.len(), "{quoted}: {said:#?}");
    let r = seekwell(&["replay", &trace("prose.csv"), "-s", "none:fifo_batch=1"]);
    assert!(
        r.err.contains("`none` has no tunable \"fifo_batch\""),
        "{}",
        r.err
    );
    let r = seekwell(&["replay", &trace("prose.csv"), "-s", "none-9"]);
    assert!(r.err.contains("`none` has no version \"9\""), "{}", r.err);
}

/// Returns whether a character controls the terminal instead of being shown.
fn acts(c: char) -> bool {
    c != '\n' && c != '\t' && seekwell_core::foreign::acts(c)
}

/// Names with terminal controls and right-to-left text appear in every place where untrusted names
/// can appear.
#[test]
fn control_characters_in_foreign_names_are_masked() {
    const EVIL: &str = "x\u{9b}31m\u{202e}\u{2066}\u{1b}[2J\u{7}y\u{2028}\u{200f}";
    // The trace contains such process names, and its file has such a name.
    let one = |t: u64, sector: u64| {
        let head = format!("{:>16}-42      [000] ..... ", EVIL);
        format!(
            "{head}{t}.000100: block_rq_issue: 8,0 R 4096 () {sector} + 8 none,0,0 [{EVIL}]\n\
             {head}{t}.004100: block_rq_complete: 8,0 R () {sector} + 8 none,0,0 [0]\n"
        )
    };
    let trace: String = (1..40).map(|i| one(i, i * 800)).collect();
    let trace = scratch(&format!("{EVIL}.ftrace"), trace.as_bytes());
    let csv = scratch(
        &format!("{EVIL}.csv"),
        format!("t_us,id,pid,op,sector,n\n0,1,1,R,1000,8\n0,2,1,{EVIL},1008,8\n").as_bytes(),
    );
    let case = format!(
        "{{\"case\":\"{EVIL}\",\"note\":\"{EVIL}\",\"elevator\":\"noop\",\"input\":[[0,1,1,\"R\",1000,8]]}}\n"
    );
    let case = case
        .replace('\u{1b}', "\\u001b")
        .replace('\u{7}', "\\u0007");
    let case = scratch("evil.jsonl", case.as_bytes());
    let host = super::host::phone("names-evil");
    host.put("sys/block/mmcblk0/device/name", EVIL);
    host.put(
        &format!("etc/udev/rules.d/90-{EVIL}.rules"),
        &format!("ATTR{{queue/scheduler}}=\"{EVIL}\"\n"),
    );
    let root = host.root();
    let word = format!("fs-mark:{EVIL}=1");
    let toml = scratch(
        "evil.toml",
        format!("[experiment]\nname = \"{}\"\n", "x\u{9b}\u{202e}").as_bytes(),
    );
    let rows: &[&[&str]] = &[
        &["report", &trace],
        &["report", &trace, "--json"],
        &["report", &trace, "--markdown"],
        &["replay", &trace, "-s", "noop", "-d", "hdd:hitachi-7k200"],
        &["replay", &trace, "-s", "noop", "--details"],
        &["replay", &trace, "-s", "noop", "--json"],
        &["explain", &case],
        &["explain", &case, "--json"],
        &["explain", &case, "--case", EVIL, "--all"],
        &["host", "--root", root],
        &["host", "--root", root, "--json"],
        &["host", "--root", root, "/dev/mmcblk0"],
        &[
            "apply",
            "deadline",
            "-d",
            "mmcblk0",
            "--root",
            root,
            "--dry-run",
        ],
        // These words are wrong, and come from the command line or from a file.
        &["explain", &csv],
        &["run", EVIL],
        &["run", &word],
        &["compare", "-d", EVIL],
        &["compare", "-s", EVIL],
        &["schedulers", EVIL],
        &["report", EVIL],
        &["host", EVIL],
        &["apply", EVIL, "-d", "mmcblk0", "--root", root],
        &["switch", EVIL, EVIL, "--root", root],
        &["compare", &toml],
        &[EVIL],
        &["run", &format!("--{EVIL}")],
        &["run", "fs-mark", "--seed", EVIL],
        &["results", EVIL],
    ];
    let mut shown = 0;
    for args in rows {
        let r = seekwell(args);
        for text in [&r.out, &r.err] {
            let bad = text.lines().find(|l| l.contains(acts));
            assert!(bad.is_none(), "{args:?}: {bad:?}");
        }
        shown += usize::from(format!("{}{}", r.out, r.err).contains('\u{fffd}'));
    }
    assert!(
        shown * 2 > rows.len(),
        "only {shown} of {} name it at all",
        rows.len()
    );
}
