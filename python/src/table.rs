//! Tables in Arrow format. They are passed through the Arrow C stream interface without a copy.

use crate::fault;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator,
    StringArray, UInt64Array,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::{PyImportError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// A table in Arrow format. Every library with the Arrow PyCapsule interface can read it without a
/// copy, for example `polars.DataFrame(t)`, `pyarrow.table(t)`, or DuckDB by the variable's name in
/// SQL.
#[pyclass(frozen, module = "seekwell")]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

fn broken(e: &ArrowError) -> PyErr {
    PyRuntimeError::new_err(e.to_string())
}

impl Table {
    /// Creates a table from batches with the same schema.
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Table { schema, batches }
    }

    /// Creates a table from columns.
    pub fn of(columns: Vec<(&str, ArrayRef)>) -> PyResult<Self> {
        let field = |(name, values): &(&str, ArrayRef)| {
            Field::new(*name, values.data_type().clone(), values.is_nullable())
        };
        let schema: SchemaRef =
            Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let arrays = columns.into_iter().map(|c| c.1).collect();
        let batch = RecordBatch::try_new(schema.clone(), arrays).map_err(|e| broken(&e))?;
        Ok(Table::new(schema, vec![batch]))
    }

    fn to(slf: &Bound<'_, Self>, module: &str, function: &str) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let module = py.import(module).map_err(|e| {
            let what = format!(
                "`{module}` is not installed ({e}): pip install {module}. The table speaks the \
                 Arrow PyCapsule interface: any library that takes __arrow_c_stream__ reads it"
            );
            PyImportError::new_err(what)
        })?;
        Ok(module.call_method1(function, (slf,))?.unbind())
    }
}

#[pymethods]
impl Table {
    /// Returns the table as an Arrow C stream in a capsule. The types are fixed, so
    /// `requested_schema` is ignored, as the interface permits.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Returns the schema of the table as an Arrow C schema in a capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(|e| broken(&e))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Names of the columns, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema
            .fields()
            .iter()
            .map(|f| f.name().clone())
            .collect()
    }

    /// Number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    fn __repr__(&self) -> String {
        let (rows, names) = (self.num_rows(), self.column_names());
        format!("<seekwell.Table: {rows} rows; {}>", names.join(", "))
    }

    /// Returns one column as a list of Python values. This needs no other library.
    ///
    /// Raises:
    ///     KeyError: No column has this name.
    fn column(&self, py: Python<'_>, name: &str) -> PyResult<Vec<Py<PyAny>>> {
        let Ok(at) = self.schema.index_of(name) else {
            let known = self.column_names().join(", ");
            let what = format!("no column \"{name}\"; there are {known}");
            return Err(pyo3::exceptions::PyKeyError::new_err(what));
        };
        let mut out = Vec::with_capacity(self.num_rows());
        for batch in &self.batches {
            values(py, batch.column(at), &mut out)?;
        }
        Ok(out)
    }

    /// Returns a `polars.DataFrame` that uses the same memory.
    fn to_polars(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Table::to(slf, "polars", "DataFrame")
    }

    /// Returns a `pyarrow.Table` that uses the same memory.
    fn to_arrow(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Table::to(slf, "pyarrow", "table")
    }

    /// Returns a `pandas.DataFrame`, converted by pyarrow. pandas stores most columns in its own
    /// format.
    fn to_pandas(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        slf.py().import("pandas").map_err(|e| {
            PyImportError::new_err(format!(
                "`pandas` is not installed ({e}): pip install pandas pyarrow"
            ))
        })?;
        Table::to(slf, "pyarrow", "table")?.call_method0(slf.py(), "to_pandas")
    }

    /// Returns the columns as NumPy arrays by name. Numeric columns without missing values are not
    /// copied.
    fn to_numpy(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let table = Table::to(slf, "pyarrow", "table")?;
        let arrays = pyo3::types::PyDict::new(py);
        for name in slf.get().column_names() {
            let column = table.call_method1(py, "column", (&name,))?;
            let whole = column.call_method0(py, "combine_chunks")?;
            let kwargs = pyo3::types::PyDict::new(py);
            kwargs.set_item("zero_copy_only", false)?;
            arrays.set_item(&name, whole.call_method(py, "to_numpy", (), Some(&kwargs))?)?;
        }
        Ok(arrays.into_any().unbind())
    }
}

fn values(py: Python<'_>, column: &ArrayRef, out: &mut Vec<Py<PyAny>>) -> PyResult<()> {
    macro_rules! each {
        ($array:ty) => {{
            let column = column.as_any().downcast_ref::<$array>();
            let column = column.ok_or_else(|| fault::run("a column of another type"))?;
            for value in column.iter() {
                out.push(value.into_pyobject(py)?.into_any().unbind());
            }
        }};
    }
    match column.data_type() {
        DataType::Utf8 => each!(StringArray),
        DataType::Int64 => each!(Int64Array),
        DataType::UInt64 => each!(UInt64Array),
        DataType::Float64 => each!(Float64Array),
        DataType::Boolean => each!(BooleanArray),
        other => return Err(fault::run(&format!("a column of {other}"))),
    }
    Ok(())
}

/// Returns a column of integers.
pub fn ints(values: impl IntoIterator<Item = u64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(
        values.into_iter().map(|v| v as i64),
    ))
}
/// Returns a column of integers, in which values may be missing.
pub fn some_ints(values: impl IntoIterator<Item = Option<u64>>) -> ArrayRef {
    Arc::new(Int64Array::from_iter(
        values.into_iter().map(|v| v.map(|v| v as i64)),
    ))
}
/// Returns a column of floating-point numbers.
pub fn floats(values: impl IntoIterator<Item = f64>) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(values))
}
/// Returns a column of floating-point numbers, in which values may be missing.
pub fn some_floats(values: impl IntoIterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(Float64Array::from_iter(values))
}
/// Returns a column of texts.
pub fn texts<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}
/// Returns a column of texts, in which values may be missing.
pub fn some_texts<S: AsRef<str>>(values: impl IntoIterator<Item = Option<S>>) -> ArrayRef {
    Arc::new(StringArray::from_iter(values))
}
