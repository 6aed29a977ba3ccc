//! A short, deterministic run of the fuzz entry points: valid traces of every format, mutated.
//!
//! A failure prints the round, which fails again when repeated. The long run is in `fuzz/`.

use super::fuzz::fuzz_one;
use crate::common::{gzip, written, zstd};
use rand::{Rng, RngCore};
use seekwell_core::{Flags, Op, Sector, Sectors, TaskId, rng};
use seekwell_trace::{Format, Record, formats};

fn seed_records() -> Vec<Record> {
    let ops = [Op::Read, Op::Write, Op::Flush, Op::Discard];
    (0..24u64)
        .map(|i| {
            let t = i * 70_000;
            Record {
                task: Some(TaskId(1 + i as u32 % 3)),
                cpu: Some(i as u16 % 2),
                flags: Flags::from_bits_truncate(i as u16 * 7),
                device: 8 << 20 | (i as u32 % 2) << 4,
                insert_ns: Some(t + 1000),
                issue_ns: Some(t + 2000),
                complete_ns: (i % 5 != 0).then_some(t + 300_000),
                sector: Sector(i * 5 % 64),
                sectors: Sectors(1 + i as u32 % 20),
                ..Record::new(t, ops[i as usize % 4], 0, 0)
            }
        })
        .collect()
}

fn mutate(bytes: &mut Vec<u8>, rng: &mut impl RngCore) {
    const WORDS: [&[u8]; 13] = [
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\0\0\0\0\0\0\0\0",
        b"18446744073709551615",
        b"-1",
        b"\n",
        b" ",
        b",",
        b"[",
        b"(",
        b"FWFSM",
        b": block_rq_issue: ",
        b"\x07tae",
        b"eat\x07",
    ];
    for _ in 0..rng.random_range(1..6) {
        let at = rng.random_range(0..=bytes.len());
        let room = bytes.len() - at;
        match rng.random_range(0..7) {
            0 if room > 0 => bytes[at] = rng.random(),
            1 if room > 0 => bytes[at] ^= 1 << rng.random_range(0..8),
            2 => bytes.truncate(at),
            3 => {
                let n = rng.random_range(0..=room.min(64));
                bytes.drain(at..at + n);
            }
            4 => {
                let n = rng.random_range(0..=room.min(200));
                let copy = bytes[at..at + n].to_vec();
                let to = rng.random_range(0..=bytes.len());
                bytes.splice(to..to, copy);
            }
            5 => {
                let word = WORDS[rng.random_range(0..WORDS.len())];
                bytes.splice(at..at, word.iter().copied());
            }
            _ => {
                let word = WORDS[rng.random_range(0..WORDS.len())];
                let end = (at + word.len()).min(bytes.len());
                bytes[at..end].copy_from_slice(&word[..end - at]);
            }
        }
    }
}

fn rounds(format: Format, n: u32) {
    let seed = written(format, &seed_records());
    let mut rng = rng::stream(1, format.name);
    for round in 0..n {
        let mut bytes = seed.clone();
        mutate(&mut bytes, &mut rng);
        match round % 8 {
            0 => bytes = zstd(&bytes),
            1 => bytes = gzip(&bytes),
            2 => {
                bytes = zstd(&bytes);
                mutate(&mut bytes, &mut rng);
            }
            3 => {
                bytes = gzip(&bytes);
                mutate(&mut bytes, &mut rng);
            }
            _ => {}
        }
        let named = rng.random_bool(0.7).then_some(format);
        let result = std::panic::catch_unwind(|| fuzz_one(named, &bytes));
        assert!(result.is_ok(), "{}: round {round} of seed 1", format.name);
    }
}

#[test]
fn mutated_traces_of_every_format_are_read_or_rejected() {
    for f in formats() {
        rounds(f, 400);
    }
}

#[test]
fn random_bytes_are_read_or_rejected_in_every_format() {
    let mut rng = rng::stream(1, "noise");
    for _ in 0..100 {
        let mut bytes = vec![0; rng.random_range(0..2000)];
        rng.fill_bytes(&mut bytes);
        fuzz_one(None, &bytes);
        for f in formats() {
            fuzz_one(Some(f), &bytes);
        }
    }
}
