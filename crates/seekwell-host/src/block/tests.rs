//! Reads simulated machines from trees of files: common machines and malformed trees.

use super::made_up::MadeUp;
use super::*;
use proptest::prelude::*;
use std::path::Path;

/// Returns a server with many kinds of devices. Two SATA disks form a mirror, with encryption and
/// LVM on top. There is an NVMe drive, a USB stick, a shingled disk, and a virtual machine's disk.
/// A btrfs uses two partitions. Both kinds of multipath and a loop device are included.
fn server(name: &str) -> MadeUp {
    let t = MadeUp::new(name);
    let all = "none [mq-deadline] kyber bfq";
    t.disk("nvme0n1", "pci0/nvme/nvme0", "[none] mq-deadline kyber bfq");
    t.put(
        "sys/block/nvme0n1/device/model",
        "Samsung SSD 990 PRO 2TB   \n",
    );
    t.put("sys/block/nvme0n1/device/serial", "S7DNNJ0W          \n");
    t.put("sys/block/nvme0n1/dev", "259:0\n");
    t.queue("nvme0n1", "rotational", "0")
        .queue("nvme0n1", "nr_requests", "1023");
    t.queue("nvme0n1", "zoned", "none")
        .queue("nvme0n1", "write_cache", "write back");
    for cpu in 0..8 {
        t.put(&format!("sys/block/nvme0n1/mq/{cpu}/nr_tags"), "1023\n");
    }
    for (disk, major) in [("sda", 0), ("sdb", 16)] {
        t.disk(disk, &format!("pci0/ata{major}/host0/target0"), all);
        t.put(&format!("sys/block/{disk}/dev"), format!("8:{major}\n"));
        t.put(&format!("sys/block/{disk}/device/vendor"), "ATA     \n");
        t.put(
            &format!("sys/block/{disk}/device/model"),
            "WDC WD40EFRX-68N\n",
        );
        t.put(&format!("sys/block/{disk}/device/queue_depth"), "32\n");
        t.queue(disk, "rotational", "1")
            .queue(disk, "wbt_lat_usec", "75000");
        t.queue(disk, "iosched/fifo_batch", "16");
        t.part(disk, &format!("{disk}1"), &format!("8:{}", major + 1));
        t.part(disk, &format!("{disk}2"), &format!("8:{}", major + 2));
    }
    // The page contains four bytes of header, then text.
    t.put(
        "sys/block/sda/device/vpd_pg80",
        b"\0\x80\0\x14     WD-WCC4E0001",
    );
    t.put(
        "run/udev/data/b8:16",
        "S:disk/by-id/x\nE:ID_SERIAL_SHORT=WD-WCC4E0002\n",
    );
    t.bio("md0", "9:0", &["sda1", "sdb1"]);
    t.put("sys/block/md0/md/level", "raid1\n");
    t.bio("dm-0", "253:0", &["md0"]);
    t.put("sys/block/dm-0/dm/uuid", "CRYPT-LUKS2-1234\n");
    t.put("sys/block/dm-0/dm/name", "secret\n");
    t.bio("dm-1", "253:1", &["dm-0"]);
    t.put("sys/block/dm-1/dm/uuid", "LVM-abcdef\n");
    t.put("sys/block/dm-1/dm/name", "vg-pg\n");
    t.disk("sdc", "pci0/usb2/2-1/host6", all)
        .queue("sdc", "rotational", "1");
    t.put("sys/block/sdc/removable", "1\n");
    t.disk("sdd", "pci0/ata9/host9", "[mq-deadline] none")
        .queue("sdd", "zoned", "host-managed");
    t.disk("vda", "pci0/virtio1", all)
        .put("sys/block/vda/serial", "disk-1\n");
    t.put("sys/block/vda/dev", "254:0\n");
    // NVMe multipath.
    t.disk("nvme1n1", "virtual/nvme-subsystem/nvme-subsys1", "none");
    for path in ["nvme1c1n1", "nvme1c2n1"] {
        t.disk(path, "pci0/nvme/nvme1", "[none] mq-deadline")
            .put(&format!("sys/block/{path}/hidden"), "1\n");
    }
    // Request-based dm-multipath with two paths.
    for (disk, dev) in [("sde", "8:64"), ("sdf", "8:80")] {
        t.disk(disk, "pci1/host20", "[none] mq-deadline bfq");
        t.put(&format!("sys/block/{disk}/dev"), dev);
    }
    t.bio("dm-2", "253:2", &["sde", "sdf"]);
    t.put("sys/block/dm-2/dm/uuid", "mpath-3600508b4\n");
    t.queue("dm-2", "scheduler", "[mq-deadline] none");
    // A loop device with a file on the NVMe drive.
    t.disk("loop3", "virtual", "[none] mq-deadline kyber bfq");
    t.put("sys/block/loop3/dev", "7:3\n");
    t.put("sys/block/loop3/loop/backing_file", "/home/vm/disk.img\n");
    t.put("sys/block/loop3/loop/dio", "1\n");
    t.put("home/vm/disk.img", "");
    t.bio("loop7", "7:7", &[])
        .put("sys/block/loop7/size", "0\n");
    t.bio("zram0", "252:0", &[]);
    for dev in ["sda2", "sdb2"] {
        t.put(&format!("sys/fs/btrfs/abcd/devices/{dev}/x"), "");
    }
    for d in [
        "srv/pg", "data", "nfs", "img", "run/lock", "merged", "san", "mp", "dev",
    ] {
        t.dir(d);
    }
    t.put(
        "proc/self/mountinfo",
        "20 1 259:0 / / rw,noatime - ext4 /dev/nvme0n1 rw\n\
         21 20 253:1 / /srv rw - xfs /dev/mapper/vg-pg rw\n\
         22 20 0:41 / /data rw - btrfs /dev/sda2 rw\n\
         23 20 0:50 / /nfs rw - nfs4 nas:/export rw\n\
         24 20 7:3 / /img rw - ext4 /dev/loop3 rw\n\
         25 20 0:51 / /run rw - tmpfs tmpfs rw\n\
         26 20 0:52 / /merged rw - overlay overlay rw,lowerdir=/srv/pg:/nowhere,upperdir=/data,workdir=/x\n\
         27 20 253:2 / /san rw - xfs /dev/mapper/mpatha rw\n\
         28 20 259:9 / /mp rw - xfs /dev/nvme1n1 rw\n",
    );
    t.put("sys/block/nvme1n1/dev", "259:9\n");
    t.put(
        "proc/swaps",
        "Filename Type Size Used Priority\n/dev/zram0 partition 1 0 -2\n",
    );
    t.put("proc/cmdline", "ro quiet elevator=deadline\n");
    t
}

fn layers_of(m: &Machine, path: &str) -> Under {
    m.under(Path::new(path)).expect("there")
}

/// Returns the names of the layers, each after its depth.
fn shape(u: &Under) -> String {
    let all = u.steps.iter().map(|s| format!("{}{}", s.depth, s.name));
    all.collect::<Vec<_>>().join(" ")
}

#[test]
fn devices_are_described_with_model_size_and_queue() {
    let t = server("devices");
    let m = t.machine();
    let get = |name: &str| m.device(name).expect(name);
    let n = get("nvme0n1");
    assert_eq!(n.description(), "NVMe SSD");
    assert_eq!(n.model.as_deref(), Some("Samsung SSD 990 PRO 2TB"));
    assert_eq!(n.serial.as_deref(), Some("S7DNNJ0W"));
    assert_eq!((n.hw_queues, n.depth), (Some(8), Some(1023)));
    assert_eq!((n.size_bytes, n.nr_requests), (Some(1 << 30), Some(1023)));
    assert_eq!(n.write_cache.as_deref(), Some("write back"));
    assert!(n.trouble.is_empty() && n.wbt_lat_usec.is_none());
    let (a, b) = (get("sda"), get("sdb"));
    assert_eq!((a.description().as_str(), a.depth), ("SATA HDD", Some(32)));
    assert_eq!(a.serial.as_deref(), Some("WD-WCC4E0001"), "page 80");
    assert_eq!(b.serial.as_deref(), Some("WD-WCC4E0002"), "udev");
    assert_eq!(a.tunables["fifo_batch"], "16");
    assert_eq!(a.wbt_lat_usec, Some(75_000));
    assert_eq!(a.partitions[1].mounts, [Path::new("/data")], "btrfs");
    assert_eq!(
        b.partitions[1].mounts,
        [Path::new("/data")],
        "its second device"
    );
    assert_eq!(get("sdc").description(), "USB HDD");
    assert!(get("sdc").removable && get("sdd").is_zoned() && !n.is_zoned());
    assert_eq!(get("vda").serial.as_deref(), Some("disk-1"));
    assert_eq!(get("md0").description(), "md raid1");
    assert_eq!(get("dm-1").mounts, [Path::new("/srv")]);
    assert_eq!(get("nvme1n1").below, ["nvme1c1n1", "nvme1c2n1"]);
    assert!(get("nvme1c1n1").hidden && get("zram0").swap);
    assert!(get("loop7").idle() && !get("loop3").idle());
    assert_eq!(get("zram0").scheduler, Scheduler::Absent);
    assert_eq!(m.elevator.as_deref(), Some("deadline"));
}

#[test]
fn layered_storage_is_resolved_to_its_disks() {
    let t = server("stack");
    let u = layers_of(&t.machine(), "/srv/pg");
    assert_eq!(
        shape(&u),
        "0xfs 1dm-1 2dm-0 3md0 4sda1 5sda 4sdb1 5sdb",
        "{u:#?}"
    );
    assert_eq!(u.deciding, ["sda", "sdb"]);
    assert_eq!(
        u.verdict,
        "2 devices schedule, all alike: sda (mq-deadline), sdb (mq-deadline)."
    );
    assert!(
        u.steps[1].says.starts_with("LVM vg-pg: no scheduler"),
        "{u:#?}"
    );
    assert_eq!(u.mount_point.as_deref(), Some(Path::new("/srv")));
    t.queue("sdb", "scheduler", "[none] bfq");
    let u = layers_of(&t.machine(), "/srv");
    assert!(
        u.verdict
            .contains("not alike: sda (mq-deadline), sdb (`none`)"),
        "{u:?}"
    );
}

#[test]
fn file_systems_over_several_devices_or_none_are_described() {
    let t = server("fs");
    let m = t.machine();
    let u = layers_of(&m, "/data");
    assert_eq!(shape(&u), "0btrfs 1sda2 2sda 1sdb2 2sdb");
    assert!(u.steps[0].says.ends_with("over 2 devices"), "{u:?}");
    let u = layers_of(&m, "/nfs");
    assert!(
        u.deciding.is_empty() && u.verdict.contains("on another machine"),
        "{u:?}"
    );
    let u = layers_of(&m, "/run/lock");
    assert!(u.verdict.contains("in memory"), "{u:?}");
    let u = layers_of(&m, "/merged");
    assert_eq!(
        shape(&u),
        "0overlay 1btrfs 2sda2 3sda 2sdb2 3sdb 1xfs 2dm-1 3dm-0 4md0 5sda1 6sda 5sdb1 6sdb 1?"
    );
    assert_eq!(u.deciding, ["sda", "sdb"]);
    assert!(u.steps.iter().any(|s| s.acts == Acts::AsAbove));
    assert!(
        u.steps.last().is_some_and(|s| s.says.contains("/nowhere")),
        "{u:?}"
    );
}

#[test]
fn deciding_queue_is_found_for_nvme_and_dm_multipath() {
    let t = server("multipath");
    let m = t.machine();
    let u = layers_of(&m, "/mp");
    assert_eq!(shape(&u), "0xfs 1nvme1n1 2nvme1c1n1 2nvme1c2n1");
    assert_eq!(u.deciding, ["nvme1c1n1", "nvme1c2n1"], "{u:#?}");
    assert!(
        u.steps[1].says.contains("sysfs shows only `none`"),
        "{u:#?}"
    );
    let u = layers_of(&m, "/san");
    assert_eq!(shape(&u), "0xfs 1dm-2 2sde 2sdf");
    assert_eq!(u.deciding, ["dm-2"]);
    assert_eq!(u.steps[2].acts, Acts::Bypassed);
    assert!(u.again.is_empty());
}

#[test]
fn loop_device_and_its_backing_disk_both_schedule() {
    let t = server("loop");
    let m = t.machine();
    let u = layers_of(&m, "/img");
    assert_eq!(shape(&u), "0ext4 1loop3 2ext4 3nvme0n1");
    assert_eq!(
        (&u.deciding[..], &u.again[..]),
        (&["loop3".into()][..], &["nvme0n1".into()][..])
    );
    assert!(
        u.verdict
            .ends_with("schedule the same requests again: nvme0n1 (`none`)."),
        "{u:?}"
    );
    assert!(m.carries_root("nvme0n1") && !m.carries_root("loop3"));
}

#[test]
fn devices_are_found_by_name_node_and_mapper_path() {
    let t = server("names");
    let m = t.machine();
    for (asked, name) in [
        ("sda", "sda"),
        ("sda2", "sda2"),
        ("/dev/sda", "sda"),
        ("/dev/mapper/vg-pg", "dm-1"),
        ("nvme1c1n1", "nvme1c1n1"),
    ] {
        assert_eq!(
            layers_of(&m, asked).device.as_deref(),
            Some(name),
            "{asked}"
        );
    }
    let wrong = |asked: &str| m.under(Path::new(asked)).expect_err("no").to_string();
    assert!(wrong("sdz").contains("no such device"), "{}", wrong("sdz"));
    assert!(
        wrong("nvmeon1").contains("`nvme0n1`"),
        "{}",
        wrong("nvmeon1")
    );
    assert!(
        wrong("/srv/pg/base/1").ends_with("; /srv/pg is there"),
        "{}",
        wrong("/srv/pg/base/1")
    );
}

/// A phone with one eMMC and a kernel of 2014, which has single-queue schedulers and dozens of
/// partitions.
#[test]
fn phone_with_emmc_is_described() {
    let t = MadeUp::new("phone");
    t.disk(
        "mmcblk0",
        "msm_sdcc.1/mmc_host/mmc0",
        "noop deadline row [cfq]",
    );
    t.put("sys/block/mmcblk0/dev", "179:0\n")
        .put("sys/block/mmcblk0/device/name", "MMC16G\n");
    t.queue("mmcblk0", "rotational", "0")
        .queue("mmcblk0", "nr_requests", "128");
    for n in 1..=28 {
        t.part("mmcblk0", &format!("mmcblk0p{n}"), &format!("179:{n}"));
    }
    t.dir("data/app").put(
        "proc/self/mountinfo",
        "1 1 0:1 / / ro - rootfs rootfs ro\n2 1 179:28 / /data rw - ext4 /dev/block/mmcblk0p28 rw\n",
    );
    let m = t.machine();
    let u = layers_of(&m, "/data/app");
    assert_eq!(shape(&u), "0ext4 1mmcblk0p28 2mmcblk0");
    let d = m.device("mmcblk0").expect("there");
    assert_eq!(d.scheduler.offered(), ["noop", "deadline", "row", "cfq"]);
    assert_eq!(
        (d.description().as_str(), d.model.as_deref()),
        ("eMMC/SD", Some("MMC16G"))
    );
    assert_eq!(
        d.partitions.last().map(|p| p.mounts.len()),
        Some(1),
        "p28 stands last"
    );
}

#[test]
fn malformed_sysfs_values_are_reported_without_harm() {
    let t = MadeUp::new("hostile");
    t.disk("sda", "", "none [bfq");
    t.put("sys/block/sda/queue/nr_requests", "many\n");
    t.put("sys/block/sda/queue/rotational", b"\xff\xfe\x00");
    t.put("sys/block/sda/size", "18446744073709551615\n");
    t.dir("sys/block/sda/queue/read_ahead_kb");
    t.link(
        "sys/block/sda/queue/nomerges",
        "sys/block/sda/queue/nomerges",
    );
    rustix::fs::mknodat(
        rustix::fs::CWD,
        t.at("sys/block/sda/queue/zoned"),
        rustix::fs::FileType::Fifo,
        0o644.into(),
        0,
    )
    .expect("a pipe");
    // Devices that are stacked in a loop, a link to itself, and a link out of the tree.
    t.bio("dm-0", "253:0", &["dm-1", "gone"])
        .bio("dm-1", "253:1", &["dm-0", "dm-1"]);
    t.link("sys/block/dm-9", "sys/block/dm-9");
    std::os::unix::fs::symlink("/", t.at("out")).expect("linked");
    t.put("sys/block/loop0/loop/backing_file", "/x/\x1b[2J\n")
        .put("sys/block/loop0/size", "8\n");
    t.put(
        "proc/self/mountinfo",
        b"1 1 253:0 / / rw - ext4 x rw\n\xff\xff\xff - \n - - -\n",
    );
    let m = t.machine();
    let d = m.device("sda").expect("there");
    let trouble = d.trouble.join("\n");
    for part in [
        "queue/scheduler: cannot be understood: \"none [bfq\"",
        "queue/nr_requests: not a plausible number: \"many\"",
        "queue/rotational: contains bytes that are not text",
        "queue/read_ahead_kb: not a plain file",
        "queue/nomerges: ",
        "queue/zoned: not a plain file",
    ] {
        assert!(trouble.contains(part), "{part}: {trouble}");
    }
    assert_eq!((d.size_bytes, d.nr_requests), (None, None));
    let u = layers_of(&m, "/sys");
    assert_eq!(shape(&u), "0ext4 1dm-0 2dm-1 3dm-0 3dm-1 2gone");
    assert_eq!(
        u.verdict,
        "No scheduler can act here: these devices have none."
    );
    let u = layers_of(&m, "loop0");
    assert!(u.steps.iter().all(|s| !s.says.contains('\x1b')), "{u:?}");
    assert!(m.under(Path::new("/out")).is_err());
    assert!(m.device("dm-9").is_none());
}

#[test]
fn empty_machine_has_no_devices() {
    let t = MadeUp::new("empty");
    let m = t.machine();
    assert!(m.devices.is_empty() && m.under(Path::new("sda")).is_err());
    let u = layers_of(&m, "/");
    assert!(
        u.verdict.contains("the mount table does not contain it"),
        "{u:?}"
    );
}

/// For an unrealistically deep or wide stack the search ends soon.
#[test]
fn search_of_a_deep_and_wide_stack_is_bounded() {
    let t = MadeUp::new("deep");
    for n in 0..100 {
        let below: Vec<String> = (1..5).map(|i| format!("dm-{}", n + i)).collect();
        let below: Vec<&str> = below.iter().map(|b| &**b).collect();
        t.bio(&format!("dm-{n}"), &format!("253:{n}"), &below);
    }
    let u = layers_of(&t.machine(), "dm-0");
    assert!(u.steps.len() <= 500, "{}", u.steps.len());
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        "[a-z0-9:/\\[\\] \n,=-]{0,40}".prop_map(String::into_bytes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// With any file contents there is no panic and no control character in the output.
    #[test]
    fn any_sysfs_content_is_accepted_without_panic(
        files in proptest::collection::vec((0usize..22, content()), 0..12),
        mountinfo in content(), swaps in content(),
    ) {
        const NAMES: [&str; 22] = [
            "dev", "size", "removable", "ro", "hidden", "diskseq", "loop/backing_file", "loop/dio",
            "dm/uuid", "dm/name", "md/level", "queue/scheduler", "queue/rotational",
            "queue/nr_requests", "queue/wbt_lat_usec", "queue/zoned", "device/model",
            "device/vpd_pg80", "device/queue_depth", "serial", "wwid", "queue/iosched/x",
        ];
        let t = MadeUp::new("any");
        t.bio("dm-0", "253:0", &["sda"]).disk("sda", "ata1", "[none] bfq");
        for (i, bytes) in &files {
            t.put(&format!("sys/block/{}/{}", ["sda", "dm-0"][i % 2], NAMES[*i]), bytes);
        }
        let line = b"1 1 253:0 / / rw - ext4 /dev/x rw\n";
        t.put("proc/self/mountinfo", [&line[..], &mountinfo[..]].concat());
        t.put("proc/swaps", &swaps);
        let m = t.machine();
        for asked in ["/", "sda", "dm-0", "/sys/block"] {
            if let Ok(u) = m.under(Path::new(asked)) {
                for s in &u.steps {
                    prop_assert!(!s.says.contains(char::is_control), "{:?}", s.says);
                }
                prop_assert!(!u.verdict.contains(char::is_control), "{:?}", u.verdict);
            }
        }
        for d in &m.devices {
            prop_assert!(!d.trouble.concat().contains(char::is_control), "{:?}", d.trouble);
        }
    }
}
