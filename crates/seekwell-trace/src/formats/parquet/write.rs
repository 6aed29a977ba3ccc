//! The writer of Parquet. It writes batches of rows. The same records give the same bytes.

use super::NAME;
use crate::error::{ErrorKind, Place, TraceError};
use crate::formats::csv::{COLUMNS, flag_names, op_letter};
use crate::options::WriteOptions;
use crate::record::Record;
use crate::writer::Writer;
use arrow_array::builder::{Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

/// Number of rows per batch.
const BATCH_ROWS: usize = 8192;
/// Number of rows per row group. A row group is kept in memory until it is complete.
const GROUP_ROWS: usize = 1 << 17;

/// A column that is being built.
enum Building {
    Number(Int64Builder),
    Text(StringBuilder),
}

impl Building {
    fn for_column(name: &str) -> Self {
        match name {
            "op" | "flags" | "ioprio" | "device" | NAME => Building::Text(StringBuilder::new()),
            _ => Building::Number(Int64Builder::new()),
        }
    }
    fn number(&mut self, value: Option<u64>) {
        if let Building::Number(b) = self {
            // The numbers of a record are less than 2^63.
            b.append_option(value.and_then(|v| i64::try_from(v).ok()));
        }
    }
    fn text(&mut self, value: Option<&str>) {
        if let Building::Text(b) = self {
            b.append_option(value);
        }
    }
    fn take(&mut self) -> ArrayRef {
        match self {
            Building::Number(b) => Arc::new(b.finish()),
            Building::Text(b) => Arc::new(b.finish()),
        }
    }
}

/// Writes all columns.
pub(super) struct ParquetWriter {
    writer: Option<ArrowWriter<Box<dyn Write + Send>>>,
    schema: Arc<Schema>,
    building: Vec<Building>,
    names: BTreeMap<u32, String>,
    file: String,
    rows: usize,
    records: u64,
}

impl ParquetWriter {
    /// Makes a writer that writes to `out`.
    pub fn new(out: Box<dyn Write + Send>, options: &WriteOptions) -> Result<Self, TraceError> {
        let columns = COLUMNS.iter().copied().chain([NAME]);
        let building: Vec<Building> = columns.clone().map(Building::for_column).collect();
        let field = |(name, b): (&str, &Building)| {
            let kind = match b {
                Building::Number(_) => DataType::Int64,
                Building::Text(_) => DataType::Utf8,
            };
            Field::new(name, kind, true)
        };
        let fields: Vec<Field> = columns.zip(&building).map(field).collect();
        let schema = Arc::new(Schema::new(fields));
        // The file contains no clock time or program version.
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by("seekwell".to_owned())
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .build();
        let writer = ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties))
            .map_err(|e| failed(&options.name, Place::File, &e))?;
        Ok(ParquetWriter {
            writer: Some(writer),
            schema,
            building,
            names: options.tasks.clone(),
            file: options.name.clone(),
            rows: 0,
            records: 0,
        })
    }

    fn drain(&mut self) -> Result<(), TraceError> {
        self.rows = 0;
        let arrays = self.building.iter_mut().map(Building::take).collect();
        let place = Place::Record(self.records);
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays)
            .map_err(|e| failed(&self.file, place, &e.into()))?;
        match &mut self.writer {
            Some(writer) => writer
                .write(&batch)
                .map_err(|e| failed(&self.file, place, &e)),
            None => Err(self.over()),
        }
    }

    fn over(&self) -> TraceError {
        let place = Place::Record(self.records);
        TraceError::new(
            ErrorKind::Io,
            &self.file,
            place,
            "already finished",
            "write before that",
        )
    }
}

fn failed(file: &str, place: Place, e: &ParquetError) -> TraceError {
    let what = format!("cannot write: {e}");
    TraceError::new(ErrorKind::Io, file, place, what, "is the disk full?")
}

impl Writer for ParquetWriter {
    fn write(&mut self, r: &Record) -> Result<(), TraceError> {
        let device = format!("{}:{}", r.device >> 20, r.device & 0xf_ffff);
        let op = op_letter(r.op).to_string();
        let flags = flag_names(r.flags);
        let ioprio = r.ioprio.map(|p| format!("{}:{}", p.class as u64, p.level));
        let name = r.task.and_then(|t| self.names.get(&t.0));
        for (column, b) in COLUMNS
            .iter()
            .copied()
            .chain([NAME])
            .zip(&mut self.building)
        {
            match column {
                "t_ns" => b.number(Some(r.t_ns)),
                "op" => b.text(Some(&op)),
                "flags" => b.text(Some(&flags).filter(|f| !f.is_empty()).map(String::as_str)),
                "sector" => b.number(Some(r.sector.0)),
                "sectors" => b.number(Some(u64::from(r.sectors.0))),
                "pid" => b.number(r.task.map(|t| u64::from(t.0))),
                "cpu" => b.number(r.cpu.map(u64::from)),
                "ioprio" => b.text(ioprio.as_deref()),
                "cgroup" => b.number(Some(u64::from(r.cgroup.0))),
                "device" => b.text(Some(&device)),
                "t_insert" => b.number(r.insert_ns),
                "t_issue" => b.number(r.issue_ns),
                "t_complete" => b.number(r.complete_ns),
                "error" => b.number(Some(u64::from(r.error))),
                _ => b.text(name.map(String::as_str)),
            }
        }
        self.records += 1;
        self.rows += 1;
        match self.rows < BATCH_ROWS {
            true => Ok(()),
            false => self.drain(),
        }
    }
    fn name(&mut self, pid: u32, name: &str) {
        self.names.insert(pid, name.to_owned());
    }
    fn finish(&mut self) -> Result<(), TraceError> {
        if self.rows > 0 {
            self.drain()?;
        }
        let place = Place::Record(self.records);
        let writer = self.writer.take().ok_or_else(|| self.over())?;
        let mut out = writer
            .into_inner()
            .map_err(|e| failed(&self.file, place, &e))?;
        out.flush().map_err(|e| {
            let what = format!("cannot write: {e}");
            TraceError::new(ErrorKind::Io, &self.file, place, what, "is the disk full?")
        })
    }
}
