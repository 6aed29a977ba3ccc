//! Reads JSON from untrusted files. The size is limited, and a missing member does not cause a
//! panic.

use super::{ImportError, Input, Place};
use serde_json::Value;

/// Largest size of a JSON document in bytes. The parsed tree needs several times as much memory.
const BYTES_MAX: usize = 64 << 20;

/// Returns the first JSON document of a text, and the text after the document. Skips the lines
/// before the first brace, which are warnings of the tool.
pub fn first(input: &Input) -> Result<(Value, &str), ImportError> {
    let text = input.text.as_str();
    let start = start(text).ok_or_else(|| input.error(Place::File, "holds no JSON document"))?;
    let text = &text[start..];
    if text.len() > BYTES_MAX {
        let most = BYTES_MAX >> 20;
        return Err(input.error(Place::File, format!("holds more than {most} MiB of JSON")));
    }
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = match documents.next() {
        Some(Ok(value)) => value,
        Some(Err(e)) => {
            let before = input.text[..start].matches('\n').count();
            let what = match e.is_eof() {
                true => "the JSON document is incomplete: the file was truncated".to_owned(),
                false => format!("is not JSON: {e}"),
            };
            return Err(input.error(Place::Line(before + e.line()), what));
        }
        None => return Err(input.error(Place::File, "holds no JSON document")),
    };
    Ok((value, &text[documents.byte_offset()..]))
}

/// Returns the offset of the first line that starts with a brace.
pub fn start(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let blank = line.len() - line.trim_start().len();
        if line.trim_start().starts_with('{') {
            return Some(at + blank);
        }
        at += line.len();
    }
    None
}

/// Returns whether a JSON document has one of these words near its beginning.
pub fn mentions(text: &str, words: &[&str]) -> bool {
    start(text).is_some_and(|at| {
        let head: String = text[at..].chars().take(1 << 16).collect();
        words.iter().all(|w| head.contains(w))
    })
}

/// Returns a string member, or an empty text if there is none.
pub fn text<'a>(v: &'a Value, name: &str) -> &'a str {
    v.get(name).and_then(Value::as_str).unwrap_or("")
}
