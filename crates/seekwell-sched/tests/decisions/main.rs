//! The decisions of every version of every scheduler in fixed scenes, as digests.
//!
//! `tests/golden/decisions-NAME.txt` has one line for each scene with default tunables, and one line
//! for each other value of a tunable. Each word of a line is the digest of a block of decisions; for
//! other values of tunables, a block is a whole scene.
//! After an intended change: `SEEKWELL_BLESS=1 cargo test -p seekwell-sched`.
//!
//! These tests are to notice each changed comparison and constant in the schedulers. Some changes
//! have no effect that a test could notice:
//! - An initial time of 0 means "long ago". A time of 1 ns or 1 jiffy means the same, because all
//!   clocks start 1000 s after boot.
//! - Other initial values are replaced before they are read (level and slice end of a CFQ queue,
//!   `head` of anticipatory and ADIOS, sums of ADIOS's model).
//! - `.max(1)` protects a division from a divisor that is never 0.
//! - Both branches give the same result at the limit: the bucket of twice the prediction in ADIOS,
//!   equal distances in `choose` of CFQ, a neighbour at the position that the search did not hit.
//! - Values between the two limits do not occur: a raising coefficient is 1, 30 or 3000 (so `> 1`
//!   is `> 2`), and the decayed number of seeks of anticipatory is 32, 60 or at least 84.
//! - A second condition follows from the first: a sum of weights of 0 is caught after `harvest`, and
//!   a queue whose raising has just ended is not raised.
//! - Counters of statistics and of `check` and `state` decide nothing.
//! - No layer reaches the code: `joined` of kyber and `none`, which have no neighbours, and a
//!   `dispatch` of a queue that a choice has just found empty.

mod record;
mod rig;
mod scene;

use record::{Decision, Record};
use rig::Rig;
use scene::{SCENES, Scene};
use seekwell_core::Era;
use seekwell_sched::{Kind, SchedulerInfo, Tunable, registry};

/// Number of decisions for each digest.
const BLOCK: usize = 200;

/// The scenes for other values of tunables, and the number of their dispatches.
const FOR_TUNABLES: &[&str] = &[
    "priorities",
    "writers",
    "crowd",
    "pauses",
    "grid",
    "grid-ncq",
];
const SHORTER: u64 = 200;

/// The scenes that run with three seeds, if the scheduler distinguishes processes.
const SEEDS: &[&str] = &[
    "readers",
    "priorities",
    "flash",
    "cgroups",
    "pauses",
    "crowd",
    "gaps",
    "grid",
    "grid-250",
    "grid-ncq",
    "groups",
    "limits",
];

/// One line of a file: its name, and the scenes with their decisions.
struct Line {
    name: String,
    scenes: Vec<(&'static str, Record)>,
    /// Number of decisions for each digest.
    block: usize,
}

impl Line {
    fn digests(&self) -> Vec<String> {
        let all = self.scenes.iter();
        all.flat_map(|s| s.1.digests(self.block)).collect()
    }
    fn text(&self) -> String {
        format!("{}: {}", self.name, self.digests().join(" "))
    }
    /// The scene and the decisions of a block.
    fn block(&self, mut i: usize) -> (&'static str, &[Decision]) {
        for (name, record) in &self.scenes {
            let mut blocks = record.decisions.chunks(self.block);
            let len = blocks.len();
            match blocks.nth(i) {
                Some(block) => return (name, block),
                None => i -= len,
            }
        }
        ("", &[])
    }
}

/// Names the scene if the scheduler panics.
struct Named(String);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in the scene {}", self.0);
        }
    }
}

fn run(
    scene: &Scene,
    info: &SchedulerInfo,
    (version, era): (&str, Era),
    set: Option<(&str, &str)>,
) -> Option<Record> {
    let _named = Named(format!("{} {version} {} {set:?}", info.name, scene.name));
    Some(Rig::new(scene, info, version, era, set)?.run())
}

/// Values of a tunable that are not its default.
fn other_values(t: &Tunable) -> Vec<String> {
    let default = t.default.split(' ').next().unwrap_or_default();
    let values = match (t.kind, default.parse::<i64>()) {
        (Kind::ReadOnly | Kind::Text, _) => Vec::new(),
        (Kind::Bool, _) => vec![0, 1],
        (_, Ok(d)) if d <= 3 => vec![0, 1, 2, d * 3],
        (_, Ok(d)) => vec![0, 1, d * 3 / 8, d * 3],
        (_, Err(_)) => vec![0, 2, 40],
    };
    let limited = values
        .into_iter()
        .map(|v| v.clamp(t.min, t.max).to_string());
    let mut values: Vec<String> = limited.filter(|v| v != default).collect();
    values.dedup();
    values
}

/// Calls `each` for each line of the file of a scheduler.
fn lines(info: &SchedulerInfo, mut each: impl FnMut(Line)) {
    for &(version, era) in info.versions {
        for scene in SCENES {
            let many = info.per_process && SEEDS.contains(&scene.name);
            for n in 1..=if many { 3 } else { 1 } {
                let seeded = Scene {
                    seed: scene.seed + 1000 * (n - 1),
                    ..scene.clone()
                };
                if let Some(record) = run(&seeded, info, (version, era), None) {
                    let name = format!("{version} {} {n}", scene.name);
                    each(Line {
                        name,
                        scenes: vec![(scene.name, record)],
                        block: BLOCK,
                    });
                }
            }
        }
        for t in (info.tunables)(version) {
            for value in other_values(t) {
                let mut scenes = Vec::new();
                for scene in SCENES.iter().filter(|s| FOR_TUNABLES.contains(&s.name)) {
                    let short = Scene {
                        dispatches: SHORTER,
                        ..scene.clone()
                    };
                    let set = Some((t.name, value.as_str()));
                    if let Some(record) = run(&short, info, (version, era), set) {
                        scenes.push((scene.name, record));
                    }
                }
                let name = format!("{version} {}={value}", t.name);
                each(Line {
                    name,
                    scenes,
                    block: usize::MAX,
                });
            }
        }
    }
}

/// Reports the first block of a line that differs, with its decisions as computed.
fn report(scheduler: &str, line: &Line, want: &str) -> ! {
    let (name, words) = want.split_once(": ").unwrap_or_default();
    assert_eq!(
        name, line.name,
        "{scheduler}: another line of the file; after an intended change run with SEEKWELL_BLESS=1"
    );
    let same = line
        .digests()
        .iter()
        .zip(words.split(' '))
        .take_while(|(a, b)| a == b)
        .count();
    let (scene, block) = line.block(same);
    let shown: Vec<String> = block.iter().take(BLOCK).map(ToString::to_string).collect();
    panic!(
        "{scheduler} {}: the decisions differ in block {same}, scene {scene}. As computed:\n{}\nAfter \
         an intended change run with SEEKWELL_BLESS=1",
        line.name,
        shown.join("\n")
    );
}

/// Compares the decisions of a scheduler with its file.
fn compare(scheduler: &str) {
    let info = registry()
        .iter()
        .find(|i| i.name == scheduler)
        .expect("registered");
    let root = env!("CARGO_MANIFEST_DIR");
    let path = format!("{root}/tests/golden/decisions-{scheduler}.txt");
    if std::env::var_os("SEEKWELL_BLESS").is_some() {
        let mut text = String::new();
        lines(info, |l| text += &(l.text() + "\n"));
        std::fs::write(&path, text).expect("the file is written");
        return;
    }
    let all = std::fs::read_to_string(&path).expect("SEEKWELL_BLESS=1 writes the file");
    let mut want = all.lines();
    lines(info, |l| {
        let w = want.next().unwrap_or_default();
        if l.text() != w {
            report(scheduler, &l, w);
        }
    });
    assert_eq!(want.next(), None, "{scheduler}: the file has more lines");
}

macro_rules! each_scheduler {
    ($($test:ident $name:literal)*) => {
        $(#[test]
        fn $test() {
            compare($name);
        })*
        #[test]
        fn every_scheduler_has_a_file() {
            let names = [$($name),*];
            let built_in = registry().iter().take(names.len());
            assert_eq!(built_in.map(|i| i.name).collect::<Vec<_>>(), names);
        }
    };
}

each_scheduler! {
    noop "noop"
    deadline "deadline"
    cfq "cfq"
    none "none"
    mq_deadline "mq-deadline"
    kyber "kyber"
    zen "zen"
    vr "vr"
    sio "sio"
    fiops "fiops"
    row "row"
    anticipatory "anticipatory"
    adios "adios"
    bfq "bfq"
    bfq_sq "bfq-sq"
    turns "turns"
}
