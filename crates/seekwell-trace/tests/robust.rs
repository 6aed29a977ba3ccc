//! Any file must give records or one clear message, in bounded memory.

use crate::common::{error_of, gzip, read, reader, written, zstd};
use seekwell_core::{Flags, Op, TaskId};
use seekwell_trace::reader::{NOTE_BACKWARDS, NOTE_NO_DATA};
use seekwell_trace::{
    ErrorKind, Limits, Place, ReadOptions, Record, TimeUnit, WriteOptions, find_format, formats,
    from_reader, open,
};
use std::io::{Cursor, Read};

fn some_records(n: u64) -> Vec<Record> {
    (0..n)
        .map(|i| Record {
            task: Some(TaskId(5)),
            flags: Flags::SYNC,
            complete_ns: Some(i * 1_000_000 + 400_000),
            ..Record::new(i * 1_000_000, Op::Write, i * 8, 8)
        })
        .collect()
}

fn default() -> ReadOptions {
    ReadOptions::default()
}

fn tolerant() -> ReadOptions {
    ReadOptions {
        allow_truncated: true,
        ..default()
    }
}

#[test]
fn empty_files_are_rejected() {
    for bytes in [vec![], zstd(b""), gzip(b"")] {
        for format in std::iter::once(None).chain(formats().iter().map(Some)) {
            let e = error_of(&bytes, format, &default());
            assert_eq!(e.kind(), ErrorKind::Empty, "{e}");
        }
    }
}

#[test]
fn unrecognised_file_is_rejected_with_the_list_of_formats() {
    let e = error_of(b"once upon a time\n", None, &default());
    assert_eq!(e.kind(), ErrorKind::UnknownFormat);
    let text = e.to_string();
    assert!(
        text.starts_with("mem: ") && text.contains("once upon"),
        "{text}"
    );
    assert!(formats().iter().all(|f| text.contains(f.name)), "{text}");
    let e = find_format("blktrase").unwrap_err();
    assert!(e.to_string().contains("blktrace"), "{e}");
}

#[test]
fn every_format_rejects_files_of_every_other() {
    for f in formats() {
        let bytes = written(f, &some_records(20));
        for other in formats().iter().filter(|o| o.name != f.name) {
            let e = error_of(&bytes, Some(other), &default());
            assert!(!matches!(e.kind(), ErrorKind::Io | ErrorKind::Limit), "{e}");
        }
    }
}

#[test]
fn unsupported_compressors_are_named() {
    let e = error_of(b"\xfd7zXZ\0\0\x04", None, &default());
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(e.to_string().contains("xz -d"), "{e}");
}

/// A trace is truncated at every byte. All whole records are read. The truncation is an error, or a
/// warning if the options allow it.
#[test]
fn trace_cut_at_any_byte_gives_whole_records_then_an_error() {
    let records = some_records(3);
    for f in formats() {
        let bytes = written(f, &records);
        let whole = read(&bytes);
        for cut in 1..bytes.len() {
            let part = &bytes[..cut];
            for options in [default(), tolerant()] {
                let Ok(mut r) = reader(part, Some(f), &options) else {
                    continue;
                };
                let (mut got, mut failed) = (Vec::new(), false);
                for result in r.by_ref() {
                    match result {
                        Ok(record) => got.push(record),
                        Err(e) => {
                            assert!(!options.allow_truncated, "{e}");
                            assert!(matches!(e.kind(), ErrorKind::Truncated | ErrorKind::Broken));
                            failed = true;
                        }
                    }
                }
                // The last line of a text may be cut inside a number and remain valid.
                let n = got.len();
                assert!(n <= whole.len());
                for (g, w) in got.iter().zip(&whole).take(n.saturating_sub(1)) {
                    assert_eq!((g.t_ns, g.sector), (w.t_ns, w.sector), "{} {cut}", f.name);
                }
                if f.name == "vscsi" {
                    assert_eq!(
                        (n, failed),
                        (cut / 32, cut % 32 > 0 && !options.allow_truncated)
                    );
                    assert_eq!(
                        !r.warnings().is_empty(),
                        cut % 32 > 0 && options.allow_truncated
                    );
                }
            }
        }
    }
}

#[test]
fn truncated_compressed_file_is_reported() {
    let mut records = some_records(50_000);
    for (i, r) in records.iter_mut().enumerate() {
        r.sector.0 = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    }
    let plain = written(find_format("vscsi").unwrap(), &records);
    for packed in [zstd(&plain), gzip(&plain)] {
        let half = &packed[..packed.len() / 2];
        let e = error_of(half, None, &default());
        assert_eq!(e.kind(), ErrorKind::Truncated, "{e}");
        assert!(matches!(e.place(), Place::File | Place::Record(_)));
        let mut r = reader(half, None, &tolerant()).unwrap();
        let n = r.by_ref().map(Result::unwrap).count();
        assert!((5_000..45_000).contains(&n), "{n}");
        assert!(r.warnings()[0].contains("cut off"), "{:?}", r.warnings());
    }
}

#[test]
fn damaged_compressed_file_is_reported() {
    let plain = written(find_format("vscsi").unwrap(), &some_records(5000));
    for mut packed in [zstd(&plain), gzip(&plain)] {
        let n = packed.len();
        packed[n / 2..n / 2 + 8].copy_from_slice(b"xxxxxxxx");
        let e = error_of(&packed, None, &default());
        // Without a checksum, which is the default of zstd, only the output shows the damage.
        use ErrorKind::{Broken, Io, Range, Truncated};
        assert!(matches!(e.kind(), Io | Broken | Truncated | Range), "{e:?}");
    }
}

/// The file contains 300 MiB of one repeated vscsi record, compressed to a few KiB.
#[test]
fn decompression_bomb_is_rejected() {
    let one = written(find_format("vscsi").unwrap(), &some_records(1));
    let endless = Repeat {
        block: one.repeat(32 << 10),
        at: 0,
        left: 300 << 20,
    };
    let bomb = zstd::encode_all(endless, 3).unwrap();
    assert!(bomb.len() < 100_000, "{} bytes", bomb.len());
    let mut r = reader(&bomb, None, &default()).unwrap();
    let (mut n, mut error) = (0u64, None);
    for result in r.by_ref() {
        match result {
            Ok(_) => n += 1,
            Err(e) => error = Some(e),
        }
    }
    let e = error.expect("it must be refused");
    assert_eq!(e.kind(), ErrorKind::Bomb, "{e}");
    assert!(
        n < 5 << 20,
        "{n} records, of 9.8 million, before it was noticed"
    );
    // A user who trusts the file can raise the limit.
    let trusting = ReadOptions {
        limits: Limits {
            ratio_max: u64::MAX,
            records_max: 3 << 20,
            ..Limits::default()
        },
        ..default()
    };
    let e = error_of(&bomb, None, &trusting);
    assert_eq!(e.kind(), ErrorKind::Limit, "{e}");
    assert!(e.to_string().contains("3145728 records"), "{e}");
}

/// Reads one record again and again, up to a number of bytes.
struct Repeat {
    block: Vec<u8>,
    at: usize,
    left: usize,
}
impl Read for Repeat {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = buf.len().min(self.block.len() - 32).min(self.left);
        buf[..n].copy_from_slice(&self.block[self.at..self.at + n]);
        self.at = (self.at + n) % 32;
        self.left -= n;
        Ok(n)
    }
}

#[test]
fn endless_line_is_rejected() {
    let head = b"  8,0    0        1     0.000000000    42  Q  WS 100 + 8 [a]\n";
    let bytes = [&head[..], &b"x".repeat(1 << 20)].concat();
    let e = error_of(&bytes, None, &default());
    assert_eq!(
        (e.kind(), e.place()),
        (ErrorKind::Limit, Place::Line(2)),
        "{e}"
    );
    // The longest line that is allowed can be read, with and without a line end.
    let name = "n".repeat((64 << 10) - head.len() + 2);
    let line = String::from_utf8_lossy(head).replace("[a]\n", &format!("[{name}]"));
    assert_eq!(line.len(), 64 << 10);
    assert_eq!(read(line.as_bytes()).len(), 1);
    assert_eq!(read(format!("{line}\n{line}\n").as_bytes()).len(), 2);
}

#[test]
fn broken_lines_name_line_field_and_remedy() {
    let good = "  8,0    0        1     0.000000000    42  Q  WS 100 + 8 [a]\n";
    for (from, to, field) in [
        ("8,0 ", "8;0 ", "device"),
        ("    0        1", "   -1        1", "CPU"),
        ("       1     0", "       x     0", "sequence"),
        ("0.000000000", "0,000000000", "time"),
        ("   42 ", "   4z ", "pid"),
        ("  Q ", " 1! ", "action"),
        ("100 ", "1e2 ", "sector"),
        ("+ 8", "+ eight", "number of sectors"),
        ("+ 8", "- 8", "+ sectors"),
    ] {
        let bad = good.replace(from, to);
        assert_ne!(bad, good);
        let e = error_of(format!("{good}{bad}").as_bytes(), None, &default());
        let text = e.to_string();
        assert_eq!(
            (e.kind(), e.place()),
            (ErrorKind::Broken, Place::Line(2)),
            "{text}"
        );
        assert!(
            text.contains(field) && text.contains("maj,min cpu seq"),
            "{field}: {text}"
        );
    }
    let log = |line: &str| format!("fio version 3 iolog\n0 f add\n1 f read 0 512\n{line}\n");
    for (line, says) in [
        ("x f read 0 512", "time"),
        ("2 f reed 0 512", "action: \"reed\""),
        ("2 f wait 0 0", "action: \"wait\""),
        ("2 f read -1 512", "offset"),
        ("2 f read 0", "length: \"\""),
        ("2 my file read 0 512", "action: \"file\""),
        ("2 f read 0 512 1", "end of the line"),
        ("2 f read 18446744073709551615 512", "beyond any device"),
        ("2 f read 0 18446744073709551615", "beyond any device"),
        ("8999999999999999 f read 0 512", ""),
        ("18446744073709551 f read 0 512", "at most 285 years"),
        ("99999999999999999 f read 0 512", "584 years"),
    ] {
        if says.is_empty() {
            assert_eq!(read(log(line).as_bytes()).len(), 2);
            continue;
        }
        let e = error_of(log(line).as_bytes(), None, &default());
        assert!(e.to_string().contains(says), "{e}");
        assert_eq!(e.place(), Place::Line(4), "{e}");
    }
    let e = error_of(b"op,sector,sectors\nR,1,8\nX,1,8\n", None, &default());
    assert!(
        e.to_string().contains("line 3: cannot read op: \"X\""),
        "{e}"
    );
    let e = error_of(b"fio version 4 iolog\n", None, &default());
    assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}");
}

#[test]
fn values_out_of_range_are_rejected() {
    let far = |sector: u64| {
        let r = [
            Record::new(0, Op::Read, 0, 8),
            Record::new(0, Op::Read, sector, 8),
        ];
        written(find_format("vscsi").unwrap(), &r)
    };
    assert_eq!(read(&far((1 << 54) - 8)).len(), 2);
    for sector in [(1 << 54) - 7, u64::MAX] {
        let e = error_of(&far(sector), None, &default());
        assert_eq!(
            (e.kind(), e.place()),
            (ErrorKind::Range, Place::Record(2)),
            "{e}"
        );
    }
    let mut late = far(0);
    late[32 + 24..].fill(0xff);
    let e = error_of(&late, None, &default());
    assert_eq!(
        (e.kind(), e.place()),
        (ErrorKind::Range, Place::Record(2)),
        "{e}"
    );
}

#[test]
fn requests_of_length_zero_are_skipped_and_counted() {
    let log = "fio version 2 iolog\nf add\nf read 0 0\nf write 0 512\nf sync 0 0\nf trim 5 0\n";
    let mut r = reader(log.as_bytes(), None, &default()).unwrap();
    let ops: Vec<_> = r.by_ref().map(|r| r.unwrap().op).collect();
    assert_eq!(ops, [Op::Write, Op::Flush]);
    assert_eq!(r.counted(NOTE_NO_DATA), 2);
    assert!(
        r.warnings().iter().any(|w| w.contains("first at line 3")),
        "{:?}",
        r.warnings()
    );
}

#[test]
fn unordered_times_are_raised_and_counted() {
    let csv = "t_ns,op,sector,sectors,t_complete\n50,R,0,8,60\n40,R,8,8,45\n90,R,16,8,80\n";
    let mut r = reader(csv.as_bytes(), None, &default()).unwrap();
    let got: Vec<_> = r.by_ref().map(Result::unwrap).collect();
    let times: Vec<_> = got.iter().map(|r| (r.t_ns, r.complete_ns)).collect();
    assert_eq!(times, [(0, Some(10)), (0, Some(0)), (40, Some(40))]);
    assert_eq!(r.counted(NOTE_BACKWARDS), 1);
    assert!(
        r.warnings().iter().any(|w| w.contains("step back")),
        "{:?}",
        r.warnings()
    );
}

#[test]
fn foreign_scsi_commands_are_skipped() {
    let mut bytes = written(find_format("vscsi").unwrap(), &some_records(3));
    bytes[32 + 12] = 0x12;
    let mut r = reader(&bytes, None, &default()).unwrap();
    assert_eq!(r.by_ref().map(Result::unwrap).count(), 2);
    assert!(
        r.warnings()[0].contains("1 SCSI commands"),
        "{:?}",
        r.warnings()
    );
    bytes[32 + 15] = 9;
    let e = error_of(&bytes, find_format("vscsi").ok(), &default());
    assert!(
        matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::Broken),
        "{e}"
    );
}

#[test]
fn vscsi_version_2_has_completions_only_if_the_unit_is_given() {
    let mut bytes = Vec::new();
    for i in 0..3u64 {
        bytes.extend_from_slice(&0x28u16.to_le_bytes());
        bytes.extend_from_slice(&0x200u16.to_le_bytes());
        for word in [i as u32, 4096, 1] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        for word in [100 + i, 5000 + i * 10, 250] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
    }
    let got = read(&bytes);
    assert_eq!(
        (got[2].t_ns, got[2].sector.0, got[2].sectors.0),
        (20_000, 102, 8)
    );
    assert!(got.iter().all(|r| r.complete_ns.is_none()));
    let options = ReadOptions {
        vscsi_response: Some(TimeUnit::Us),
        ..default()
    };
    let got: Vec<_> = reader(&bytes, None, &options)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert!(got.iter().all(|r| r.latency_ns() == Some(250_000)));
}

const TWO_FILES: &str = "fio version 2 iolog\n/a add\n/b add\n/a open\n/b open\n/a read 0 4096\n\
                         /b read 0 4096\n/a write 1044480 8192\nwaiter wait 500 0\n\
                         /b write 5000 512\n/a close\n";

#[test]
fn several_iolog_files_are_placed_one_after_another() {
    let folder = crate::common::Folder::new();
    for packed in [TWO_FILES.as_bytes().to_vec(), zstd(TWO_FILES.as_bytes())] {
        let path = folder.file("two.iolog", &packed);
        let mut r = open(&path, None, &default()).unwrap();
        let got: Vec<_> = r.by_ref().map(Result::unwrap).collect();
        // The file /a ends at 1,052,672 bytes, so it takes two MiB. The file /b begins after them.
        let at: Vec<_> = got
            .iter()
            .map(|r| (r.t_ns, r.sector.0, r.sectors.0))
            .collect();
        assert_eq!(
            at,
            [(0, 0, 8), (0, 4096, 8), (0, 2040, 16), (500_000, 4105, 2)]
        );
        let text = r.warnings().join("\n");
        assert!(
            text.contains("\"/b\" lies at sectors 4096 to 6144"),
            "{text}"
        );
        assert!(text.contains("1 ranges not aligned"), "{text}");
    }
}

#[test]
fn several_iolog_files_from_a_pipe_get_equal_ranges() {
    let options = ReadOptions {
        iolog_span_sectors: 10_000,
        ..default()
    };
    let mut r = reader(TWO_FILES.as_bytes(), None, &options).unwrap();
    let at: Vec<_> = r.by_ref().map(|r| r.unwrap().sector.0).collect();
    assert_eq!(at, [0, 10_000, 2040, 10_009]);
    assert!(
        r.warnings()[0].contains("each gets an address range of 10000 sectors"),
        "{:?}",
        r.warnings()
    );
    let small = ReadOptions {
        iolog_span_sectors: 2048,
        ..default()
    };
    let e = error_of(TWO_FILES.as_bytes(), None, &small);
    assert_eq!(
        (e.kind(), e.place()),
        (ErrorKind::Range, Place::Line(8)),
        "{e}"
    );
}

#[test]
fn single_iolog_file_is_read_in_one_pass() {
    let log = "fio version 3 iolog\n7 f add\n10 f open\n20 f read 512 512\n30 f datasync 0 0\n";
    let mut r = reader(log.as_bytes(), None, &default()).unwrap();
    let got: Vec<_> = r.by_ref().map(Result::unwrap).collect();
    assert_eq!(
        got,
        [
            Record::new(0, Op::Read, 1, 1),
            Record::new(10_000, Op::Flush, 0, 0)
        ]
    );
    assert_eq!(r.warnings(), Vec::<String>::new());
    let ms = ReadOptions {
        iolog_unit: TimeUnit::Ms,
        ..default()
    };
    assert_eq!(
        reader(log.as_bytes(), None, &ms)
            .unwrap()
            .nth(1)
            .unwrap()
            .unwrap()
            .t_ns,
        10_000_000
    );
}

#[test]
fn number_of_file_names_is_bounded() {
    let mut log = "fio version 2 iolog\n".to_string();
    for i in 0..100 {
        log += &format!("file{i} add\n");
    }
    let options = ReadOptions {
        limits: Limits {
            names_max: 50,
            ..Limits::default()
        },
        ..default()
    };
    let e = error_of(log.as_bytes(), None, &options);
    assert_eq!(
        (e.kind(), e.place()),
        (ErrorKind::Limit, Place::Line(52)),
        "{e}"
    );
}

#[test]
fn writers_reject_values_that_the_format_cannot_express() {
    let huge = Record::new(0, Op::Discard, 0, u32::MAX);
    for name in ["vscsi", "blktrace"] {
        let create = find_format(name).unwrap().create.unwrap();
        let mut w = create(Box::new(std::io::sink()), &WriteOptions::default()).unwrap();
        let e = w.write(&huge).unwrap_err();
        assert_eq!(
            (e.kind(), e.place()),
            (ErrorKind::Range, Place::Record(1)),
            "{e}"
        );
    }
    // fio also stores lengths in 32 bits, but a range may be written in pieces.
    let pieces = read(&written(find_format("fio-iolog-v3").unwrap(), &[huge]));
    assert_eq!(
        pieces.iter().map(|r| u64::from(r.sectors.0)).sum::<u64>(),
        u64::from(u32::MAX)
    );
    let bad = WriteOptions {
        iolog_file: "my file".to_string(),
        ..WriteOptions::default()
    };
    let create = find_format("fio-iolog-v2").unwrap().create.unwrap();
    let e = create(Box::new(std::io::sink()), &bad).err().unwrap();
    assert!(e.to_string().contains("\"my file\""), "{e}");
    let e = seekwell_trace::create("/no/such/folder/x", formats().first().unwrap(), &bad).err();
    assert_eq!(e.unwrap().kind(), ErrorKind::Io);
}

/// If a reader fails, the error is reported once, after the records before it.
#[test]
fn read_error_is_reported_once_after_the_good_records() {
    struct Fails(Cursor<Vec<u8>>);
    impl Read for Fails {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            match self.0.read(buf)? {
                0 => Err(std::io::Error::other("bad sector")),
                n => Ok(n),
            }
        }
    }
    let bytes = written(find_format("vscsi").unwrap(), &some_records(20_000));
    let mut r = from_reader("disk", Fails(Cursor::new(bytes)), None, &default()).unwrap();
    let (mut good, mut errors) = (0, Vec::new());
    for result in r.by_ref() {
        match result {
            Ok(_) => good += 1,
            Err(e) => errors.push(e),
        }
    }
    assert_eq!((good, errors.len()), (20_000, 1));
    assert!(
        errors[0].to_string().contains("bad sector"),
        "{}",
        errors[0]
    );
}

/// The headers claim windows or contents of gigabytes. No memory may be allocated for them.
#[test]
fn compressed_headers_with_huge_sizes_are_rejected() {
    let ten_gb = 10_000_000_000u64.to_le_bytes();
    let window = [&b"\x28\xb5\x2f\xfd\x00\xa8"[..], b"\x09\x00\x00x"].concat();
    let content = [&b"\x28\xb5\x2f\xfd\xe0"[..], &ten_gb, b"\x09\x00\x00x"].concat();
    for bytes in [window, content] {
        let e = error_of(&bytes, None, &default());
        assert_eq!(e.kind(), ErrorKind::Io, "{e}");
        assert!(e.to_string().contains("zstd -d --long"), "{e}");
    }
}
