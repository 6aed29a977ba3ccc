//! Small real inputs of every format, and their mutations.

use crate::{Dice, project, scratch};
use seekwell_core::{Flags, Op, Sector, Sectors, TaskId};
use seekwell_trace::{Record, WriteOptions, formats};

/// An input: the suffix of its file, its bytes, and the command that reads it.
pub struct Seed {
    suffix: String,
    bytes: Vec<u8>,
    reads: Reads,
}

#[derive(Clone, Copy)]
enum Reads {
    Replay,
    Explain,
    Fio,
    Preset,
}

const FIO: [&str; 3] = [
    "[global]\nsize=2m\ndirect=1\nioengine=libaio\niodepth=4\nruntime=2\n[a]\nrw=randread:8\nbs=4k\n\
     [b]\nstonewall\nrw=randwrite\nbssplit=4k/60:16k/40\nnumjobs=2\n",
    "[seq]\nrw=write:8k\nsize=1m\nbs=64k\nfsync=4\nend_fsync=1\nfallocate=none\nnrfiles=3\n\
     file_service_type=random:2\n",
    "[mix]\nrw=randrw\nrwmixread=70\nsize=4m\nnumber_ios=200\nrandom_distribution=zipf:1.2\n\
     rate_iops=100,50\nthinktime=1ms\nprio=2\nloops=2\nbsrange=4k-16k\n",
];

fn records() -> Vec<Record> {
    let ops = [
        Op::Read,
        Op::Write,
        Op::Read,
        Op::Flush,
        Op::Write,
        Op::Discard,
    ];
    (0..30u64)
        .map(|i| {
            let t = i * 90_000;
            let op = ops[i as usize % 6];
            let n = if op == Op::Flush { 0 } else { 8 + 8 * (i % 4) };
            Record {
                task: Some(TaskId(10 + i as u32 % 3)),
                cpu: Some(i as u16 % 2),
                flags: [Flags::empty(), Flags::SYNC, Flags::META][i as usize % 3],
                device: 8 << 20,
                insert_ns: Some(t + 1_000),
                issue_ns: Some(t + 2_000),
                complete_ns: Some(t + 400_000),
                sector: Sector(i * 1_000),
                sectors: Sectors(n as u32),
                ..Record::new(t, op, 0, 0)
            }
        })
        .collect()
}

/// Returns one input per format: traces from the project's own writers, and files of the project.
pub fn seeds() -> Vec<Seed> {
    let mut all = Vec::new();
    for f in formats() {
        let Some(create) = f.create else { continue };
        let path = scratch(&format!("seed-{}", f.name));
        let file = std::fs::File::create(&path).expect("scratch file");
        let mut w = create(Box::new(file), &WriteOptions::default()).expect(f.name);
        for r in records() {
            // Not every format can represent everything.
            let _ = w.write(&r);
        }
        w.finish().expect(f.name);
        drop(w);
        let bytes = std::fs::read(&path).expect("scratch file");
        assert!(!bytes.is_empty(), "{}", f.name);
        let suffix = f.extensions.first().unwrap_or(&"trace");
        all.push(Seed {
            suffix: (*suffix).to_owned(),
            bytes,
            reads: Reads::Replay,
        });
    }
    assert!(all.len() >= 4, "formats that can be written");
    let mut file = |path: &str, suffix: &str, lines: usize, reads| {
        let text = std::fs::read_to_string(project(path)).expect(path);
        let text: Vec<&str> = text.lines().take(lines).collect();
        all.push(Seed {
            suffix: suffix.to_owned(),
            bytes: (text.join("\n") + "\n").into_bytes(),
            reads,
        });
    };
    file(
        "crates/seekwell-trace/tests/data/ftrace-6.18.txt",
        "txt",
        300,
        Reads::Replay,
    );
    file(
        "crates/seekwell-cli/tests/golden/five.csv",
        "csv",
        99,
        Reads::Explain,
    );
    for name in [
        "deadline",
        "cfq",
        "bfq",
        "noop",
        "mq-deadline",
        "kyber",
        "anticipatory",
        "row",
    ] {
        let path = format!("cases/{name}.jsonl");
        if project(&path).exists() {
            file(&path, "jsonl", 3, Reads::Explain);
        }
    }
    for name in [
        "hdd-hitachi-7k200",
        "hdd-exos-x18",
        "ssd-sata3-256-2011",
        "emmc-motog-sandisk8",
        "raid-raid0-4x",
        "cloud-aws-gp2-100",
        "controller-hwraid5-5-bbu",
        "virtual-vm-aged-thin",
    ] {
        file(
            &format!("crates/seekwell-device/presets/{name}.toml"),
            "toml",
            999,
            Reads::Preset,
        );
    }
    for text in FIO {
        all.push(Seed {
            suffix: "fio".to_owned(),
            bytes: text.as_bytes().to_vec(),
            reads: Reads::Fio,
        });
    }
    all
}

const WORDS: [&[u8]; 22] = [
    b"18446744073709551615",
    b"9223372036854775808",
    b"9000000000000000000",
    b"4294967296",
    b"2147483648",
    b"99999999999999999999999",
    b"0",
    b"-1",
    b"1e308",
    b"NaN",
    b"0.0000001",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\0\0\0\0",
    b"\xc3\xa9",
    b"\n",
    b",",
    b"=",
    b"\"",
    b"[",
    b"{",
    b"(((",
    b" ",
];

/// Changes the bytes in a few places. Often replaces a whole number.
pub fn mutate(bytes: &mut Vec<u8>, d: &mut Dice) {
    for _ in 0..1 + d.below(4) {
        let at = d.below(bytes.len() + 1);
        let room = bytes.len() - at;
        match d.below(8) {
            0 if room > 0 => bytes[at] = d.byte(),
            1 if room > 0 => bytes[at] ^= 1 << d.below(8),
            2 if d.once_in(3) => bytes.truncate(at),
            3 => {
                let n = d.below(room.min(40) + 1);
                bytes.drain(at..at + n);
            }
            4 => {
                let n = d.below(room.min(120) + 1);
                let copy = bytes[at..at + n].to_vec();
                let to = d.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            5 => {
                let word = d.of(&WORDS);
                bytes.splice(at..at, word.iter().copied());
            }
            _ => {
                let digit = |b: &u8| b.is_ascii_digit();
                let Some(from) = bytes[at..].iter().position(digit).map(|i| at + i) else {
                    continue;
                };
                let to = bytes[from..].iter().position(|b| !digit(b));
                let to = to.map_or(bytes.len(), |n| from + n);
                let word = d.of(&WORDS);
                bytes.splice(from..to, word.iter().copied());
            }
        }
    }
}

/// Writes a mutated input and returns the command to run on it.
pub fn args(seeds: &[Seed], d: &mut Dice, round: u64) -> Vec<String> {
    let seed = &seeds[d.below(seeds.len())];
    let mut bytes = seed.bytes.clone();
    if round > 0 {
        mutate(&mut bytes, d);
    }
    let file = scratch(&format!("input.{}", seed.suffix));
    std::fs::write(&file, &bytes).expect("scratch file");
    let scheduler = d.of(&[
        "noop",
        "deadline",
        "cfq",
        "none",
        "mq-deadline",
        "kyber",
        "bfq",
    ]);
    let device = d.of(&[
        "hdd:hitachi-7k200",
        "ssd:sata3-256-2011",
        "constant:depth=4,service_us=100",
        "raid1:members=2,of=hdd:hitachi-7k200",
    ]);
    let text = |words: &[&str]| -> Vec<String> { words.iter().map(|w| (*w).to_owned()).collect() };
    match seed.reads {
        Reads::Replay => {
            let mode = d.of(&["timed", "scaled:1/3", "depth:4", "closed"]);
            let fit = d.of(&["strict", "wrap"]);
            let mut all = text(&["replay", &file, "-s", scheduler, "-d", device]);
            all.extend(text(&["--mode", mode, "--fit", fit, "--threads", "1"]));
            if d.once_in(3) {
                all.push("--json".to_owned());
            }
            all
        }
        Reads::Explain => text(&["explain", &file]),
        Reads::Fio => text(&[
            "run",
            &file,
            "-s",
            scheduler,
            "-d",
            device,
            "--machine",
            "limit=2",
            "--threads",
            "1",
        ]),
        Reads::Preset if d.once_in(3) => text(&["devices", &file]),
        Reads::Preset => {
            let trace = scratch("preset.csv");
            std::fs::write(&trace, crate::specs::TRACE).expect("scratch file");
            text(&[
                "replay",
                &trace,
                "-s",
                scheduler,
                "-d",
                &file,
                "--threads",
                "1",
            ])
        }
    }
}
