//! Writes the Parquet files, one table row after another. Equal runs give identical bytes.
//!
//! The number of table rows in a batch and in a row group does not depend on how the runs were
//! made. The files contain no data about the clock, the host or the version of seekwell.

use super::RESULTS_VERSION;
use super::columns::{Column, Kind, RUN, Table};
use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use std::io::Write;
use std::sync::Arc;

const BATCH_ROWS: usize = 8192;
const GROUP_ROWS: usize = 1 << 16;
/// A batch is also written when it contains this many bytes of text, because records can be long.
const BATCH_BYTES: usize = 1 << 18;
/// A row group is written when it has this size in bytes. Until then it is kept in memory.
const GROUP_BYTES: usize = 2 << 20;
/// Size of a page of a column before compression, in bytes. Memory holds one page of every column.
const PAGE_BYTES: usize = 1 << 17;
/// Number of table rows in a page. Until the page is full, every column also needs eight bytes of
/// memory per table row.
const PAGE_ROWS: usize = 1 << 12;
/// Size of the dictionary of a column, in bytes. Its hash table takes several times as much memory.
const DICTIONARY_BYTES: usize = 1 << 15;

/// Key of the version in the metadata of a file.
pub(super) const VERSION_KEY: &str = "seekwell.results";
/// Key of the table's file name in the metadata of a file.
pub(super) const TABLE_KEY: &str = "seekwell.table";

/// A value in a table row.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item<'a> {
    Null,
    Text(&'a str),
    Int(u64),
    Unsigned(u64),
    Float(f64),
    Bool(bool),
}

impl Item<'_> {
    pub fn int(of: Option<u64>) -> Self {
        of.map_or(Item::Null, Item::Int)
    }
    pub fn float(of: Option<f64>) -> Self {
        of.map_or(Item::Null, Item::Float)
    }
}

enum Building {
    Text(StringBuilder),
    Int(Int64Builder),
    Unsigned(UInt64Builder),
    Float(Float64Builder),
    Bool(BooleanBuilder),
}

impl Building {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Text => Building::Text(StringBuilder::new()),
            Kind::Int => Building::Int(Int64Builder::new()),
            Kind::Unsigned => Building::Unsigned(UInt64Builder::new()),
            Kind::Float => Building::Float(Float64Builder::new()),
            Kind::Bool => Building::Bool(BooleanBuilder::new()),
        }
    }
    fn push(&mut self, item: Item<'_>) {
        match (self, item) {
            (Building::Text(b), Item::Text(v)) => b.append_value(v),
            (Building::Text(b), _) => b.append_null(),
            // The limit is 292 years in ns, or 9 * 10^18 bytes. No run has larger values.
            (Building::Int(b), Item::Int(v)) => {
                b.append_value(i64::try_from(v).unwrap_or(i64::MAX));
            }
            (Building::Int(b), _) => b.append_null(),
            (Building::Unsigned(b), Item::Unsigned(v)) => b.append_value(v),
            (Building::Unsigned(b), _) => b.append_null(),
            (Building::Float(b), Item::Float(v)) => b.append_value(v),
            (Building::Float(b), _) => b.append_null(),
            (Building::Bool(b), Item::Bool(v)) => b.append_value(v),
            (Building::Bool(b), _) => b.append_null(),
        }
    }
    fn take(&mut self) -> ArrayRef {
        match self {
            Building::Text(b) => Arc::new(b.finish()),
            Building::Int(b) => Arc::new(b.finish()),
            Building::Unsigned(b) => Arc::new(b.finish()),
            Building::Float(b) => Arc::new(b.finish()),
            Building::Bool(b) => Arc::new(b.finish()),
        }
    }
}

/// A Parquet file that is being written.
pub(super) struct Rows<W: Write + Send> {
    writer: ArrowWriter<W>,
    schema: Arc<Schema>,
    building: Vec<Building>,
    rows: usize,
    bytes: usize,
}

fn field(c: &Column) -> Field {
    Field::new(c.name, c.kind.arrow(), c.nullable)
}

impl<W: Write + Send> Rows<W> {
    /// Starts a file. `more` contains the names of additional text columns, which come last.
    pub fn new(to: W, table: &Table, more: &[String]) -> Result<Self, ParquetError> {
        let fixed = RUN.iter().chain(table.columns);
        let mut building: Vec<Building> = fixed.clone().map(|c| Building::new(c.kind)).collect();
        let mut fields: Vec<Field> = fixed.map(field).collect();
        for name in more {
            building.push(Building::new(Kind::Text));
            fields.push(Field::new(name, Kind::Text.arrow(), true));
        }
        let schema = Arc::new(Schema::new(fields));
        let said = vec![
            KeyValue::new(VERSION_KEY.to_owned(), RESULTS_VERSION.to_string()),
            KeyValue::new(TABLE_KEY.to_owned(), table.file.to_owned()),
        ];
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_dictionary_page_size_limit(DICTIONARY_BYTES)
            .set_data_page_size_limit(PAGE_BYTES)
            .set_data_page_row_count_limit(PAGE_ROWS)
            .set_key_value_metadata(Some(said))
            .build();
        let options = ArrowWriterOptions::new()
            .with_properties(properties)
            .with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(to, schema.clone(), options)?;
        Ok(Rows {
            writer,
            schema,
            building,
            rows: 0,
            bytes: 0,
        })
    }
    /// Adds a table row. Values that are missing at its end become null.
    pub fn push(&mut self, row: &[Item<'_>]) -> Result<(), ParquetError> {
        let items = row.iter().copied().chain(std::iter::repeat(Item::Null));
        for (column, item) in self.building.iter_mut().zip(items) {
            if let Item::Text(t) = item {
                self.bytes += t.len();
            }
            column.push(item);
        }
        self.rows += 1;
        if self.rows == BATCH_ROWS || self.bytes >= BATCH_BYTES {
            self.batch()?;
        }
        Ok(())
    }
    fn batch(&mut self) -> Result<(), ParquetError> {
        if self.rows == 0 {
            return Ok(());
        }
        let columns = self.building.iter_mut().map(Building::take).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), columns)?;
        self.writer.write(&batch)?;
        (self.rows, self.bytes) = (0, 0);
        // With long texts, a row group becomes large before it has all its table rows.
        if self.writer.in_progress_size() >= GROUP_BYTES {
            self.writer.flush()?;
        }
        Ok(())
    }
    /// Writes the remaining table rows and returns the output.
    pub fn finish(mut self) -> Result<W, ParquetError> {
        self.batch()?;
        self.writer.into_inner()
    }
}
