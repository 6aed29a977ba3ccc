//! The catalogue and the preset files. All open, all name the sources of their numbers, and an
//! invalid file is rejected with its line and a remedy.

use std::sync::atomic::{AtomicU32, Ordering};

use seekwell_device::{DeviceError, Source, catalogue, describe, open, over_queues};

#[test]
fn every_preset_opens_and_names_its_sources() {
    let all = catalogue();
    assert!(all.len() >= 15, "a preset of the registry does not parse");
    for e in &all {
        // Devices over queues are opened by the block layer crate.
        if !over_queues(describe(&e.name).unwrap().kind) {
            let device = open(&e.name, 1).unwrap();
            assert!(device.facts().capacity.0 > 0);
        }
        for alias in &e.aliases {
            assert_eq!(
                describe(alias).unwrap().name,
                describe(&e.name).unwrap().name
            );
        }
        let preset = describe(&e.name).unwrap();
        assert!(
            preset
                .file
                .ends_with(&format!("{}-{}.toml", preset.kind, preset.name))
        );
        for p in preset.params.iter().filter(|p| p.line > 0) {
            assert!(!p.def.dim.needs_unit() || !p.unit().is_empty());
            assert_ne!(p.source, Source::Default);
            if p.source == Source::Fitted {
                assert!(
                    !p.reference.is_empty(),
                    "{}: {} fitted to what?",
                    e.name,
                    p.def.key
                );
            }
        }
    }
}

#[test]
fn every_preset_file_is_in_the_registry() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/presets");
    let mut files: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|f| f.unwrap().file_name().into_string().unwrap())
        .filter(|f| f.ends_with(".toml"))
        .collect();
    files.sort();
    let mut known: Vec<String> = catalogue()
        .iter()
        .map(|e| format!("{}.toml", e.name.replace(':', "-")))
        .collect();
    known.sort();
    assert_eq!(files, known);
}

#[test]
fn options_override_preset_values_and_are_marked() {
    let p = describe("hdd:hitachi-7k200,head_switch=900us,write_cache=off,ra_max=64KiB").unwrap();
    assert_eq!(p.num_opt("head_switch"), Some(0.9));
    assert_eq!(p.num_opt("ra_max"), Some(65_536.0));
    assert!(!p.flag("write_cache"));
    assert_eq!(p.get("write_cache").unwrap().source, Source::Override);
    let p = describe("ssd:s3700-100,t_fw_read=13us").unwrap();
    assert_eq!(p.get("t_fw_read").unwrap().value.to_string(), "0.013");
    let d = open("constant:depth=7,service_us=12.5,rotational=yes", 1).unwrap();
    assert_eq!((d.facts().depth, d.facts().rotational), (7, true));
}

fn error_of(spec: &str) -> String {
    match open(spec, 1) {
        Ok(_) => panic!("{spec} was accepted"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn invalid_specifications_are_rejected_with_a_remedy() {
    for (spec, expected) in [
        ("disk:a", "unknown kind"),
        ("hdd:hitachi-7k20", "did you mean `hdd:hitachi-7k200`"),
        ("hdd:hitachi-7k200,rpmm=1", "did you mean `rpm`"),
        ("hdd:hitachi-7k200,rpm=0", "between 300 and 60000 rpm"),
        ("hdd:hitachi-7k200,rpm", "key=value"),
        ("hdd:hitachi-7k200,overhead=3km", "unit \"km\""),
        ("hdd:hitachi-7k200,policy=best", "sptf, fifo"),
        ("hdd:hitachi-7k200,seek_average=3", "too short"),
        ("hdd:hitachi-7k200,capacity=20", "cylinders for 24 zones"),
        ("hdd:hitachi-7k200,wc_lo=0.9", "wc_lo at most wc_hi"),
        (
            "hdd:hitachi-7k200,outer_rate_sustained=70",
            "exactly one of",
        ),
        ("hdd:hitachi-7k200,physical_block=1024", "512 or 4096"),
        ("constant:depth=0", "between 1 and"),
        ("ssd:s3700-10", "did you mean `ssd:s3700-100`"),
        ("ssd:s3700-100,channels=0", "between 1 and 256 channels"),
        ("ssd:s3700-100,units=20", "a multiple of the channels"),
        ("ssd:s3700-100,rho=0", "`rho` must be between"),
        ("ssd:s3700-100,capacity=195371569", "whole pages of 4 KiB"),
        ("ssd:s3700-100,capacity=80000", "one block of 1024 pages"),
        ("ssd:s3700-100,block=1022", "a multiple of program_unit"),
        ("ssd:s3700-100,buffer=8KiB", "at least program_unit"),
        ("ssd:s3700-100,gc_high=4", "more than gc_low"),
        ("ssd:s3700-100,state=new", "fresh, filled, used, steady"),
        (
            "ssd:nvme-dc-2t,slc_bytes=1GiB,slc_unit=5",
            "a divisor of program_unit",
        ),
        ("emmc:motog,page=3MiB", "multiple of `page`"),
        ("emmc:motog,gc_min=1s", "gc_min at most gc_max"),
        ("emmc:motog,max_packed=1", "packing=off"),
        ("emmc:motog,segment=9km", "unit \"km\""),
        ("emmc:motog,segment=8000MiB", "smaller than the card"),
        ("emmc:motog,cache=700bytes", "whole sectors"),
        ("sd:motog", "did you mean `emmc:motog-sandisk8`"),
        ("/no/such/file.toml", "/no/such/file.toml"),
        (
            "controller:level=raid5,members=2",
            "needs at least 3 members",
        ),
        ("controller:strip=0", "between 4096"),
        ("controller:strip=96KiB", "must be a power of two"),
        (
            "controller:of=hdd:hitachi-7k500+hdd:hitachi-7k200",
            "members differ in size",
        ),
        (
            "controller:members=3,of=hdd:hitachi-7k500+hdd:hitachi-7k500",
            "`of` names 2",
        ),
        (
            "controller:of=hdd:hitachi-9k",
            "did you mean `hdd:hitachi-7k200`",
        ),
        ("controller:of=(raid5:members=4)", "needs schedulers"),
        (
            "controller:of=(hdd:hitachi-7k500",
            "parentheses do not match",
        ),
        ("controller:failed=9", "no member 9"),
        ("controller:failed=1", "survives 0 failed disks"),
        ("controller:failed=one", "is not a number"),
        ("controller:lo=0.9", "above the share at which writes wait"),
        ("controller:levle=raid5", "did you mean `level`"),
        ("raid5:members=4", "needs schedulers"),
        (
            "virtual:vm-virtio",
            "did you mean `virtual:vm-virtio-hdd`, `virtual:vm-virtio-nvme` or `virtual:vm-virtio-blk`",
        ),
        ("cloud:gp3,burst_iops=10", "below the base rate"),
        (
            "controller:of=(controller:of=(controller:of=(controller:of=(controller:of=(controller:of=(controller:of=(controller:members=1)))))))",
            "more than 8 levels",
        ),
    ] {
        let text = error_of(spec);
        assert!(text.contains(expected), "{spec}: {text}");
    }
}

const DISK: &str = include_str!("../presets/hdd-hitachi-7k200.toml");
const FLASH: &str = include_str!("../presets/ssd-s3700-100.toml");

/// Returns the error of the preset `text` after its first `replace` is replaced by `by`.
fn error_of_edited_preset(text: &str, replace: &str, by: &str) -> DeviceError {
    assert!(text.contains(replace), "{replace}");
    // Tests of one process run in parallel, so each file has its own name.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("bad-{}.toml", NEXT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(format!("seekwell-{}-{name}", std::process::id()));
    std::fs::write(&path, text.replacen(replace, by, 1)).unwrap();
    let result = open(path.to_str().unwrap(), 1);
    std::fs::remove_file(&path).unwrap();
    match result {
        Ok(_) => panic!("`{by}` was accepted"),
        Err(e) => e,
    }
}

#[test]
fn invalid_disk_files_are_rejected_with_line_and_remedy() {
    for (replace, by, expected) in [
        (
            "rpm = { value = 7200, unit = \"rpm\", ",
            "rpm = { value = 7200, ",
            "`rpm` has no unit",
        ),
        ("unit = \"rpm\"", "unit = \"ms\"", "cannot be given in ms"),
        ("rpm = ", "rpmm = ", "did you mean `rpm`"),
        ("value = 7200", "value = \"fast\"", "wrong type"),
        ("value = 7200", "value = 7", "between 300"),
        (
            "value = 7200",
            "value = 7200, colour = 1",
            "unknown field \"colour\"",
        ),
        (
            "source = \"data sheet\"",
            "source = \"hearsay\"",
            "start with a known word",
        ),
        (
            "surfaces = { value = 2,",
            "surfaces = { value = 2.5,",
            "must be whole",
        ),
        (
            "surfaces = { value = 2,",
            "surfaces = { value = 0,",
            "between 1 and 64",
        ),
        ("[params]", "[parameters]", "unknown key \"parameters\""),
        ("kind = \"hdd\"", "kind = \"tape\"", "unknown kind"),
        (
            "outer_track = { value = 1331,",
            "outer_track = { value = 1,",
            "has no sectors",
        ),
        ("[params]", "[params", "TOML"),
        (
            "seek_full = { value = 18.0",
            "seek_full = { value = 180.0",
            "too short for a full stroke",
        ),
    ] {
        match error_of_edited_preset(DISK, replace, by) {
            DeviceError::Preset {
                file,
                line,
                what,
                remedy,
            } => {
                let all = format!("{what}; {remedy}");
                assert!(all.contains(expected), "{by}: {all}");
                assert!(file.ends_with(".toml") && !remedy.is_empty());
                let expected_line = 1 + DISK.split(replace).next().unwrap().matches('\n').count();
                // The error names the line of the mean, because the mean does not fit the full
                // stroke.
                if !by.starts_with("seek_full") && !by.contains("outer_track") && by != "[params" {
                    assert_eq!(line, expected_line, "{by}: {what}");
                }
            }
            e => panic!("{by}: {e}"),
        }
    }
}

#[test]
fn invalid_flash_files_are_rejected_with_line_and_remedy() {
    for (replace, by, expected, remedy) in [
        (
            "rho = ",
            "roh = ",
            "did you mean `rho`",
            "lists the parameters",
        ),
        (
            "value = 0.37, unit = \"ratio\"",
            "value = 0.37",
            "`rho` has no unit",
            "ratio",
        ),
        (
            "value = 0.37",
            "value = -0.1",
            "`rho` must be between",
            "spare",
        ),
        (
            "value = 0.37",
            "value = 0",
            "`rho` must be between",
            "spare",
        ),
        (
            "channels = { value = 8",
            "channels = { value = 0",
            "between 1 and 256",
            "channels",
        ),
        (
            "channels = { value = 8",
            "channels = { value = 7",
            "over 7 channels",
            "multiple",
        ),
        (
            "value = 195371568",
            "value = 195371564",
            "whole pages",
            "multiple of 8",
        ),
        (
            "value = 1024, unit = \"pages\"",
            "value = 1021, unit = \"pages\"",
            "1021",
            "multiple",
        ),
        (
            "value = 8, unit = \"MiB\"",
            "value = 4, unit = \"KiB\"",
            "one program",
            "at least",
        ),
        ("\"sata-6\"", "\"sata-9\"", "sata-1.5", "host link"),
    ] {
        let DeviceError::Preset {
            file,
            line,
            what,
            remedy: r,
        } = error_of_edited_preset(FLASH, replace, by)
        else {
            panic!("{by}: not an error of the file");
        };
        let all = format!("{what}; {r}");
        assert!(file.ends_with(".toml"), "{file}");
        assert!(
            all.contains(expected) && all.contains(remedy),
            "{by}: {all}"
        );
        let at = 1 + FLASH.split(replace).next().unwrap().matches('\n').count();
        // If the units do not fit the channels, the error names the line of the units.
        let units = u64::from(by.contains("value = 7"));
        assert_eq!(line as u64, at as u64 + units, "{by}: {what}");
    }
}

#[test]
fn device_that_contains_itself_is_rejected_with_line() {
    let dir = std::env::temp_dir().join(format!("seekwell-nest-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (a, b) = (dir.join("a.toml"), dir.join("b.toml"));
    let text = |kind: &str, key: &str, of: &std::path::Path| {
        format!(
            "kind = \"{kind}\"\nname = \"x\"\nsummary = \"x\"\n[params]\n{key} = {{ value = \"{}\", source = \"estimate\" }}\n",
            of.display()
        )
    };
    std::fs::write(&a, text("virtual", "over", &b)).unwrap();
    std::fs::write(&b, text("raid", "of", &a)).unwrap();
    let e = describe(a.to_str().unwrap()).unwrap_err();
    std::fs::remove_dir_all(&dir).unwrap();
    let DeviceError::Preset {
        file,
        line,
        what,
        remedy,
    } = e
    else {
        panic!("{e}");
    };
    assert!(file.ends_with("b.toml") && line == 5, "{file}:{line}");
    assert!(
        what.contains("contains itself") && !remedy.is_empty(),
        "{what}"
    );
}

const CARD: &str = include_str!("../presets/emmc-motog-sandisk8.toml");

/// The complete messages as a user sees them: file, line, fault, remedy.
#[test]
fn error_messages_have_the_expected_text() {
    for (text, replace, by, expected) in [
        (
            DISK,
            "rpm = ",
            "rmp = ",
            "14: unknown parameter \"rmp\" (did you mean `rpm`?); `seekwell devices hdd:NAME` lists the parameters",
        ),
        (
            DISK,
            "unit = \"rpm\", ",
            "",
            "14: `rpm` has no unit; add `unit = \"...\"`, one of: rpm",
        ),
        (
            DISK,
            "seek_average = { value = 10.0, unit = \"ms\"",
            "seek_average = { value = 10.0, unit = \"MB/s\"",
            "22: `seek_average` cannot be given in MB/s; use one of: ms, us, s, ns",
        ),
        (
            DISK,
            "value = 7200",
            "value = 70000",
            "14: `rpm` must be between 300 and 60000 rpm, not 70000; correct the value; its meaning: spindle speed",
        ),
        (
            DISK,
            "source = \"data sheet\"",
            "source = \"a friend\"",
            "14: source of `rpm` does not start with a known word; begin with one of: data sheet (recalled), data sheet, published measurement, fitted, estimate; then `: ` and the reference",
        ),
        (
            DISK,
            "seek_full = { value = 18.0",
            "seek_full = { value = 99.0",
            "22: a mean of 10 ms is too short for a full stroke of 99 ms: no concave curve has both; check both: seek_average must be at least seek_settle + (seek_full - seek_settle) / 3",
        ),
        (
            DISK,
            "[params]",
            "[params]\nouter_rate_sustained = { value = 69.5, unit = \"MB/s\", source = \"estimate\" }",
            "12: the outer track is given 2 times; give exactly one of zone_table, outer_track, outer_rate_instantaneous, outer_rate_sustained, outer_rate_channel",
        ),
        (
            DISK,
            "capacity = { value = 195371568",
            "capacity = { value = 20",
            "13: 20 sectors give 1 cylinders for 24 zones; check capacity, surfaces, sectors per track and zones",
        ),
        (
            CARD,
            "read_base = ",
            "readbase = ",
            "15: unknown parameter \"readbase\" (did you mean `read_base`?); `seekwell devices emmc:NAME` lists the parameters",
        ),
        (
            CARD,
            "write_base = { value = 2830, unit = \"us\", ",
            "write_base = { value = 2830, ",
            "21: `write_base` has no unit; add `unit = \"...\"`, one of: ms, us, s, ns",
        ),
        (
            CARD,
            "page = { value = 8, unit = \"KiB\"",
            "page = { value = 3, unit = \"KiB\"",
            "26: a segment of 4096 KiB is not a multiple of the page size; make `segment` a multiple of `page`",
        ),
        (
            CARD,
            "gc_min = { value = 20,",
            "gc_min = { value = 200,",
            "30: the shortest collection is longer than the longest; make gc_min at most gc_max",
        ),
        (
            CARD,
            "max_packed = { value = 63",
            "max_packed = { value = 64",
            "40: `max_packed` must be between 0 and 63 writes, not 64; correct the value; its meaning: maximum number of writes per packed group; 0: no packing",
        ),
        (
            CARD,
            "packing = { value = \"after\"",
            "packing = { value = \"later\"",
            "43: `packing`: expected one of off, always, after, not \"later\"; correct the value; its meaning: when the driver packs writes: never, always (Linux 3.9), or after consecutive writes (Code Aurora)",
        ),
    ] {
        let said = error_of_edited_preset(text, replace, by).to_string();
        let (_, said) = said.split_once(".toml:").expect("it names the file");
        assert_eq!(said, expected, "{by}");
    }
}

/// Any common word for a device finds it.
#[test]
fn device_is_found_by_any_common_word() {
    for (spec, expected) in [
        (
            "nvme",
            "no device is called \"nvme\"; there are ssd:nvme-dc-2t, ssd:nvme-dramless-1t, \
             ssd:nvme-gen4-tlc-2t, ssd:nvme-qlc-1t, virtual:vm-virtio-nvme",
        ),
        ("travelstar", "there are hdd:hitachi-7k200;"),
        ("hitachi-7k20", "there are hdd:hitachi-7k200;"),
        ("motgo", "did you mean `emmc:motog-sandisk8`?"),
        ("ssd", "name one of ssd:nvme-dc-2t, "),
        ("ssd:nvme", "`ssd:nvme-dc-2t`"),
        ("disk:hitachi-7k200", "did you mean `hdd:hitachi-7k200`?"),
        ("tape", "with one of: constant, hdd"),
        ("tape:reel", "kinds are constant, hdd"),
        ("", "with one of: constant, hdd"),
    ] {
        let text = error_of(spec);
        assert!(text.contains(expected), "{spec}: {text}");
    }
}

#[test]
fn unique_preset_name_needs_no_kind() {
    for (bare, full) in [
        ("hitachi-7k200", "hdd:hitachi-7k200"),
        ("motog", "emmc:motog-sandisk8"),
        ("hts722010-100,rpm=5400", "hdd:hitachi-7k200,rpm=5400"),
    ] {
        let (a, b) = (describe(bare).unwrap(), describe(full).unwrap());
        assert_eq!((a.kind, &a.name), (b.kind, &b.name));
        let values = |p: &seekwell_device::Preset| {
            let values = p.params.iter().map(|q| q.value.to_string());
            values.collect::<Vec<_>>()
        };
        assert_eq!(values(&a), values(&b), "{bare}");
    }
    assert!(open("controller:members=2,level=raid0,of=hitachi-7k500", 1).is_ok());
    assert!(
        error_of("plain").contains("controller:plain"),
        "three are called that"
    );
}

/// The year of a preset agrees with its summary.
#[test]
fn preset_years_equal_those_in_the_summaries() {
    let mut dated = 0;
    for e in catalogue() {
        let p = describe(&e.name).unwrap();
        if let Some(at) = p.summary.find("(20") {
            let year = p.summary[at + 1..]
                .split(')')
                .next()
                .and_then(|y| y.parse().ok());
            assert_eq!(p.year, year, "{}", e.name);
            dated += 1;
        }
    }
    assert!(dated > 10);
}
