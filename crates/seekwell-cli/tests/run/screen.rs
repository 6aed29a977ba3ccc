//! The first screen of each command contains the answer first, and no line is wider than the
//! screen.

use crate::{command, good, one_seed, project, ran, scratch};

/// Returns the output for one seed on a terminal of this width.
fn at(columns: &str, args: &[&str]) -> String {
    output_with_default_seeds(columns, &one_seed(args))
}

/// Returns the same output for the default number of seeds.
fn output_with_default_seeds(columns: &str, args: &[&str]) -> String {
    let r = ran(command(args)
        .env("COLUMNS", columns)
        .output()
        .expect("it runs"));
    // Notes go to stderr.
    assert_eq!(r.code, 0, "{args:?}: {}", r.err);
    r.out
}

fn widest(text: &str) -> usize {
    text.lines().map(|l| l.chars().count()).max().unwrap_or(0)
}

/// Returns the number of figures in the table line that begins with `head`. There is one per
/// scheduler.
fn figures(line: &str, head: &str) -> usize {
    let rest = line.trim_start().strip_prefix(head).unwrap_or("");
    let number = |w: &&str| w.replace(',', "").parse::<f64>().is_ok();
    let figures = rest.split_whitespace().take_while(number).count();
    // A separate column contains the precision, such as "0.3 %".
    let sure = rest.split_whitespace().nth(figures) == Some("%");
    figures - usize::from(sure)
}

/// Returns the maximum number of lines of an answer about this many devices: one screen, and a
/// table for each further device.
fn max_lines(devices: usize) -> usize {
    24 + 8 * (devices - 1)
}

/// On a narrow screen the table keeps its figures. The legend is above the table, and the table
/// contains words instead of codes.
#[test]
fn default_compare_output_fits_a_screen() {
    let interactive = ["read, ms", "99th percentile, ms", "bulk write, MB/s"];
    let today = [&interactive[..], &["app-start, s", "fs-mark, files/s"]].concat();
    let then = [&interactive[..], &["streams, MB/s", "fs-mark, files/s"]].concat();
    for (columns, args, rows, devices) in [
        (80, &["compare"][..], &today, 3),
        (100, &["compare", "--seeds", "3"], &today, 3),
        (80, &["compare", "--era", "2012", "--seeds", "3"], &then, 2),
    ] {
        let text = output_with_default_seeds(&columns.to_string(), args);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines.len() <= max_lines(devices),
            "{} lines\n{text}",
            lines.len()
        );
        assert!(widest(&text) <= columns, "{text}");
        for row in rows.iter().copied() {
            let of: Vec<usize> = lines
                .iter()
                .map(|l| figures(l, row))
                .filter(|n| *n > 0)
                .collect();
            assert_eq!(of, vec![4; devices], "{row}\n{text}");
        }
        let at = |word: &str| lines.iter().position(|l| l.contains(word));
        let (legend, table) = (at("best, 1.04x slower"), at("WORKLOAD"));
        assert!(legend.is_some() && legend < table, "{text}");
        for word in [" best", "x slower", "same"] {
            let said = lines[table.expect("a table")..]
                .iter()
                .any(|l| l.contains(word));
            assert!(said, "{word}\n{text}");
        }
        // The verdict stays, even if the remarks are only counted.
        assert!(text.contains("Verdict:"), "{text}");
        // The last line warns that the results are simulated, and contains a link.
        assert!(text.trim_end().ends_with("More: --details."), "{text}");
        assert_eq!(text.matches("docs/").count(), 1, "{text}");
        assert!(!text.contains('\u{1b}'));
    }
}

/// A list fits on one screen and names all items. --details shows the descriptions.
#[test]
fn every_list_fits_a_screen_and_names_all_items() {
    let names = |of: &[&str]| -> Vec<String> {
        let doc: serde_json::Value = serde_json::from_str(&good(of)).expect("JSON");
        let all = doc.as_array().expect("a list").iter();
        all.map(|i| i["name"].as_str().expect("a name").to_owned())
            .collect()
    };
    let demos = seekwell_evidence::demo::demos().map(|d| d.name.to_owned());
    for (what, names) in [
        ("schedulers", names(&["schedulers", "--json"])),
        ("devices", names(&["devices", "--json"])),
        ("formats", names(&["formats", "--json"])),
        ("workloads", names(&["workloads", "--json"])),
        ("machines", names(&["machines", "--json"])),
        ("demo", demos.collect()),
    ] {
        let text = output_with_default_seeds("80", &[what]);
        let lines = text.lines().count();
        assert!(lines <= 24, "{what}: {lines} lines\n{text}");
        assert!(widest(&text) <= 80, "{what}\n{text}");
        let words: Vec<&str> = text.split_whitespace().collect();
        for name in names {
            assert!(words.contains(&name.as_str()), "{what}: {name}\n{text}");
        }
        // No text is cut.
        let cut = text.replace("parameter=value,...", "");
        assert!(!cut.contains("..."), "{what}\n{text}");
    }
}

/// The results of a run, a replay and a demo fit on one screen too. --details shows the tables.
#[test]
fn run_replay_and_demo_outputs_fit_a_screen() {
    let seven = "noop,deadline,cfq,none,mq-deadline,kyber,bfq";
    let rows: String = (0..400)
        .map(|i| {
            format!(
                "{},R,{},8,{}\n",
                i * 100_000,
                i % 2 * 800_000 + i * 8,
                i % 2
            )
        })
        .collect();
    let head = "t_ns,op,sector,sectors,pid\n";
    let trace = scratch("first.csv", format!("{head}{rows}").as_bytes());
    let run = [
        "run",
        "interactive:size=16m,bulk=32m,seconds=2s",
        "-s",
        seven,
    ];
    let files = ["run", "fs-mark:files=10", "-s", seven];
    let replay = ["replay", &trace, "-s", seven];
    let (mut all, mut more) = (vec![&run[..], &files, &replay], Vec::new());
    // The demos with the longest output.
    let demos = ["none-fast", "flush-path", "array-backlog", "adios-window"];
    let demos = demos.map(|d| ["demo", d, "--seeds", "2"]);
    all.extend(demos.iter().map(|d| &d[..]));
    for args in all {
        let text = output_with_default_seeds("80", args);
        let lines = text.lines().count();
        assert!(lines <= 24, "{args:?}: {lines} lines\n{text}");
        assert!(text.contains("--details"), "{args:?}\n{text}");
        more.push([args, &["--details"]].concat());
    }
    for args in more.iter().take(3) {
        let text = output_with_default_seeds("80", args);
        for word in [
            "Verdict:",
            "WAITING",
            "P99.9",
            "SHARE OF BYTES",
            "RATE: bytes",
        ] {
            assert!(text.contains(word), "{args:?}: {word}\n{text}");
        }
    }
    for args in &more[3..] {
        let text = output_with_default_seeds("80", args);
        assert!(!text.contains("--details"), "{args:?}\n{text}");
        assert!(text.contains("Over 2 seeds of the model"), "{text}");
    }
}

/// The tests of several devices share one table. If there is no space for the schedulers next to
/// the words, a row contains only the best figure.
#[test]
fn compare_output_of_many_tests_fits_a_screen() {
    let work = [
        "-w",
        "interactive:size=16m,bulk=32m,seconds=1s",
        "-w",
        "fs-mark:files=5",
        "-w",
        "streams:size=4m",
        "-w",
        "seeker:seconds=1s",
    ];
    let places = ["-d", "hdd:hitachi-7k200", "-d", "ssd:sata-tlc-1t"];
    let base = [&["compare", "-q", "--seeds", "2"], &work[..], &places].concat();
    for (schedulers, most) in [("noop,cfq,bfq", 3), ("noop,deadline,cfq,bfq,none,kyber", 1)] {
        let args = [&base[..], &["-s", schedulers]].concat();
        let text = output_with_default_seeds("80", &args);
        assert!(text.lines().count() <= self::max_lines(2), "{text}");
        assert!(widest(&text) <= 80, "{text}");
        assert!(text.contains("On 2 modelled disks, none of yours (2 seeds)"));
        for place in ["hdd:hitachi-7k200", "ssd:sata-tlc-1t"] {
            assert_eq!(text.lines().filter(|l| *l == place).count(), 1, "{text}");
        }
        for row in [
            "read, ms",
            "99th percentile, ms",
            "bulk write, MB/s",
            "fs-mark, files/s",
            "streams, MB/s",
            "seeker, seeks/s",
        ] {
            let of: Vec<&str> = text
                .lines()
                .filter(|l| l.trim_start().starts_with(row))
                .collect();
            assert_eq!(of.len(), 2, "{row}\n{text}");
            assert!(of.iter().all(|l| figures(l, row) <= most), "{row}\n{text}");
            let unclear = of.iter().any(|l| l.contains("unclear"));
            let all = of.iter().all(|l| figures(l, row) == most);
            assert!(all || unclear || most == 1, "{row}\n{text}");
        }
        let details = output_with_default_seeds("80", &[&args[..], &["--details"]].concat());
        assert_eq!(details.matches("Verdict: ").count(), 12, "{details}");
    }
}

/// If imported results have many cells, only the significant ones are shown. If they have few
/// cells, every cell is shown.
#[test]
fn import_output_of_many_cells_fits_a_screen() {
    let file = project("crates/seekwell-lab/tests/imported/published/phoronix-linux-3.4.csv");
    let text = output_with_default_seeds("80", &["import", &file]);
    assert!(text.lines().count() <= 24, "{text}");
    let held = text.lines().filter(|l| l.contains(" !  ")).count();
    assert!(
        held >= 5 && text.contains(&format!("and {} more", 14 - held)),
        "{text}"
    );
    let details = output_with_default_seeds("80", &["import", &file, "--details"]);
    for line in [
        "Clarksfield + SSD (160GB",
        "apache 2.2.21",
        "Sandy Bridge + SSD",
    ] {
        assert!(details.contains(line), "{line}");
    }
    let few: String = std::fs::read_to_string(&file)
        .expect("the file")
        .lines()
        .take(10)
        .map(|l| format!("{l}\n"))
        .collect();
    let few = scratch("few.csv", few.as_bytes());
    let text = output_with_default_seeds("80", &["import", &few]);
    assert!(
        text.contains("WORKLOAD") && !text.contains("What holds"),
        "{text}"
    );
}

#[test]
fn best_value_is_green_if_colours_are_enabled() {
    let args = [
        "compare",
        "-w",
        "interactive:size=256m,bulk=512m,seconds=10s",
    ];
    let args = [&args[..], &["-d", "hdd:hitachi-7k200", "-s", "noop,bfq"]].concat();
    let text = at("100", &[&args[..], &["--color", "always"]].concat());
    let green = text.split("\u{1b}[32m").nth(1).expect("something green");
    assert!(
        green
            .split("\u{1b}")
            .next()
            .is_some_and(|c| c.trim().parse::<f64>().is_ok()),
        "{text}"
    );
}

#[test]
fn tables_fit_80_columns_and_use_up_to_200() {
    let file = scratch(
        "screen.csv",
        b"t_ns,op,sector,sectors,pid\n0,R,0,8,1\n1000,R,800000,8,2\n2000,W,16,8,1\n",
    );
    let run = ["run", "interactive:size=16m,bulk=32m,seconds=2s"];
    let run = [
        &run[..],
        &["-d", "hdd:hitachi-7k200", "-s", "noop,cfq,bfq,kyber"],
    ]
    .concat();
    let replay = ["replay", &file, "-s", "all"];
    let small = ["-w", "interactive:size=16m,bulk=32m,seconds=1s"];
    let compare = [&["compare", "--details"], &small[..]].concat();
    for args in [
        &run[..],
        &[&run[..], &["--details"]].concat(),
        &replay,
        &[&replay[..], &["--details"]].concat(),
        &compare,
        &["devices"],
        &["devices", "--details"],
        &["workloads"],
        &["workloads", "--details"],
        &["schedulers"],
        &["schedulers", "--details"],
        &["formats"],
        &["demo"],
    ] {
        let text = at("80", args);
        assert!(widest(&text) <= 80, "{args:?}: {}\n{text}", widest(&text));
    }
    let run = [&run[..], &["--details"]].concat();
    for args in [&run[..], &compare] {
        let (narrow, wide) = (at("100", args), at("200", args));
        assert!(widest(&wide) > 150 && widest(&wide) <= 200, "{wide}");
        assert!(wide.lines().count() < narrow.lines().count());
        // No column is lost.
        for head in [
            "WAITING",
            "READ LATENCY",
            "P99.9",
            "WRITE LATENCY",
            "SHARE OF BYTES",
        ] {
            assert!(
                wide.contains(head) && narrow.contains(head),
                "{head}\n{wide}"
            );
        }
    }
}

#[test]
fn identical_runs_share_a_line() {
    let file = scratch("one.csv", b"t_ns,op,sector,sectors,pid\n0,R,0,8,1\n");
    let text = good(&["replay", &file, "-s", "noop,deadline,none", "--details"]);
    assert!(
        text.contains("Identical in every figure: noop = deadline = `none`."),
        "{text}"
    );
    assert_eq!(text.matches("noop = deadline = none").count(), 2, "{text}");
    assert!(!text.contains("\n  deadline "), "{text}");
}

#[test]
fn too_few_operations_give_no_verdict() {
    let text = good(&[
        "run",
        "fsync-latency:seconds=10s",
        "-d",
        "hdd:exos-x18",
        "-s",
        "noop,cfq",
    ]);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let at = flat.find("Verdict:").expect("a verdict comes first");
    assert!(at < flat.find("SCHEDULER").expect("a table"), "{text}");
    assert!(
        flat.contains("Verdict: Too few operations to decide (fsync: "),
        "{text}"
    );
    assert_eq!(
        flat.matches("oo few operations to decide").count(),
        2,
        "{text}"
    );
    assert!(!flat.contains("is ahead"), "{text}");
}

#[test]
fn single_seed_verdict_makes_no_claim_about_other_seeds() {
    let args = [
        "-d",
        "hdd:hitachi-7k200",
        "-w",
        "seeker:seconds=1s",
        "-s",
        "noop,cfq",
    ];
    let text = good(&[&["compare", "--details"], &args[..]].concat());
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!flat.contains("another seed may change"), "{text}");
    assert!(
        flat.contains("One run each with seed 1; another seed can give another result (--seed 2)."),
        "{text}"
    );
}

#[test]
fn several_seeds_report_their_confidence() {
    let args = [
        "compare",
        "-d",
        "hdd:hitachi-7k200",
        "-s",
        "noop,cfq,bfq",
        "-q",
    ];
    let work = [
        "-w",
        "interactive:size=64m,bulk=64m,seconds=2s",
        "-w",
        "fs-mark:files=5",
    ];
    let args = [&args[..], &work].concat();
    let text = output_with_default_seeds("80", &[&args[..], &["--seeds", "4"]].concat());
    assert!(text.contains("(100 GB, 4 seeds)"), "{text}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("Simulated with 4 seeds; noop and cfq are"),
        "{text}"
    );
    assert!(!text.contains("One run each"), "{text}");
    assert!(widest(&text) <= 80, "{text}");
    let details =
        output_with_default_seeds("80", &[&args[..], &["--seeds", "4", "--details"]].concat());
    for word in [
        "AGAINST noop",
        "(the reference)",
        "Seed 1 only:",
        "Over 4 seeds.",
    ] {
        assert!(details.contains(word), "{word}\n{details}");
    }
}

#[test]
fn deterministic_comparison_is_exact_after_three_seeds() {
    let args = [
        "compare",
        "-d",
        "constant:depth=4,service_us=100",
        "-s",
        "noop,mq-deadline",
    ];
    let more = [
        "-w",
        "hdparm:seconds=100ms",
        "-q",
        "--seeds",
        "10",
        "--json",
    ];
    let text = output_with_default_seeds("80", &[&args[..], &more].concat());
    let doc: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let cell = &doc["analysis"]["cells"][0];
    assert_eq!(
        (&cell["exact"], &cell["blocks"]),
        (&true.into(), &3.into()),
        "{cell}"
    );
}

/// If the state in a step is long, it continues on the next line, in the same column.
#[test]
fn explained_steps_fit_the_terminal_width() {
    let rows: String = (0..40)
        .map(|i| format!("{},R,{},8,{}\n", i * 1000, i * 100_000, i % 7))
        .collect();
    let head = "t_ns,op,sector,sectors,pid\n";
    let file = scratch("wide-steps.csv", format!("{head}{rows}").as_bytes());
    for scheduler in ["deadline", "cfq", "bfq"] {
        let args = ["explain", &file, "--scheduler", scheduler];
        let (narrow, wide) = (
            output_with_default_seeds("80", &args),
            output_with_default_seeds("400", &args),
        );
        assert!(widest(&narrow) <= 80, "{narrow}");
        let words = |t: &str| t.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&narrow), words(&wide), "nothing is lost");
    }
}
