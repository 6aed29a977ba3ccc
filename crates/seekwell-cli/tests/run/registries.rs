//! The lists match the registries.

use crate::{good, project, seekwell};
use seekwell_sched::registry;
use serde_json::Value;

#[test]
fn every_scheduler_is_listed_and_has_a_page() {
    let list = good(&["schedulers", "--details"]);
    for s in registry() {
        assert!(
            list.lines()
                .any(|l| l.split_whitespace().next() == Some(s.name)),
            "{}",
            s.name
        );
        for (version, _) in s.versions {
            let name = format!("{}-{version}", s.name);
            let brief = good(&["schedulers", &name]);
            assert!(brief.lines().count() <= 24, "{name}\n{brief}");
            for page in [brief, good(&["schedulers", &name, "--details"])] {
                for t in (s.tunables)(version) {
                    assert!(page.contains(t.name), "{name}: {}", t.name);
                }
                assert!(page.contains(version), "{name}");
            }
        }
    }
}

/// The registry contains defaults that were written by hand. They must equal those of a new
/// scheduler.
#[test]
fn listed_defaults_equal_those_of_a_new_scheduler() {
    use seekwell_core::TickClock;
    use seekwell_sched::{Cx, QueueFacts};
    for s in registry() {
        for &(version, era) in s.versions {
            let cx = Cx::new(QueueFacts::example(era), TickClock::new(1000));
            let made = (s.make)(&cx, version);
            for t in (s.tunables)(version) {
                let shown = made.show(&cx, t.name);
                let shown = shown.unwrap_or_else(|| panic!("{}: cannot show {}", s.name, t.name));
                // A default in words, such as a formula or "all of nr_requests", cannot be
                // compared.
                if t.default.parse::<i64>().is_ok() {
                    assert_eq!(shown, t.default, "{}-{version}: {}", s.name, t.name);
                }
            }
        }
    }
}

#[test]
fn schedulers_page_equals_the_registry() {
    let path = project("docs/schedulers.md");
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        page == good(&["schedulers", "--markdown"]),
        "docs/schedulers.md is not that of the registry: run `make docs`"
    );
}

/// All figures are measured again. The page must match the models to the last digit.
#[test]
fn validation_page_equals_the_models_results() {
    let path = project("docs/devices-validation.md");
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    let now = good(&["devices", "--validate", "--markdown"]);
    assert!(
        page == now,
        "docs/devices-validation.md is not what the models do: run `make docs`"
    );
    assert!(now.contains("| held out |") && now.contains("## Hard disks"));
}

#[test]
fn device_curve_is_available_as_text_json_and_svg() {
    let svg = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("device.svg");
    let file = svg.display().to_string();
    for (spec, title, unit) in [
        (
            "hdd:hitachi-7k200,seek_full=20",
            "Seek time by distance",
            "seek, ms",
        ),
        (
            "ssd:s3700-100",
            "Random 4 KiB commands per second",
            "rate, IOPS",
        ),
        (
            "emmc:motog",
            "Mean latency of random commands",
            "latency, ms",
        ),
        (
            &project("crates/seekwell-device/presets/sd-samsung-evoplus32.toml"),
            "Rate of random commands, one at a time",
            "rate, MB/s",
        ),
    ] {
        let page = good(&["devices", spec, "--details", "--plot", &file]);
        assert!(
            page.contains(title) && page.contains(unit),
            "{spec}: {page}"
        );
        let svg = std::fs::read_to_string(&svg).unwrap();
        assert!(svg.contains(title) && svg.contains(unit), "{spec}");
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        let one: Value = serde_json::from_str(&good(&["devices", spec, "--json"])).unwrap();
        let plots = one["plots"].as_array().unwrap();
        assert!(
            plots
                .iter()
                .any(|p| p["title"].as_str().unwrap().starts_with(title)),
            "{spec}"
        );
        assert!(plots[0]["curves"][0]["points"].as_array().unwrap().len() >= 2);
    }
    let missing = seekwell(&["devices", "emmc:motog", "--plot", "no/such/dir/x.svg"]);
    assert_eq!(missing.code, 3, "{}", missing.err);
    let r = seekwell(&["devices", "--plot", &file]);
    assert_eq!(r.code, 2, "a picture of what? {}", r.err);
}

#[test]
fn json_lists_are_valid_json() {
    let all: Value = serde_json::from_str(&good(&["schedulers", "--json"])).expect("JSON");
    assert_eq!(all.as_array().map(Vec::len), Some(registry().len()));
    let one: Value =
        serde_json::from_str(&good(&["schedulers", "deadline-3.4", "--json"])).unwrap();
    assert_eq!(one["version"], "3.4");
    assert_eq!(one["tunables"][0]["name"], "read_expire");
}

#[test]
fn completions_and_manual_pages_contain_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(good(&["completions", shell]).contains("explain"), "{shell}");
    }
    assert!(good(&["man"]).contains(".TH seekwell"));
    let dir = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("man");
    std::fs::create_dir_all(&dir).unwrap();
    good(&["man", &dir.display().to_string()]);
    let page = std::fs::read_to_string(dir.join("seekwell-explain.1")).unwrap();
    assert!(page.contains("strict"));
    let missing = dir.join("none");
    let r = seekwell(&["man", &missing.display().to_string()]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("no such directory"));
}

#[test]
fn every_device_and_format_is_listed_and_has_a_page() {
    let list = good(&["devices", "--details"]);
    for d in seekwell_device::catalogue() {
        assert!(list.contains(&d.name), "{}", d.name);
        let (brief, page) = (
            good(&["devices", &d.name]),
            good(&["devices", &d.name, "--details"]),
        );
        let lines = brief.lines().count();
        assert!(lines <= 24, "{}: {lines} lines\n{brief}", d.name);
        for p in &seekwell_device::describe(&d.name).unwrap().params {
            for text in [&brief, &page] {
                assert!(text.contains(p.def.key), "{}: {}", d.name, p.def.key);
            }
        }
    }
    let changed = good(&["devices", "hdd:hitachi-7k200,rpm=5400"]);
    assert!(changed.contains("given on the command line"), "{changed}");
    let list = good(&["formats"]);
    for f in seekwell_trace::formats() {
        assert!(list.contains(f.name), "{}", f.name);
        assert!(good(&["formats", f.name]).contains("completions"));
    }
    for (what, name) in [("devices", "tape:reel"), ("formats", "papyrus")] {
        let r = seekwell(&[what, name]);
        assert_eq!(r.code, 2);
        assert!(r.err.contains("error: ") && r.err.contains(name.split(':').next().unwrap()));
    }
    let all: Value = serde_json::from_str(&good(&["devices", "--json"])).unwrap();
    assert_eq!(
        all.as_array().unwrap().len(),
        seekwell_device::catalogue().len()
    );
    let all: Value = serde_json::from_str(&good(&["formats", "--json"])).unwrap();
    assert_eq!(
        all.as_array().unwrap().len(),
        seekwell_trace::formats().len()
    );
}

/// The long help of a command contains every word that its options accept.
#[test]
fn help_lists_every_device_workload_and_machine_option() {
    for command in ["compare", "run", "replay", "recommend"] {
        let help = good(&[command, "--help"]);
        let line = |start: String| help.lines().any(|l| l.trim_start().starts_with(&start));
        for d in seekwell_device::catalogue() {
            assert!(line(format!("{}: ", d.name)), "{command}: {}", d.name);
        }
        for k in seekwell_device::kinds() {
            let keys = k.defs.iter().all(|d| help.contains(d.key));
            assert!(
                keys && line(format!("{}: ", k.name)),
                "{command}: {}",
                k.name
            );
        }
        // A replay has no program, so it has no machine.
        if command == "replay" {
            continue;
        }
        for w in seekwell_workload::workloads() {
            let params = w.params.iter().all(|p| help.contains(p.name));
            assert!(
                params && line(format!("{}: ", w.name)),
                "{command}: {}",
                w.name
            );
        }
        for w in seekwell::words::MACHINE_WORDS {
            assert!(line(w.name.to_owned()), "{command}: {}", w.name);
        }
    }
    // The short help does not list the devices.
    let short = good(&["compare", "-h"]);
    assert!(!short.contains("hdd:exos-x18:"), "{short}");
}

/// The text depends on the machine. It always fits on one screen, and the command changes nothing.
#[test]
fn doctor_reports_abilities_and_remedies() {
    let text = good(&["doctor"]);
    assert!(text.lines().count() <= 24, "{text}");
    let doc: Value = serde_json::from_str(&good(&["doctor", "--json"])).expect("JSON");
    let all = doc["abilities"].as_array().expect("a list");
    let names: Vec<&str> = all.iter().filter_map(|a| a["name"].as_str()).collect();
    for name in [
        "root",
        "tracefs",
        "BPF",
        "FUSE",
        "loop devices",
        "io_uring",
        "PostgreSQL",
        "fio",
        "chromium",
        "Python package",
    ] {
        assert!(names.contains(&name) && text.contains(name), "{name}");
    }
    for a in all {
        let usable = a["usable"].as_bool().expect("said");
        assert_eq!(usable, a["remedy"].is_null(), "{a}");
        let no = format!("  no   {}", a["name"].as_str().expect("a name"));
        assert_eq!(usable, !text.contains(&no), "{a} {text}");
    }
}
