//! Parquet files of another writer: tables made by pyarrow 26.0.1, one per compression codec.

use crate::common::{error_of, read};
use seekwell_core::Op;
use seekwell_trace::{ErrorKind, ReadOptions};

const PLAIN: &[u8] = include_bytes!("data/parquet/none.parquet");
/// Snappy is the default of pandas, DuckDB and Spark.
const SNAPPY: &[u8] = include_bytes!("data/parquet/snappy.parquet");
/// This file has data pages of version 2.
const GZIP: &[u8] = include_bytes!("data/parquet/gzip.parquet");
const LZ4: &[u8] = include_bytes!("data/parquet/lz4.parquet");
const BROTLI: &[u8] = include_bytes!("data/parquet/brotli.parquet");

#[test]
fn columns_are_read_with_any_supported_compression() {
    let plain = read(PLAIN);
    // There is a request every 125.5 us. Every third request is a write. The addresses begin at
    // sector 4096.
    assert_eq!(plain.len(), 64);
    for (i, r) in (0..).zip(&plain) {
        let op = if i % 3 == 0 { Op::Write } else { Op::Read };
        let sector = 4096 + i * 8 * (1 + i % 5);
        assert_eq!((r.t_ns, r.op), (i * 125_500, op), "{i}");
        assert_eq!(
            (r.sector.0, u64::from(r.sectors.0)),
            (sector, 8 + 8 * (i % 4)),
            "{i}"
        );
    }
    for (name, packed) in [("snappy", SNAPPY), ("gzip", GZIP), ("lz4", LZ4)] {
        assert_eq!(read(packed), plain, "{name}");
        assert!(packed.len() < PLAIN.len(), "{name} is packed");
    }
}

#[test]
fn unsupported_compression_is_rejected_with_a_remedy() {
    let e = error_of(BROTLI, None, &ReadOptions::default());
    assert_eq!(e.kind(), ErrorKind::Broken);
    let said = e.to_string();
    assert!(said.contains("compressed with Brotli"), "{said}");
    let remedy = "compress it with Snappy, gzip, LZ4 or zstd, or not at all";
    assert!(said.contains(remedy) && !said.contains("cut off"), "{said}");
}

#[test]
fn negative_column_size_is_rejected() {
    // A fuzzer found this case. The table of contents stores the size of the first column as a
    // number whose last bit is the sign.
    let contents = u32::from_le_bytes(SNAPPY[SNAPPY.len() - 8..][..4].try_into().unwrap()) as usize;
    let table = SNAPPY.len() - 8 - contents;
    let mut refused = 0;
    for at in table..SNAPPY.len() - 8 {
        let mut bytes = SNAPPY.to_vec();
        bytes[at] ^= 1;
        let why = crate::common::reader(&bytes, None, &ReadOptions::default()).err();
        let why = why.map_or(String::new(), |e| e.to_string());
        assert!(!why.contains("is inconsistent"), "byte {at}: {why}");
        refused += usize::from(why.contains("is said to be -"));
    }
    assert!(refused > 0);
}

#[test]
fn damaged_file_is_rejected_or_gives_no_more_records() {
    for packed in [PLAIN, SNAPPY, GZIP, LZ4] {
        let mut refused = 0;
        for at in (4..packed.len()).step_by(5) {
            let mut bytes = packed.to_vec();
            bytes[at] ^= 0x55;
            let Ok(records) = crate::common::reader(&bytes, None, &ReadOptions::default()) else {
                refused += 1;
                continue;
            };
            let all: Vec<_> = records.collect();
            let told = all.iter().filter(|r| r.is_err()).count();
            assert!(
                told <= 1 && all.len() - told <= 64,
                "byte {at}: {}",
                all.len()
            );
            refused += told;
        }
        assert!(
            refused > packed.len() / 50,
            "{refused} of {}",
            packed.len() / 5
        );
    }
}
