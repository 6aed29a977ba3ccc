//! The reader of Parquet. It converts each row to a line of CSV, so that names, units and checks
//! are the same.

use super::{MAGIC, NAME, bounds};
use crate::error::{ErrorKind, Place, TraceError, shown};
use crate::formats::csv::Columns;
use crate::input::Input;
use crate::notes::Notes;
use crate::options::ReadOptions;
use crate::record::Record;
use crate::source::{NOTE_UNALIGNED, Source};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Compression;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

const BATCH_ROWS: usize = 8192;
/// Maximum unpacked size of a column in a row group, in bytes.
const CHUNK_MAX: i64 = 1 << 31;
/// Number of bytes that are copied at a time.
const PIECE: usize = 32 << 10;

pub(super) struct ParquetReader {
    input: Input,
    batches: ParquetRecordBatchReader,
    batch: Option<RecordBatch>,
    /// For each field of the CSV line, the index of the column in the batch.
    order: Vec<usize>,
    columns: Columns,
    /// Index of the column of process names.
    named: Option<usize>,
    pid: Option<usize>,
    names: BTreeMap<u32, String>,
    names_max: usize,
    row: usize,
    records: u64,
    line: Vec<u8>,
    device: Option<u32>,
}

/// The reason why a file is rejected, and the remedy.
struct Refused {
    what: String,
    remedy: &'static str,
}

impl From<String> for Refused {
    fn from(what: String) -> Self {
        Refused {
            what,
            remedy: "fetch or write the file again; a truncated file contains no readable data",
        }
    }
}

/// Runs `read`, and converts a panic of the library to an error. A malicious file can cause a
/// panic.
fn guarded<T, E: From<String>>(read: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    seekwell_files::guarded(read)
        .unwrap_or_else(|| Err("the file is inconsistent".to_owned().into()))
}

/// Returns the file itself if it is not compressed. Otherwise returns a temporary file with the
/// data, because the metadata are at the end.
fn whole(input: &mut Input) -> Result<File, TraceError> {
    if let Some(mut file) = input.plain() {
        let mut head = [0; MAGIC.len()];
        if file.read_exact(&mut head).is_ok() && head == MAGIC {
            return Ok(file);
        }
    }
    let failed = |input: &Input, e: std::io::Error| {
        let what = format!("cannot be kept in a temporary file: {e}");
        let remedy = "free some space, or name another directory by TMPDIR";
        input.error(ErrorKind::Io, Place::File, what, remedy)
    };
    let mut copy = tempfile::tempfile().map_err(|e| failed(input, e))?;
    loop {
        let piece = input.peek(PIECE, Place::File)?.to_vec();
        if piece.is_empty() {
            break;
        }
        copy.write_all(&piece).map_err(|e| failed(input, e))?;
        input.consume(piece.len());
    }
    copy.seek(SeekFrom::Start(0))
        .map_err(|e| failed(input, e))?;
    Ok(copy)
}

impl ParquetReader {
    pub fn new(mut input: Input, options: &ReadOptions) -> Result<Self, TraceError> {
        let file = whole(&mut input)?;
        let opened = guarded(|| open(file, options.limits.records_max));
        let (batches, found) = opened.map_err(|no| broken(&input, Place::File, no))?;
        let known: Vec<(usize, &String)> =
            found.iter().enumerate().filter(|f| f.1 != NAME).collect();
        let header: Vec<&str> = known.iter().map(|k| k.1.as_str()).collect();
        let columns = Columns::of_header(header.join(",").as_bytes())
            .map_err(|(what, remedy)| input.error(ErrorKind::Broken, Place::File, what, remedy))?;
        let at = |name: &str| found.iter().position(|f| f == name);
        Ok(ParquetReader {
            order: known.iter().map(|k| k.0).collect(),
            columns,
            named: at(NAME),
            pid: at("pid"),
            input,
            batches,
            batch: None,
            names: BTreeMap::new(),
            names_max: options.limits.names_max,
            row: 0,
            records: 0,
            line: Vec::new(),
            device: options.device,
        })
    }

    /// Converts the next row to a line of CSV. Returns false at the end.
    fn fill(&mut self) -> Result<bool, String> {
        while self.batch.as_ref().is_none_or(|b| self.row >= b.num_rows()) {
            let batches = &mut self.batches;
            let next = guarded(|| batches.next().transpose().map_err(|e| e.to_string()))?;
            match next {
                Some(batch) => (self.batch, self.row) = (Some(batch), 0),
                None => return Ok(false),
            }
        }
        let Some(batch) = &self.batch else {
            return Ok(false);
        };
        self.line.clear();
        for (i, at) in self.order.iter().enumerate() {
            if i > 0 {
                self.line.push(b',');
            }
            let column = batch.column(*at);
            put(&mut self.line, column, self.row)
                .map_err(|why| format!("column {}: {why}", batch.schema().field(*at).name()))?;
        }
        if let (Some(named), Some(pid)) = (self.named, self.pid)
            && self.names.len() < self.names_max
        {
            let (mut name, mut number) = (Vec::new(), Vec::new());
            let both = put(&mut name, batch.column(named), self.row)
                .and_then(|()| put(&mut number, batch.column(pid), self.row));
            let number = std::str::from_utf8(&number)
                .ok()
                .and_then(|n| n.parse().ok());
            if let (Ok(()), Some(pid), false) = (both, number, name.is_empty()) {
                let name = String::from_utf8_lossy(&name).into_owned();
                self.names.entry(pid).or_insert(name);
            }
        }
        self.row += 1;
        Ok(true)
    }
}

fn broken(input: &Input, place: Place, no: Refused) -> TraceError {
    let what = format!("cannot be read as Parquet: {}", no.what);
    input.error(ErrorKind::Broken, place, what, no.remedy)
}

/// Opens the file with the columns whose names are known. Also returns these names.
fn open(file: File, rows_max: u64) -> Result<(ParquetRecordBatchReader, Vec<String>), Refused> {
    // Use only the types of Parquet itself, and ignore the Arrow schema of the writer.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    bounds::contents(&file)?;
    let pages = file.try_clone().map_err(|e| e.to_string())?;
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options)
        .map_err(|e| e.to_string())?;
    let metadata = builder.metadata().clone();
    let rows = metadata.file_metadata().num_rows();
    if u64::try_from(rows).map_or(true, |n| n > rows_max) {
        return Err(format!("{rows} rows are said to be in it").into());
    }
    let chunks = || metadata.row_groups().iter().flat_map(|g| g.columns());
    for c in chunks() {
        if let Some(name) = unknown_codec(c.compression()) {
            return Err(Refused {
                what: format!("its columns are compressed with {name}"),
                remedy: "compress it with Snappy, gzip, LZ4 or zstd, or not at all",
            });
        }
        let size = c.uncompressed_size();
        if !(0..=CHUNK_MAX).contains(&size) {
            return Err(format!("a column is said to have {size} bytes").into());
        }
        // The library panics for these values.
        let begin = c.dictionary_page_offset().unwrap_or(c.data_page_offset());
        let packed = c.compressed_size();
        if begin < 0 || packed < 0 {
            return Err(format!("a column is said to be {packed} bytes from {begin}").into());
        }
    }
    bounds::pages(&pages, chunks().map(|c| c.byte_range()))?;
    let mut roots = Vec::new();
    for (at, f) in builder.schema().fields().iter().enumerate() {
        if f.name() == NAME || Columns::is_known(f.name()) {
            roots.push(at);
        }
    }
    let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
    let builder = builder.with_projection(mask).with_batch_size(BATCH_ROWS);
    let reader = builder.build().map_err(|e| e.to_string())?;
    let schema = arrow_array::RecordBatchReader::schema(&reader);
    let names = schema.fields().iter().map(|f| f.name().clone()).collect();
    Ok((reader, names))
}

/// Returns the name of a codec that is not supported.
fn unknown_codec(c: Compression) -> Option<&'static str> {
    match c {
        Compression::BROTLI(_) => Some("Brotli"),
        Compression::LZO => Some("LZO"),
        _ => None,
    }
}

/// Appends a value as in CSV. Appends nothing for a null.
fn put(line: &mut Vec<u8>, column: &ArrayRef, row: usize) -> Result<(), String> {
    if column.is_null(row) {
        return Ok(());
    }
    macro_rules! number {
        ($of:ty) => {
            write!(line, "{}", column.as_primitive::<$of>().value(row))
        };
    }
    let written = match column.data_type() {
        DataType::Int64 => number!(Int64Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int8 => number!(Int8Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::Float64 => number!(Float64Type),
        DataType::Float32 => number!(Float32Type),
        DataType::Utf8 => {
            let text = column.as_string::<i32>().value(row);
            if text.contains([',', '\n', '\r']) {
                return Err(format!("cannot read {}", shown(text.as_bytes())));
            }
            line.extend_from_slice(text.as_bytes());
            Ok(())
        }
        other => return Err(format!("{other} is neither a number nor a text")),
    };
    written.map_err(|e| e.to_string())
}

impl Source for ParquetReader {
    fn next(&mut self, notes: &mut Notes) -> Result<Option<Record>, TraceError> {
        loop {
            self.records += 1;
            let place = Place::Record(self.records);
            match self.fill() {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(what) => return Err(broken(&self.input, place, what.into())),
            }
            let row = self.columns.row(&self.line).map_err(|what| {
                let remedy = "see `seekwell formats csv` for the columns";
                self.input.error(ErrorKind::Broken, place, what, remedy)
            })?;
            notes.device(row.record.device);
            if self.device.is_some_and(|d| d != row.record.device) {
                continue;
            }
            if row.unaligned {
                notes.count(NOTE_UNALIGNED, place);
            }
            return Ok(Some(row.record));
        }
    }
    fn place(&self) -> (&str, Place) {
        (self.input.name(), Place::Record(self.records))
    }
    fn tasks(&self) -> Option<&BTreeMap<u32, String>> {
        Some(&self.names)
    }
}
