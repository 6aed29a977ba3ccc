//! Reads files with cases: JSON lines or CSV, uncompressed or with zstd or gzip. The parser is
//! strict. An error contains the file and the line.

use super::format::{Case, CaseError, CsvOptions};
use flate2::read::MultiGzDecoder;
use seekwell_core::{Flags, Op};
use seekwell_files::{ReadError, open_stream};
use seekwell_trace::formats::csv::{Columns, Row};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

fn line_error(file: &str, line: usize, why: impl ToString) -> CaseError {
    CaseError::Line {
        file: file.to_owned(),
        line,
        why: why.to_string(),
    }
}

/// Returns the name of a file for messages.
fn name_of(path: &Path) -> String {
    match path == Path::new("-") {
        true => seekwell_trace::intake::STDIN_NAME.to_owned(),
        false => path.display().to_string(),
    }
}

/// Opens a file, or standard input for `-`. Detects zstd and gzip from the first bytes.
pub fn open_plain(path: &Path) -> Result<Box<dyn BufRead>, CaseError> {
    let io = |source| CaseError::Io {
        file: name_of(path),
        source,
    };
    let raw: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        let file = open_stream(path).map_err(|e| match e {
            ReadError::Io(e) => io(e),
            e => io(std::io::Error::other(format!(
                "{e}; name a file with cases, or a pipe"
            ))),
        })?;
        Box::new(file)
    };
    let mut file = BufReader::new(raw);
    let head = file.fill_buf().map_err(io)?;
    let plain: Box<dyn Read> = if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        Box::new(zstd::Decoder::with_buffer(file).map_err(io)?)
    } else if head.starts_with(&[0x1f, 0x8b]) {
        Box::new(MultiGzDecoder::new(file))
    } else {
        return Ok(Box::new(file));
    };
    Ok(Box::new(BufReader::new(plain)))
}

/// Largest length of a line in bytes. A case with about 200,000 bios fits.
const LINE_MAX: u64 = 16 << 20;
/// Largest uncompressed size of a file in bytes. The cases need about eight times as much memory.
const TEXT_MAX: u64 = 32 << 20;

/// Reads all cases of a file, or of standard input for `-`. The file contains JSON lines or a CSV
/// of bios. The CSV has the columns of [`seekwell_trace::formats::csv`]. Without a header line, its
/// columns are `t_us,id,pid,op,sector,n`.
pub fn read_cases(path: &Path, csv: &CsvOptions) -> Result<Vec<Case>, CaseError> {
    let file = name_of(path);
    let mut input = open_plain(path)?;
    let (mut cases, mut rows, mut line) = (Vec::new(), Vec::new(), 0);
    let mut columns: Option<Columns> = None;
    let (mut text, mut bytes) = (String::new(), 0);
    loop {
        text.clear();
        line += 1;
        let n = (&mut input)
            .take(LINE_MAX)
            .read_line(&mut text)
            .map_err(|e| broken(&file, line, e))?;
        if n == 0 {
            break;
        }
        if n as u64 == LINE_MAX {
            return Err(line_error(
                &file,
                line,
                "longer than 16 MiB: not a case file",
            ));
        }
        bytes += n as u64;
        if bytes > TEXT_MAX {
            let why = "more than 32 MiB of cases: split the file";
            return Err(line_error(&file, line, why));
        }
        let t = text.trim();
        if t.is_empty() || t.starts_with('#') {
            continue;
        }
        if t.starts_with('{') {
            let mut case: Case = serde_json::from_str(t).map_err(|e| line_error(&file, line, e))?;
            case.write_out().map_err(|e| line_error(&file, line, e))?;
            case.validate().map_err(|e| line_error(&file, line, e))?;
            cases.push(case);
        } else if let (true, None, Ok(c)) =
            (rows.is_empty(), &columns, Columns::of_header(t.as_bytes()))
        {
            columns = Some(c);
        } else if let Some(columns) = columns.as_ref().filter(|c| !c.is_positional()) {
            let n = rows.len() as u64 + 1;
            let row = columns
                .row(t.as_bytes())
                .map_err(|e| line_error(&file, line, e))?;
            rows.push(bio_row(row, n));
        } else {
            match csv_row(t) {
                Some(row) => rows.push(row),
                None => {
                    let why = "neither a JSON case nor a CSV of bios (`t_us,id,pid,op,sector,n`, \
                               or with the columns of `seekwell formats csv`); `seekwell convert \
                               FILE` converts a trace of another format";
                    return Err(line_error(&file, line, why));
                }
            }
        }
    }
    if !rows.is_empty() {
        let case = csv_case(&file, rows, csv);
        case.validate()?;
        cases.push(case);
    }
    if cases.is_empty() {
        return Err(line_error(&file, line, "the file contains no case"));
    }
    Ok(cases)
}

/// Describes a read error. For corrupt or incomplete data, the error contains the line.
fn broken(file: &str, line: usize, source: std::io::Error) -> CaseError {
    use std::io::ErrorKind;
    match source.kind() {
        ErrorKind::InvalidData => line_error(file, line, "not text, so not a case file"),
        ErrorKind::UnexpectedEof => {
            let why = "the compressed file is incomplete: fetch it again";
            line_error(file, line, why)
        }
        ErrorKind::Other => {
            let why = format!("the compressed data are broken ({source}): fetch the file again");
            line_error(file, line, why)
        }
        _ => CaseError::Io {
            file: file.to_owned(),
            source,
        },
    }
}

/// Converts a record to a row of a case.
fn bio_row(row: Row, n: u64) -> Vec<Value> {
    let r = row.record;
    let letter = letter_of(r.op, r.flags);
    vec![
        Value::from(r.t_ns as f64 / 1000.0),
        Value::from(row.id.unwrap_or(n)),
        Value::from(r.task.map_or(0, |t| t.0)),
        Value::from(letter),
        Value::from(r.sector.0),
        Value::from(if letter == "F" { 0 } else { r.sectors.0 }),
    ]
}

/// Returns the letter that is closest to an operation and its flags.
fn letter_of(op: Op, flags: Flags) -> &'static str {
    let has = |f: Flags| flags.contains(f);
    match op {
        Op::Flush => "F",
        Op::Discard => "D",
        Op::WriteZeroes => "Z",
        Op::Write if has(Flags::SYNC | Flags::NOIDLE) => "N",
        Op::Write if has(Flags::SYNC) => "S",
        Op::Write => "W",
        Op::Read if has(Flags::META | Flags::PRIO) => "P",
        Op::Read if has(Flags::META) => "M",
        Op::Read if has(Flags::RAHEAD) => "A",
        Op::Read => "R",
    }
}

fn csv_row(line: &str) -> Option<Vec<Value>> {
    let cell = |c: &str| {
        let c = c.trim();
        c.parse::<u64>()
            .map(Value::from)
            .or_else(|_| c.parse::<f64>().map(Value::from))
            .unwrap_or_else(|_| Value::from(c))
    };
    let row: Vec<Value> = line.split(',').map(cell).collect();
    let control = row.get(1).is_some_and(Value::is_string);
    (row.len() == 6 || (control && row.len() >= 3)).then_some(row)
}

fn csv_case(file: &str, input: Vec<Vec<Value>>, csv: &CsvOptions) -> Case {
    let text = serde_json::json!({ "case": file, "elevator": csv.elevator, "hz": csv.hz });
    let mut case: Case = serde_json::from_value(text).unwrap_or_else(|e| {
        unreachable!("a case of name, elevator and hz is complete: {e}");
    });
    case.device = csv.device.clone();
    case.tunables = csv
        .tunables
        .iter()
        .map(|(k, v)| (k.clone(), Value::from(&**v)))
        .collect();
    case.input = input;
    case
}
