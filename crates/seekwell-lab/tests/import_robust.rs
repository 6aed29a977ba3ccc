//! Imports of broken, hostile and mutated files give an error with a message, and never a panic.

use super::fuzz_import::fuzz_one;
use crate::import_formats::{folder, labels, of_text, read};
use rand::{Rng, RngCore};
use seekwell_core::rng;
use seekwell_lab::import::formats;

// Broken and hostile files.

#[test]
fn errors_name_file_place_and_remedy() {
    let xml = |body: &str| format!("<PhoronixTestSuite>{body}</PhoronixTestSuite>");
    let deep = "<a>".repeat(40);
    for (text, said) in [
        ("", "x: is empty"),
        ("hello", "matches none of the formats"),
        (
            "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]><PhoronixTestSuite>&b;\
             </PhoronixTestSuite>",
            "x, line 1: has a document type",
        ),
        (
            &xml("<System><Identifier>&lol;</Identifier></System>"),
            "x, System 1/Identifier: &lol;",
        ),
        (&xml(&deep), "elements inside each other"),
        (&xml("<Result><Title>"), "x, line 1: is not well-formed"),
        (
            "<PhoronixTestSuite><Result>",
            "ends inside <Result>: the file was truncated",
        ),
        (
            "<?xml version=\"1.0\" encoding=\"UTF-16\"?><PhoronixTestSuite></PhoronixTestSuite>",
            "declared to be UTF-16",
        ),
        (&xml(""), "holds no figure"),
        (
            &xml("<Result><Data><Entry><Value>1</Value></Entry></Data></Result>"),
            "Result 1/Data/Entry 1: has no Identifier",
        ),
        (
            "{\"fio version\": \"fio-3\", \"jobs\": [",
            "the file was truncated",
        ),
        (
            "{\"fio version\": \"fio-3\"}",
            "has neither `jobs` nor `client_stats`",
        ),
        (
            "{\"fio version\": \"fio-3\", \"jobs\": [{\"jobname\": \"j\", \"read\": \
             {\"total_ios\": 5, \"iops\": -1}}]}",
            "x, jobs 1 (j): read: \"iops\" is negative",
        ),
        (
            "scheduler,workload,value\nbfq,db,40.5\nbfq,db,fast\n",
            "x, line 3: value: \"fast\"",
        ),
        (
            "scheduler,workload,value\nbfq,db,1e400\n",
            "x, line 2: value: infinite",
        ),
        (
            "scheduler;workload;value\nbfq;db;40,79\n",
            "write 40.79 or 4079",
        ),
        (
            "workload,value\ndb,1\n",
            "x, line 1: has no column `scheduler`",
        ),
        (
            "scheduler,workload,value,value\n",
            "two columns for `value`",
        ),
        (
            "scheduler,workload,run,value\nbfq,db,1,2\nbfq,db,1,3\n",
            "line 3: run 1 of db occurs twice",
        ),
        (
            "scheduler,workload,value,se,n\nbfq,db,1,-2,3\n",
            "errors are not negative",
        ),
        (
            "scheduler,workload,value,n\nbfq,db,1,3\nbfq,db,2,3\n",
            "two figures for value of db",
        ),
        (
            "scheduler,workload,value\nbfq,a,b,1\n",
            "x, line 2: has 4 fields",
        ),
        (
            "transaction type: x\nscaling factor: 1\n",
            "a report without `tps =`",
        ),
        (
            "sysbench 1.0.20\nThreads started!\n",
            "sysbench was stopped before its end",
        ),
        (
            "0 1 3019 0 1795368100 510573\n0 2 x 0 1795368100 511233\n",
            "x, line 2: field 3",
        ),
        (
            "{\"results\": [{\"command\": \"a\", \"mean\": 1.0}]}",
            "has no `times`",
        ),
    ] {
        let got = of_text(text).expect_err(said);
        assert!(got.contains(said), "{said}\n  got: {got}");
    }
}

#[test]
fn control_characters_in_imported_names_are_removed() {
    let text = "scheduler,workload,value\n\"b\u{1b}[31mfq\",\"d\u{7}b\",1\n\"b\u{1b}[31mfq\",\"d\u{7}b\",2\n";
    let r = of_text(text).expect("imported");
    assert!(!labels(&r)[0].contains('\u{1b}') && !r.cells[0].workload.contains('\u{7}'));
}

/// Each format has a sample file that it recognises as its own.
#[test]
fn every_format_recognises_its_sample_file() {
    for (name, file) in SAMPLES {
        assert_eq!(read(&[file]).about.source, *name, "{file}");
    }
    for f in formats() {
        let own = SAMPLES.iter().any(|s| s.0 == f.name);
        // The page is rebuilt in the test of published figures.
        assert!(own || f.name == "openbenchmarking-text", "{}", f.name);
    }
}

const SAMPLES: &[(&str, &str)] = &[
    ("pts-xml", "pts/composite.xml"),
    ("openbenchmarking-json", "pts/result.json"),
    ("openbenchmarking-csv", "pts/result.csv"),
    ("openbenchmarking-raw-csv", "pts/raw.csv"),
    ("fio", "fio/two-jobs.json"),
    ("fio-text", "fio/text-none.txt"),
    ("fio-text", "fio/fio-2.txt"),
    ("fio-text", "fio/same-text.txt"),
    ("fio-terse", "fio/same-terse.txt"),
    ("fio-terse", "fio/terse-5.txt"),
    ("diskmark", "small/kdiskmark-bfq.txt"),
    ("diskmark", "small/crystaldiskmark.txt"),
    ("ioping", "small/ioping.txt"),
    ("hdparm", "small/hdparm.txt"),
    ("dd", "small/dd.txt"),
    ("pgbench", "pgbench/pgbench-1.txt"),
    ("pgbench-log", "pgbench/rate.799"),
    ("pgbench-log", "pgbench/aggregate.715"),
    ("sysbench", "sysbench/sysbench-oltp.txt"),
    ("hyperfine", "hyperfine/hyperfine.json"),
    ("csv", "published/androbench-moto-g.csv"),
];

/// A saved page.
const PAGE: &str = "Some tests\n- A: CFQ: CFQ / rw\n- A: Noop: NOOP / rw\nfs-mark build A CFQ Noop \
    36.00 5.5 35.03 5.6\nOpenBenchmarking.orgFiles/s, More Is Better\nfs-mark\nA\nSE +/- 0.69, N = \
    3\nSE +/- 0.73, N = 6\n36.00 35.03\nOpenBenchmarking.orgSeconds, Fewer Is Better\nbuild\nA\n\
    SE +/- 0.1, N = 3\nSE +/- 0.1, N = 3\n5.5 5.6\n1. gcc\n";

#[test]
fn saved_result_page_is_imported() {
    let r = of_text(PAGE).expect("imported");
    assert_eq!((r.cells.len(), r.summaries.len()), (2, 4));
    assert_eq!(r.summaries[1].n, Some(6));
    assert!(!r.cells[1].primary.higher_is_better);
}

const WORDS: &[&[u8]] = &[
    b"<",
    b">",
    b"&",
    b"]]>",
    b"<!DOCTYPE x>",
    b"<![CDATA[",
    b"\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b";",
    b"\n",
    b"nan",
    b"inf",
    b"-1",
    b"1e308",
    b"1e-308",
    b"99999999999999999999",
    b"18446744073709551615",
    b"\xff\xfe",
    b"\0",
    b"SE +/- ",
    b", N = ",
    b"0",
    b"HIB",
    b"skipped",
];

fn mutate(bytes: &mut Vec<u8>, rng: &mut impl RngCore) {
    for _ in 0..rng.random_range(1..5) {
        let at = rng.random_range(0..=bytes.len());
        let room = bytes.len() - at;
        match rng.random_range(0..6) {
            0 if room > 0 => bytes[at] = rng.random(),
            1 => bytes.truncate(at),
            2 => {
                let n = rng.random_range(0..=room.min(64));
                bytes.drain(at..at + n);
            }
            3 => {
                let n = rng.random_range(0..=room.min(300));
                let copy = bytes[at..at + n].to_vec();
                let to = rng.random_range(0..=bytes.len());
                bytes.splice(to..to, copy);
            }
            _ => {
                let word = WORDS[rng.random_range(0..WORDS.len())];
                bytes.splice(at..at, word.iter().copied());
            }
        }
    }
}

/// Thousands of mutations of each sample, read with its own format and with detection. They must
/// give valid results or an error, never a panic.
#[test]
fn mutated_files_never_panic() {
    let mut seeds: Vec<(&str, Vec<u8>)> = SAMPLES
        .iter()
        .map(|(name, file)| (*name, std::fs::read(folder().join(file)).expect("a sample")))
        .collect();
    seeds.push(("openbenchmarking-text", PAGE.as_bytes().to_vec()));
    let mut rng = rng::stream(1, "import mutations");
    for (name, seed) in &seeds {
        fuzz_one(None, seed);
        // Large samples cost more, so they get fewer rounds.
        let rounds = (3_000_000 / seed.len().max(500)).clamp(300, 3_000);
        for round in 0..rounds {
            let mut bytes = seed.clone();
            mutate(&mut bytes, &mut rng);
            fuzz_one(Some(name), &bytes);
            if round % 4 == 0 {
                fuzz_one(None, &bytes);
            }
        }
    }
}

/// Arbitrary text in every format.
#[test]
fn arbitrary_text_never_panics() {
    let mut rng = rng::stream(2, "import texts");
    for f in formats() {
        for _ in 0..300 {
            let mut bytes = Vec::new();
            for _ in 0..rng.random_range(0..40) {
                bytes.extend_from_slice(WORDS[rng.random_range(0..WORDS.len())]);
            }
            bytes.retain(|b| *b != 0 && b.is_ascii());
            fuzz_one(Some(f.name), &bytes);
        }
    }
}
