//! One JSON document with the version of its format and the complete results.

use crate::results::{RESULTS_VERSION, Results};
use serde::Serialize;
use std::io::{self, Write};

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    #[serde(flatten)]
    results: &'a Results,
}

pub(super) fn write(results: &Results, _date: Option<&str>, to: &mut dyn Write) -> io::Result<()> {
    let document = Document {
        schema: RESULTS_VERSION,
        results,
    };
    serde_json::to_writer_pretty(&mut *to, &document)?;
    to.write_all(b"\n")
}
