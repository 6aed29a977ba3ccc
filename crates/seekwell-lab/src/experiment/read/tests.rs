use super::*;
use crate::data::{Order, StopRule};
use seekwell::WorkloadSpec;

fn read(text: &str) -> Experiment {
    Experiment::from_toml(text, Path::new("")).unwrap_or_else(|e| panic!("{e}\n--\n{text}"))
}

fn faults(text: &str) -> String {
    match Experiment::from_toml(text, Path::new("")) {
        Ok(e) => panic!("{} cells of\n{text}", e.cells.len()),
        Err(e) => e.to_string(),
    }
}

/// Checks that each of these texts is the beginning of a fault, and that there are no other faults.
fn assert_faults(text: &str, words: &[&str]) {
    let said = faults(text);
    for w in words {
        assert!(said.lines().any(|l| l.starts_with(w)), "{w}\n--\n{said}");
    }
    assert_eq!(said.lines().count(), words.len(), "{said}");
}

/// The parts that an experiment file must have.
const REST: &str = "device = 'hdd:hitachi-7k200'\nscheduler = 'cfq'\nworkload = 'hdparm'\n";

fn names(e: &Experiment) -> Vec<&str> {
    e.cells.iter().map(|c| &*c.cell.name).collect()
}

fn labels(e: &Experiment) -> Vec<&str> {
    e.treatments.iter().map(|t| &*t.label).collect()
}

#[test]
fn every_setting_of_an_experiment_file_is_read() {
    let e = read(
        r#"
        [experiment]
        name = "everything"
        description = "all of it"
        seed = 7
        margin = "3 %"
        confidence = 0.99
        repeats = "6..30"
        target = 0.02
        fraction = 0.2
        stop = "decided"
        budget = "10min"
        order = "sequential"
        warmup = "20s"
        state = "used"
        carried = true
        reference = "deadline"
        schedulers = ["deadline", "cfq-3.4:slice_idle=0"]

        [[device]]
        use = "hdd:hitachi-7k200"
        name = "laptop disk"
        write_cache = [true, false]

        [[device]]
        use = "ssd:x25m-g2-160"

        [[scheduler]]
        use = "mq-deadline"
        name = "mq"
        fifo_batch = [1, 16]

        [[workload]]
        use = "pgbench"
        clients = [1, 16]
        transactions = 100
        metric = "commit p99"
        limit = "2min"

        [[workload]]
        use = "streams:kind=write"
        seconds = "30s"

        [[machine]]
        name = "old"
        kernel = "3.4"
        memory = "512M"
        barriers = false
        without = "readahead+plugging"

        [queue]
        nr_requests = [64, 128]

        [[exclude]]
        device = "x25m*"
        scheduler = ["mq:*=1", "cfq*"]
        "#,
    );
    let m = &e.about.method;
    assert_eq!((m.seed, m.margin, m.alpha), (7, 0.03, 0.01));
    assert_eq!((m.repeats_min, m.repeats_max, m.target), (6, 30, 0.02));
    assert_eq!((m.stop, m.order), (StopRule::Decided, Order::Sequential));
    assert_eq!(
        (m.budget_s, m.warmup_s, m.carried),
        (Some(600), Some(20.0), true)
    );
    assert_eq!(
        labels(&e),
        [
            "deadline",
            "cfq-3.4:slice_idle=0",
            "mq:fifo_batch=1",
            "mq:fifo_batch=16"
        ]
    );
    assert_eq!(e.cells.len(), 3 * 3 * 2);
    assert_eq!(
        names(&e)[0],
        "laptop disk write_cache=yes / pgbench clients=1 / old / nr_requests=64"
    );
    let last = e.cells.last().expect("cells");
    assert_eq!(
        last.cell.name,
        "x25m-g2-160,state=used / streams / old / nr_requests=128"
    );
    assert_eq!(last.cell.treatments, [0, 3]);
    let first = &e.cells[0];
    assert_eq!(first.cell.axes["workload.clients"], "1");
    assert_eq!(first.cell.axes["device.write_cache"], "yes");
    assert_eq!(first.cell.axes["queue.nr_requests"], "64");
    assert_eq!(
        (first.cell.reference, &*first.cell.primary.name),
        (0, "commit p99")
    );
    let spec = &first.specs[2];
    assert_eq!((spec.limit_s, spec.seed), (Some(120), 7));
    assert_eq!(spec.scheduler.tunables["fifo_batch"], "1");
    let machine = spec.machine.as_ref().expect("a program has one");
    assert_eq!(
        (machine.memory_bytes, machine.barriers),
        (Some(512 << 20), Some(false))
    );
    assert_eq!(machine.without.len(), 2);
}

#[test]
fn minimal_experiment_file_is_accepted() {
    let e = read(REST);
    assert_eq!(names(&e), ["hitachi-7k200 / hdparm"]);
    let e = read(
        "[experiment]\ndevices = ['hdd:hitachi-7k200', 'ssd:sata3-256-2011']\n\
         schedulers = ['noop', 'blk-mq']\nworkloads = ['hdparm', 'fs-mark:files=5']\nrepeats = 3\n",
    );
    assert_eq!(e.cells.len(), 4);
    assert!(labels(&e).contains(&"kyber"), "{:?}", labels(&e));
    assert_eq!(e.about.method.stop, StopRule::Fixed, "a fixed number");
}

#[test]
fn drive_state_is_applied_to_drives_and_rejected_for_member_drives() {
    let of = |device: &str| {
        let text = format!(
            "[experiment]\nstate = 'used'\nschedulers = ['noop']\nworkloads = ['hdparm']\n\
             devices = ['{device}']\n"
        );
        Experiment::from_toml(&text, Path::new(""))
    };
    let spec = |device: &str| {
        of(device).expect("good").cells[0].specs[0]
            .device
            .spec
            .clone()
    };
    assert_eq!(spec("ssd:sata3-256-2011"), "ssd:sata3-256-2011,state=used");
    assert_eq!(
        spec("ssd:sata3-256-2011,state=fresh"),
        "ssd:sata3-256-2011,state=fresh"
    );
    assert_eq!(spec("hdd:hitachi-7k200"), "hdd:hitachi-7k200");
    for device in [
        "raid0:members=2,of=ssd:sata3-256-2011",
        "raid1:of=(ssd:sata3-256-2011)+hdd:hitachi-7k200",
        "controller:level=raid5,members=5,of=ssd:sata3-256-2011",
        "virtual:over=ssd:sata3-256-2011",
    ] {
        let said = of(device).expect_err("not passed on").to_string();
        assert!(
            said.contains("line 5") && said.contains("experiment.state"),
            "{said}"
        );
        assert!(said.contains("(ssd:sata3-256-2011,state=used)"), "{said}");
    }
    let own = "raid0:members=2,of=(ssd:sata3-256-2011,state=steady)";
    assert_eq!(spec(own), own);
    let disks = "raid0:members=2,of=hdd:hitachi-7k200";
    assert_eq!(spec(disks), disks);
}

#[test]
fn faults_have_line_column_field_and_suggestion() {
    assert_faults(
        "[experiment]\nname = 'x'\nsede = 1\nmargin = 2\nstop = 'widht'\nbudget = 10\n\n\
         [[device]]\nuse = 'hdd:hitachi-7k20'\n\n\
         [[device]]\nuse = 'hdd:hitachi-7k200'\nwrite_cach = true\n\n\
         [[scheduler]]\nuse = 'mq-deadline'\nfifo_batch = [1, -4]\nfifobatch = 3\n\n\
         [[workload]]\nuse = 'pgbench'\nclients = [1, 'many']\nmetric = 'fsnc p99'\n\n\
         [[machine]]\nmemroy = '4G'\ncores = 0\n\n[queues]\nx = 1\n",
        &[
            "line 3, column 1: experiment.sede: there is no such setting; did you mean `seed`?",
            "line 4, column 10: experiment.margin: 2 is not between 0 and 1; for 2 percent write \"2 %\"",
            "line 5, column 8: experiment.stop: \"widht\" is not a valid value; did you mean `width`?",
            "line 6, column 10: experiment.budget: is 10, not a time with its unit",
            "line 9, column 7: device[1].use: ",
            "line 13, column 14: device[2].write_cach: ",
            "line 17, column 18: scheduler[1].fifo_batch: tunable `fifo_batch`: -4 is outside",
            "line 18, column 13: scheduler[1].fifobatch: mq-deadline has no tunable \"fifobatch\"; did you mean `fifo_batch`?",
            "line 22, column 15: workload[1].clients: parameter clients=many of pgbench",
            "line 23, column 10: workload[1].metric: pgbench has no metric \"fsnc p99\"",
            "line 26, column 10: machine[1].memroy: there is no option \"memroy\"",
            "line 27, column 9: machine[1].cores: \"0\" is not a number of 1..=1024",
            "line 29, column 2: queues: there is no such table; did you mean `queue`?",
        ],
    );
    let said = faults("[experiment\nname = 1\n[[device]\n");
    assert!(
        said.starts_with("line 1, column ") && said.lines().count() >= 2,
        "{said}"
    );
    assert_faults(
        &format!("seed = 3\n{REST}"),
        &["line 1, column 1: seed: belongs to [experiment]"],
    );
    assert_faults(
        "",
        &[
            "line 1, column 1: device: there is none",
            "line 1, column 1: scheduler: there is none",
            "line 1, column 1: workload: there is none",
        ],
    );
    for (line, said) in [
        (
            "repeats = '60..10'",
            "the maximum of 10 blocks is below the minimum of 60",
        ),
        (
            "repeats = { min = 60, max = 10 }",
            "the maximum of 10 blocks is below the minimum of 60",
        ),
        (
            "repeats = { mim = 6 }",
            "experiment.repeats.mim: there is no such setting; did you mean `min`?",
        ),
        ("repeats = true", "is true or false: write \"10..60\""),
        ("repeats = 0", "0 is outside 1 to 100000"),
        ("repeats = 'many'", "\"many\" is not a number of repeats"),
        ("confidence = 95", "for 95 percent write \"95 %\""),
        ("seed = -1", "-1 is outside 0 to"),
        ("name = 'a/b'", "a name has 1 to 100 characters"),
        ("schedulers = []", "is an empty list"),
        ("devices = [3]", "is a whole number, not a device"),
        (
            "reference = 'noop'",
            "no scheduler of the experiment is called \"noop\"",
        ),
        (
            "exclude = [{ devise = 'x' }]",
            "there is no such condition; did you mean `device`?",
        ),
        ("warmup = 'soon'", "is \"soon\", not a time"),
        (
            "budget = '100ms'",
            "is not a time of one or more whole seconds",
        ),
    ] {
        let text = format!("{REST}[experiment]\n{line}\n");
        let all = faults(&text);
        assert!(
            all.contains(said) && all.starts_with("line 5, column "),
            "{line}: {all}"
        );
    }
}

#[test]
fn too_large_parameter_grid_is_rejected_before_expansion() {
    let thousand: Vec<String> = (1..=1000).map(|n| n.to_string()).collect();
    let list = thousand.join(", ");
    assert_faults(
        &format!(
            "device = 'hdd:hitachi-7k200'\nscheduler = 'cfq'\n[[workload]]\nuse = 'pgbench'\n\
             clients = [{list}]\nscale = [{list}]\nsegments = [{list}]\n"
        ),
        &[
            "line 3, column 1: workload[1]: 1000 of clients x 1000 of scale x 1000 of segments = \
             1000000000 combinations, more than the limit of 10000",
        ],
    );
}

#[test]
fn relative_paths_start_at_the_folder_of_the_file() {
    let dir = std::env::temp_dir().join(format!("seekwell-experiment-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("presets")).expect("a folder");
    let disk = "kind = \"constant\"\nname = \"mine\"\nsummary = \"of a test\"\n[params]\n";
    let array = "kind = \"controller\"\nname = \"array\"\nsummary = \"x\"\n\
                 [params]\nof = { value = \"presets/disk.toml\", source = \"estimate\" }\n\
                 members = { value = 2, unit = \"devices\", source = \"estimate\" }\n";
    for (name, text) in [
        ("presets/disk.toml", disk),
        ("array.toml", array),
        ("a.job", "[j]\nrw=read\nsize=1m\ninclude more.inc\n"),
        ("more.inc", "bs=8k\n"),
        ("t.csv", "t_us,pid,op,sector,n\n0,1,R,0,8\n100,1,W,8,8\n"),
    ] {
        std::fs::write(dir.join(name), text).expect("written");
    }
    let text = "devices = ['presets/disk.toml', 'array.toml,level=raid0']\nscheduler = 'noop'\n\
                workloads = ['a.job', { trace = 't.csv', mode = ['timed', 'closed'] }]\n";
    let e = match Experiment::from_toml(text, &dir) {
        Ok(e) => e,
        Err(e) => panic!("{e}"),
    };
    assert_eq!(
        names(&e)[..4],
        [
            "disk / a",
            "disk / t mode=timed",
            "disk / t mode=closed",
            "array,level=raid0 / a"
        ]
    );
    assert_eq!(
        e.cells[3].specs[0].device.files.len(),
        2,
        "with what it names"
    );
    assert!(matches!(&e.cells[0].specs[0].workload,
        WorkloadSpec::Fio { includes, .. } if includes.len() == 1));
    let primary = |i: usize| &*e.cells[i].cell.primary.name;
    assert_eq!((primary(1), primary(2)), ("block io mean", "duration"));
    // The written file contains everything except the trace.
    let stored = e.to_toml();
    assert_eq!(e.stored(), stored, "what was written is not complete");
    let alone = format!("# mine\n{REST}");
    assert_eq!(read(&alone).stored(), alone, "with its comments");
    for name in ["presets/disk.toml", "array.toml", "a.job", "more.inc"] {
        std::fs::remove_file(dir.join(name)).expect("removed");
    }
    let again = match Experiment::from_toml(&stored, Path::new("/")) {
        Ok(e) => e,
        Err(e) => panic!("{e}\n--\n{stored}"),
    };
    same(&e, &again);
    let said = match Experiment::from_toml(text, &dir) {
        Ok(_) => panic!("the files are gone"),
        Err(e) => e.to_string(),
    };
    assert_eq!(said.lines().count(), 3, "{said}");
    assert!(
        said.contains("a.job") && said.contains("array.toml"),
        "{said}"
    );
    std::fs::remove_dir_all(&dir).expect("removed");
}

#[test]
fn neighbour_workloads_are_part_of_the_run() {
    let e = read(&format!(
        "device = 'hdd:hitachi-7k200'\nscheduler = 'cfq'\n[[workload]]\nuse = 'fsync-latency'\n\
         beside = ['streams:streams=2', 'loop:fs-mark:files=20']\n{}",
        "[[workload]]\nuse = 'fsync-latency'\n"
    ));
    assert_eq!(
        names(&e),
        [
            "hitachi-7k200 / fsync-latency beside streams + fs-mark",
            "hitachi-7k200 / fsync-latency",
        ]
    );
    let beside = &e.cells[0].specs[0].beside;
    assert_eq!(
        (beside.len(), beside[0].again, beside[1].again),
        (2, false, true)
    );
    assert!(e.cells[1].specs[0].beside.is_empty());
    let stored = e.to_toml();
    same(&e, &read(&stored));
    assert_faults(
        "device = 'hdd:hitachi-7k200'\nscheduler = 'cfq'\n[[workload]]\nuse = 'hdparm'\n\
         beside = ['streams:steams=2', 'loop:fsmark']\n",
        &[
            "line 5, column 11: workload[1].beside",
            "line 5, column 31: workload[1].beside.name: no workload is called \"fsmark\"; did you mean `fs-mark`?",
        ],
    );
}

/// Checks that two experiments have the same cells, treatments, runs and rules.
fn same(a: &Experiment, b: &Experiment) {
    assert_eq!(a.about, b.about);
    assert_eq!(a.treatments, b.treatments);
    assert_eq!(a.cells.len(), b.cells.len());
    for (a, b) in a.cells.iter().zip(&b.cells) {
        assert_eq!((&a.cell, &a.deciding), (&b.cell, &b.deciding));
        let hashes = |c: &crate::experiment::CellPlan| -> Vec<_> {
            c.specs
                .iter()
                .map(|s| (s.hash(), s.label.clone()))
                .collect()
        };
        assert_eq!(hashes(a), hashes(b));
    }
}

mod properties;
