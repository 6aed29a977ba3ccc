//! The template, the documentation, the schema and the reader must agree.

use super::fuzz_experiment::fuzz_one;
use crate::schema_check::Validator;
use seekwell_lab::experiment::{Experiment, Start, schema, template};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Checks a text against the schema. The error describes what is wrong.
fn by_schema(validator: &Validator, text: &str) -> Result<(), String> {
    let value: Value = toml::from_str(text).map_err(|e| e.to_string())?;
    validator.check(&value)
}

fn validator() -> Validator {
    Validator::new(schema())
}

fn assert_schema_and_reader_accept(validator: &Validator, text: &str, dir: &Path) {
    if let Err(e) = by_schema(validator, text) {
        panic!("the schema: {e}\n--\n{text}");
    }
    if let Err(e) = Experiment::from_toml(text, dir) {
        panic!("the reader: {e}\n--\n{text}");
    }
}

#[test]
fn experiment_template_runs_and_its_comments_are_true() {
    let validator = validator();
    let own = |all: &[&str]| all.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
    let mut starts = vec![Start::default()];
    // Add every workload with its parameters, and every scheduler with the grid of its tunable.
    let workloads: Vec<String> = seekwell_workload::workloads()
        .iter()
        .map(|w| w.name.to_owned())
        .collect();
    starts.push(Start {
        name: "quoted \"name\"".to_owned(),
        devices: own(&["constant:depth=4"]),
        workloads,
        ..Start::default()
    });
    for s in seekwell_sched::registry() {
        starts.push(Start {
            devices: own(&["constant:depth=4"]),
            schedulers: own(&[s.name, "noop-2.6.18"]),
            workloads: own(&["hdparm"]),
            ..Start::default()
        });
    }
    for (i, start) in starts.iter().enumerate() {
        let text = template(start);
        for line in text.lines().filter(|l| !l.contains("  # ")) {
            assert!(line.chars().count() <= 100, "{line}");
        }
        assert_schema_and_reader_accept(&validator, &text, Path::new(""));
        let lines: Vec<&str> = text.lines().collect();
        let mut told = 0;
        for (n, line) in lines.iter().enumerate() {
            // Uncomments a single setting, or a table together with its settings.
            let Some(setting) = line
                .strip_prefix('#')
                .filter(|l| !l.starts_with([' ', '#']))
            else {
                continue;
            };
            if line.is_empty() || setting.is_empty() {
                continue;
            }
            told += 1;
            let mut with = lines.clone();
            with[n] = setting;
            let mut end = n;
            if setting.starts_with('[') {
                while let Some(next) = lines.get(end + 1).and_then(|l| l.strip_prefix('#')) {
                    if next.starts_with(' ') {
                        break;
                    }
                    end += 1;
                    with[end] = next;
                }
            } else if in_commented_table(&lines, n) {
                continue;
            }
            // Parts that all templates have in common are tested only in the first two.
            if i < 2 || setting.contains(" = [") {
                assert_schema_and_reader_accept(&validator, &with.join("\n"), Path::new(""));
            }
        }
        assert!(told > 10, "{text}");
    }
    let e = Experiment::from_toml(&template(&Start::default()), Path::new("")).expect("read");
    assert_eq!((e.cells.len(), e.treatments.len()), (6, 4));
}

/// Returns whether a setting belongs to a table that is commented out too.
fn in_commented_table(lines: &[&str], n: usize) -> bool {
    let mut before = lines[..n].iter().rev();
    let head = before.find(|l| l.trim_start_matches('#').starts_with('['));
    head.is_some_and(|l| l.starts_with('#'))
}

/// The template can be run. Every cell and treatment is simulated in about as many seconds as it
/// covers.
#[test]
fn every_cell_of_the_template_gives_its_metric() {
    let e = Experiment::from_toml(&template(&Start::default()), Path::new("")).expect("read");
    for c in &e.cells {
        let record = seekwell::run(&c.specs[0], seekwell::Hooks::default());
        let record = record.unwrap_or_else(|e| panic!("{}: {e}", c.cell.name));
        let value = c
            .deciding
            .primary
            .value(&record, &c.specs[0].workload)
            .expect("a figure");
        assert_eq!(*value.metric, c.cell.primary, "as it was said beforehand");
        assert!(value.value > 0.0);
    }
}

/// Returns the code blocks of the documentation, as pairs of the text after the fence and the
/// contents.
fn blocks(markdown: &str) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in markdown.lines() {
        match (line.strip_prefix("```"), inside) {
            (Some(info), false) => {
                out.push((info.to_owned(), String::new()));
                inside = true;
            }
            (Some(_), true) => inside = false,
            (None, true) => {
                let text = &mut out.last_mut().expect("begun").1;
                text.push_str(line);
                text.push('\n');
            }
            _ => {}
        }
    }
    out
}

/// Adds the parts that a piece of a file lacks.
fn complete_piece(piece: &str) -> String {
    let table: toml::Table = piece.parse().expect("TOML");
    let inner = table.get("experiment").and_then(toml::Value::as_table);
    let mut text = piece.to_owned();
    for (one, many, usual) in [
        ("device", "devices", "hdd:hitachi-7k200"),
        ("scheduler", "schedulers", "mq-deadline"),
        ("workload", "workloads", "hdparm"),
    ] {
        let has = |t: &toml::Table| t.contains_key(one) || t.contains_key(many);
        if !has(&table) && !inner.is_some_and(has) {
            text += &format!("[[{one}]]\nuse = \"{usual}\"\n");
        }
    }
    text
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Makes a folder with the files that the documentation names.
fn folder() -> Folder {
    let dir = std::env::temp_dir().join(format!("seekwell-documented-{}", std::process::id()));
    for d in ["disks", "jobs", "traces"] {
        std::fs::create_dir_all(dir.join(d)).expect("a folder");
    }
    let disk = "kind = \"constant\"\nname = \"mine\"\nsummary = \"of a test\"\n[params]\n";
    for (name, text) in [
        ("disks/mine.toml", disk),
        ("jobs/oltp.fio", "[oltp]\nrw=randrw\nsize=1m\nbs=8k\n"),
        (
            "traces/monday.csv",
            "t_us,pid,op,sector,n\n0,1,R,0,8\n100,1,W,8,8\n",
        ),
    ] {
        std::fs::write(dir.join(name), text).expect("written");
    }
    Folder(dir)
}

#[test]
fn every_documented_example_is_read_as_documented() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/experiments.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (dir, validator) = (folder(), validator());
    let all = blocks(&page);
    assert!(all.len() > 10, "the page has its examples");
    for (i, (info, text)) in all.iter().enumerate() {
        match info.as_str() {
            "toml" => assert_schema_and_reader_accept(&validator, &complete_piece(text), &dir.0),
            "toml refused" => {
                let said = match Experiment::from_toml(text, &dir.0) {
                    Ok(_) => panic!("it is good\n{text}"),
                    Err(e) => e.to_string(),
                };
                assert_eq!(said.trim_end(), all[i + 1].1.trim_end(), "{text}");
                assert!(by_schema(&validator, text).is_err());
            }
            "text" => {}
            other => panic!("a block of {other}"),
        }
    }
    // The page documents every setting.
    let schema = schema();
    let settings = schema["properties"]["experiment"]["properties"].as_object();
    for name in settings.expect("settings").keys() {
        assert!(page.contains(&**name), "{name} is not on the page");
    }
}

/// The schema and the reader reject a word with an additional letter, in any place.
#[test]
fn schema_and_reader_reject_misspellings() {
    let validator = validator();
    for text in [
        "[experiment]\nsede = 1\n",
        "[experiment]\nstop = 'widht'\n",
        "[experiment]\norder = 'sequentail'\n",
        "[experiment]\nbudget = '10 minutes'\n",
        "[experiment]\nmargin = 2\n",
        "[experiment]\nrepeats = '10-60'\n",
        "[experiments]\nseed = 1\n",
        "[[device]]\nuse = 'hdd:hitachi-7k20'\n",
        "[[device]]\nuse = 'hdd:hitachi-7k200'\nwrite_cach = true\n",
        "[[device]]\nname = 'x'\n",
        "devices = ['sdd:sata3-256-2011']\n",
        "[[scheduler]]\nuse = 'mq-dedline'\n",
        "[[scheduler]]\nuse = 'mq-deadline'\nfifo_bach = 1\n",
        "[[scheduler]]\nuse = 'mq-deadline'\nslice_idle = 1\n",
        "[[scheduler]]\nuse = 'mq-deadline'\nfifo_batch = [1, 'x']\n",
        "[[scheduler]]\nuse = 'cfq'\nfifo_batch = 1\n",
        "[[scheduler]]\nuse = 'bfq'\nslice_idle = -7\n",
        "schedulers = ['noop', 'cfg']\n",
        "[[workload]]\nuse = 'pgbensh'\n",
        "[[workload]]\nuse = 'pgbench'\nclient = 1\n",
        "[[workload]]\nuse = 'pgbench'\nclients = 0\n",
        "[[workload]]\nuse = 'pgbench'\nmode = 'selct'\n",
        "[[workload]]\nuse = 'pgbench'\nfiles = 3\n",
        "[[workload]]\nuse = 'pgbench'\nprofile = 's3700-tiny'\n",
        "[[workload]]\nuse = 'hdparm'\nseconds = 3\n",
        "[[workload]]\nuse = 'hdparm'\nlimit = '3'\n",
        "[[workload]]\nname = 'x'\n",
        "[[workload]]\ntrace = 'x.csv'\nmod = 'closed'\n",
        "[[workload]]\ntrace = 'x.csv'\nfit = 'rap'\n",
        "workloads = ['fs_mark']\n",
        "[[machine]]\nkernel = 'three'\n",
        "[experiment]\nkernel = 'six'\n",
        "[[machine]]\ncors = 2\n",
        "[[machine]]\ncores = 0\n",
        "[queue]\nnr_request = 3\n",
        "[queue]\nnr_requests = 3\n",
        "[[exclude]]\ndevises = 'x'\n",
        "[[exclude]]\n",
    ] {
        let text = complete_piece(text);
        assert!(
            by_schema(&validator, &text).is_err(),
            "the schema takes\n{text}"
        );
        assert!(
            Experiment::from_toml(&text, Path::new("")).is_err(),
            "the reader takes\n{text}"
        );
    }
}

/// Stored experiments also match the schema.
#[test]
fn stored_experiments_fit_the_schema() {
    let dir = folder();
    let text = "[experiment]\nname = 'x'\nwarmup = '1500ms'\nbudget = '1h'\n\
                devices = ['disks/mine.toml', 'ssd:sata3-256-2011']\n\
                schedulers = ['all', { use = 'cfq', version = '3.4', slice_idle = [0, 8] }]\n\
                workloads = ['jobs/oltp.fio', { use = 'pgbench', clients = [1, 2] },\n\
                { trace = 'traces/monday.csv', from = '10us', pids = [1] }]\n\
                machines = ['', 'memory=1G,limit=9']\n[queue]\nnr_requests = [64, 128]\n\
                [[only]]\ndevice = '*'\n";
    let e = match Experiment::from_toml(text, &dir.0) {
        Ok(e) => e,
        Err(e) => panic!("{e}"),
    };
    assert_schema_and_reader_accept(&validator(), &e.to_toml(), Path::new("/"));
}

/// Files are damaged in every way, always in the same order. The reader must read or reject them
/// without a panic.
#[test]
fn damaged_files_are_read_or_rejected() {
    use rand::{Rng, SeedableRng};
    let text = template(&Start {
        devices: vec!["constant:depth=4".to_owned()],
        workloads: vec!["hdparm".to_owned()],
        ..Start::default()
    });
    // Leave out the explanations and the grid. With the grid, the reference would not be a
    // treatment.
    let setting = |l: &&str| !l.starts_with("# ") && !l.starts_with("#fifo_batch");
    let lines: Vec<&str> = text.lines().filter(setting).collect();
    let lines: Vec<&str> = lines.iter().map(|l| l.trim_start_matches('#')).collect();
    let whole = lines.join("\n");
    if let Err(e) = Experiment::from_toml(&whole, Path::new("/nowhere")) {
        panic!("{e}\n--\n{whole}");
    }
    let pieces = [
        "[",
        "]",
        "[[",
        "\"",
        "'",
        "\"\"\"",
        "=",
        "{",
        "}",
        ",",
        "\n",
        "#",
        ".",
        "..",
        "-",
        "1",
        "0x",
        "1e999",
        "99999999999999999999",
        "nan",
        "inf",
        "true",
        "1979-05-27",
        "\u{0}",
        "\\u0000",
        "ä",
        "\u{2028}",
        "use",
        "name",
        "[experiment]",
        "= []",
        "= {}",
        "all,all",
        "(",
        ")",
        "*",
        "%",
        "\r",
    ];
    let mut rng = rand_pcg::Pcg64::seed_from_u64(7);
    let (mut good, mut bad) = (0, 0);
    for _ in 0..2000 {
        let mut chars: Vec<char> = whole.chars().collect();
        for _ in 0..rng.random_range(1..3) {
            let at = rng.random_range(0..chars.len());
            let to = (at + rng.random_range(1..12)).min(chars.len());
            match rng.random_range(0..4) {
                0 => drop(chars.drain(at..to)),
                1 => {
                    let piece = pieces[rng.random_range(0..pieces.len())];
                    chars.splice(at..at, piece.chars());
                }
                2 => {
                    let copy: Vec<char> = chars[at..to].to_vec();
                    let other = rng.random_range(0..chars.len());
                    chars.splice(other..other, copy);
                }
                _ => chars[at] = char::from(rng.random_range(1..127u8)),
            }
        }
        let text: String = chars.into_iter().collect();
        fuzz_one(text.as_bytes());
        match Experiment::from_toml(&text, Path::new("/nowhere")) {
            Ok(e) => {
                good += 1;
                assert!(!e.cells.is_empty());
            }
            Err(e) => {
                bad += 1;
                let lines = text.split('\n').count();
                assert!(!e.0.is_empty());
                for f in e.0 {
                    assert!((1..=lines).contains(&f.at.line), "{f}\n--\n{text}");
                    assert!(f.at.column >= 1 && !f.what.is_empty());
                }
            }
        }
    }
    // Both outcomes must be frequent. Otherwise the test would prove little.
    assert!(good > 100 && bad > 1000, "{good} read, {bad} refused");
}

/// For experiments on this machine, tests the example of the page, and texts that both the schema
/// and the reader reject.
#[test]
fn schema_and_reader_accept_host_files_and_reject_misspellings() {
    let validator = validator();
    let page = include_str!("../../../docs/host.md");
    let example = page
        .split("```toml\n")
        .nth(1)
        .and_then(|p| p.split("```").next());
    let example = example.expect("the page has an example");
    let read = |text: &str| seekwell_lab::host::file::read(text, Path::new("/x"));
    let good = [
        example,
        "schedulers = ['none', 'bfq:low_latency=0']\nworkload = 'sqlite3'\n\
         [experiment]\nname = 'x'\n[host]\npath = 'data'\nequal = 'kernel'\n",
    ];
    for text in good {
        if let Err(e) = by_schema(&validator, text) {
            panic!("the schema: {e}\n--\n{text}");
        }
        if let Err(e) = read(text) {
            panic!("the reader: {e}\n--\n{text}");
        }
    }
    let host = "[experiment]\nname = 'x'\n[host]\npath = 'data'\n";
    for text in [
        "[host]\ndevice = 'sda'\n",
        "[host]\npath = 'data'\nsetle = '1s'\n",
        "[host]\npath = 'data'\nsettle = 'soon'\n",
        "[host]\npath = 'data'\nequal = 'kernal'\n",
        "[host]\npath = 'data'\nequal = { read_ahead = 3 }\n",
        &format!("{host}[[device]]\nuse = 'hdd:hitachi-7k200'\n"),
        &format!("{host}[queue]\nnr_requests = 128\n"),
        &format!("{host}[[scheduler]]\nname = 'x'\n"),
        &format!("{host}[[workload]]\nname = 'x'\n"),
        &format!("{host}[[workload]]\nuse = 'sqlite3'\ncommand = 'true'\n"),
        &format!("{host}[[workload]]\ncommand = 'true'\nregex = '(.)'\nbetter = 'more'\n"),
        &format!("{host}[[workload]]\nuse = 'sqlite3'\nionice = 'be:9'\n"),
        &format!("{host}[[workload]]\nuse = 'sqlite3'\nnice = 99\n"),
    ] {
        assert!(
            by_schema(&validator, text).is_err(),
            "the schema takes\n{text}"
        );
        assert!(read(text).is_err(), "the reader takes\n{text}");
    }
    // Programs are allowed only in experiments on this machine.
    let text = "[[device]]\nuse = 'hdd:hitachi-7k200'\n[[workload]]\ncommand = 'true'\n";
    assert!(by_schema(&validator, text).is_err());
}
