//! Recordings of commands on a loop device, and predictions from them. The tests need root, loop
//! devices and the kernel's tracepoints. Where these are missing, a test prints `skipped:`.

use super::*;
use seekwell_host::watch::LoopDevice;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

/// A loop device over a sparse file. Dropping the value removes both.
struct Disk {
    device: LoopDevice,
    dir: tempfile::TempDir,
}

impl Disk {
    /// Returns `None` if the machine lacks something, and prints the reason.
    fn new(what: &str) -> Option<Disk> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let skip = |why: &str| println!("skipped: {what}: {why}");
        if !rustix::process::geteuid().is_root() {
            skip("not root");
            return None;
        }
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("seekwell-recorded-{n}-");
        let dir = tempfile::TempDir::with_prefix(prefix).expect("a directory");
        let image = dir.path().join("image");
        let file = std::fs::File::create(&image).expect("a file");
        file.set_len(64 << 20).expect("sparse");
        let device = LoopDevice::attach(&image)
            .map_err(|e| skip(&e.to_string()))
            .ok()?;
        let disk = Disk { device, dir };
        // An empty recording shows whether the kernel has tracepoints.
        let r = disk.record("probe.csv", &["true"]);
        if r.code != 0 {
            skip(&r.err);
            return None;
        }
        Some(disk)
    }
    fn node(&self) -> String {
        self.device.path().display().to_string()
    }
    fn record(&self, file: &str, command: &[&str]) -> Ran {
        let (node, file) = (self.node(), self.at(file));
        seekwell(&[&["-q", "record", &node, "-o", &file, "--"], command].concat())
    }
    fn predict(&self, options: &[&str], command: &[&str]) -> Ran {
        let node = self.node();
        let fixed = [
            "predict",
            &node,
            "-s",
            "none,mq-deadline",
            "-d",
            "constant:service_us=100",
        ];
        seekwell(&[&fixed, options, &["--"], command].concat())
    }
    fn at(&self, file: &str) -> String {
        self.dir.path().join(file).display().to_string()
    }
    /// Returns the rows of a recorded CSV, by the names of their columns.
    fn rows(&self, file: &str) -> Vec<BTreeMap<String, String>> {
        let text = std::fs::read_to_string(self.at(file)).expect("written");
        let mut lines = text.lines();
        let names: Vec<&str> = lines.next().expect("names").split(',').collect();
        let row = |l: &str| {
            let fields = names.iter().zip(l.split(','));
            fields
                .map(|(n, f)| ((*n).to_owned(), f.to_owned()))
                .collect()
        };
        lines.map(row).collect()
    }
}

#[test]
fn recording_has_priorities_and_flags() {
    let Some(disk) = Disk::new("priorities and flags of a recording") else {
        return;
    };
    let node = disk.node();
    let script = format!(
        "ionice -c3 dd if={node} of=/dev/null bs=4k count=3 iflag=direct\n\
         ionice -c1 -n2 dd if={node} of=/dev/null bs=8k count=3 iflag=direct\n\
         ionice -c2 -n6 dd if={node} of=/dev/null bs=16k count=3 iflag=direct\n\
         dd if=/dev/zero of={node} bs=32k count=3 oflag=direct conv=notrunc,fsync\n"
    );
    let r = disk.record("r.csv", &["sh", "-ec", &script]);
    assert_eq!(r.code, 0, "{}", r.err);
    let rows = disk.rows("r.csv");
    let of = |op: &str, sectors: &str| -> Vec<(&str, &str)> {
        let all = rows
            .iter()
            .filter(|r| r["op"] == op && r["sectors"] == sectors);
        all.map(|r| (&*r["flags"], &*r["ioprio"])).collect()
    };
    let writes = of("W", "64");
    assert_eq!(writes.len(), 3, "{rows:?}");
    assert!(writes.iter().all(|w| w.0.contains("sync")), "{writes:?}");
    assert_eq!(of("F", "0").len(), 1, "{rows:?}");
    let reads = [of("R", "8"), of("R", "16"), of("R", "32")];
    assert!(reads.iter().all(|r| r.len() == 3), "{rows:?}");
    let format = "/sys/kernel/tracing/events/block/block_rq_issue/format";
    if std::fs::read_to_string(format).is_ok_and(|f| !f.contains("ioprio")) {
        return println!("skipped: priorities of a recording: this kernel does not report them");
    }
    for (reads, class) in reads.iter().zip(["3:", "1:2", "2:6"]) {
        assert!(
            reads.iter().all(|r| r.1.starts_with(class)),
            "{class}: {reads:?}"
        );
    }
}

#[test]
fn recorded_command_is_predicted_with_its_limits() {
    let Some(disk) = Disk::new("the prediction of a command") else {
        return;
    };
    let node = disk.node();
    let scheduler = |d: &Disk| {
        let name = d.device.path().file_name().expect("a name").to_owned();
        let file = PathBuf::from("/sys/block")
            .join(name)
            .join("queue/scheduler");
        std::fs::read_to_string(file).expect("readable")
    };
    let before = scheduler(&disk);
    let input = format!("if={node}");
    let dd = [
        "dd",
        &input,
        "of=/dev/null",
        "bs=4k",
        "count=300",
        "iflag=direct",
    ];
    let r = disk.predict(&["--json"], &dd);
    assert_eq!(r.code, 0, "{}", r.err);
    let doc: Value = serde_json::from_str(&r.out).expect("JSON");
    let recording = &doc["recording"];
    assert_eq!(
        (&recording["mode"], &recording["fixed_time"]),
        (&"closed".into(), &false.into())
    );
    let process = &recording["processes"][0];
    assert_eq!(
        (&process["name"], &process["reads"]),
        (&"dd".into(), &300.into())
    );
    assert_eq!(
        (&process["open"], &process["in_flight_max"]),
        (&false.into(), &1.into())
    );
    let predictions = doc["predictions"].as_array().expect("a list");
    assert_eq!(
        (predictions.len(), &predictions[0]["metric"]),
        (1, &"duration".into()),
        "{doc}"
    );
    // 300 reads of 100 us each, and the think times.
    let simulated = predictions[0]["simulated"][1].as_f64().expect("a number");
    assert!(simulated >= 0.03, "{simulated}");
    let limits = doc["not_carried"].to_string();
    for says in ["page cache", "cgroups"] {
        assert!(limits.contains(says), "{says}: {limits}");
    }
    assert!(
        !limits.contains("dirty"),
        "a recording is below the page cache: {limits}"
    );
    assert_eq!(scheduler(&disk), before);
    // The same command, judged as one that ran for a fixed time.
    let r = disk.predict(&["--ends", "time"], &dd);
    assert_eq!(r.code, 0, "{}", r.err);
    for says in [
        "Recorded: dd ",
        "with exit code",
        "(--ends work",
        "block io rate",
        "block io mean",
        "seekwell trial",
        "the end of the recording",
    ] {
        assert!(r.out.contains(says), "{says}: {}", r.out);
    }
}

#[test]
fn command_without_requests_or_success_says_what_to_do() {
    let Some(disk) = Disk::new("commands that cannot be predicted") else {
        return;
    };
    let input = format!("if={}", disk.node());
    let few = [
        "dd",
        &input,
        "of=/dev/null",
        "bs=4k",
        "count=5",
        "iflag=direct",
    ];
    for (command, says) in [
        (&["true"][..], "drop the caches first"),
        (
            &["sh", "-c", "exit 7"],
            "exit code 7, so nothing is predicted",
        ),
        (&few, "only 5 requests reached"),
        (&["/no/such"], "cannot be run"),
    ] {
        let r = disk.predict(&[], command);
        assert_eq!((r.code, &*r.out), (2, ""), "{command:?}: {}", r.err);
        assert!(r.err.contains(says), "{command:?}: {}", r.err);
    }
    // A wrong device is reported before the command runs.
    let mark = disk.at("mark");
    let node = disk.node();
    let r = seekwell(&["predict", &node, "-d", "nothing", "--", "touch", &mark]);
    assert_eq!(r.code, 2, "{}", r.err);
    assert!(!PathBuf::from(mark).exists());
}

#[test]
fn user_without_root_is_told_what_is_missing() {
    if !rustix::process::geteuid().is_root() {
        let r = seekwell(&[
            "predict",
            "/",
            "-d",
            "constant:service_us=100",
            "--",
            "true",
        ]);
        assert_eq!(r.code, 2, "{}", r.out);
        return;
    }
    let Some(disk) = Disk::new("a recording without root") else {
        return;
    };
    let o = std::process::Command::new("setpriv")
        .args([
            "--reuid=65534",
            "--clear-groups",
            env!("CARGO_BIN_EXE_seekwell"),
        ])
        .args([
            "predict",
            &disk.node(),
            "-d",
            "constant:service_us=100",
            "--",
            "true",
        ])
        .output();
    match o {
        Ok(o) if o.status.code() == Some(2) => {
            let r = ran(o);
            assert!(
                r.err
                    .contains("only root can read the kernel's tracepoints"),
                "{}",
                r.err
            );
            assert!(
                r.err.contains("sudo") && r.err.contains("-- true"),
                "{}",
                r.err
            );
        }
        other => println!("skipped: a recording without root: {other:?}"),
    }
}
