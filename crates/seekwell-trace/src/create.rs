//! Starts to write a trace in any format.

use crate::error::{ErrorKind, Place, TraceError};
use crate::info::{Create, Format};
use crate::options::WriteOptions;
use crate::writer::{Writer, create_file};
use std::io::Write;
use std::path::Path;

/// Creates a trace file in a format. The file extensions `.zst` and `.gz` select compression.
pub fn create(
    path: impl AsRef<Path>,
    format: Format,
    options: &WriteOptions,
) -> Result<Box<dyn Writer>, TraceError> {
    let path = path.as_ref();
    let options = WriteOptions {
        name: path.display().to_string(),
        ..options.clone()
    };
    // Check the options before the file is created.
    starter(format, &options)?;
    write_to(create_file(path)?, format, &options)
}

/// Starts to write a trace in a format to `out`. Use it for output that must appear as it is
/// written, for example a log. The options contain the name of the output for messages.
pub fn write_to(
    out: Box<dyn Write + Send>,
    format: Format,
    options: &WriteOptions,
) -> Result<Box<dyn Writer>, TraceError> {
    starter(format, options)?(out, options)
}

fn starter(format: Format, options: &WriteOptions) -> Result<Create, TraceError> {
    format.create.ok_or_else(|| {
        TraceError::new(
            ErrorKind::Unsupported,
            &options.name,
            Place::File,
            format!("the format {} can be read but not written", format.name),
            "choose another format",
        )
    })
}
