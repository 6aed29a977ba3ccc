//! The canonical bytes of a specification, and their hash, which is the key in result stores.

use super::{Carried, RunSpec, SpecErrors, WorkloadSpec};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::{self, Read};

/// Returns the SHA-256 of all bytes of a reader, as 64 hexadecimal digits like `sha256sum`.
///
/// # Errors
/// The errors of the reader.
pub fn content_hash(mut from: impl Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => hash.update(&buffer[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(hex(&hash.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for b in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{b:02x}");
    }
    text
}

/// Writes JSON without blanks, with the members of each object sorted by name.
fn write_sorted(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort();
            out.push('{');
            for (i, name) in names.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                *out += &Value::from(name.as_str()).to_string();
                out.push(':');
                write_sorted(&members[name], out);
            }
            out.push('}');
        }
        Value::Array(list) => {
            out.push('[');
            for (i, v) in list.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_sorted(v, out);
            }
            out.push(']');
        }
        v => *out += &v.to_string(),
    }
}

impl RunSpec {
    /// Returns the canonical bytes: JSON without blanks, with members sorted by name, and with all
    /// fields that a checked specification states. Equal specifications have equal bytes.
    pub fn canonical(&self) -> String {
        let mut out = String::new();
        // JSON can represent all names, numbers and texts of a specification.
        let value = serde_json::to_value(self).unwrap_or_default();
        write_sorted(&value, &mut out);
        out
    }
    /// Returns the SHA-256 of the canonical bytes, as 64 hexadecimal digits. The label, and the
    /// names of files whose content is included, do not influence the run and are left out. Call
    /// this function for a checked specification, because only a checked specification states all
    /// defaults.
    pub fn hash(&self) -> String {
        let mut bare = self.clone();
        bare.label = None;
        let beside = bare.beside.iter_mut().map(|b| &mut b.workload);
        for workload in beside.chain([&mut bare.workload]) {
            match workload {
                WorkloadSpec::Fio { file, .. } | WorkloadSpec::Trace { file, .. } => file.clear(),
                WorkloadSpec::Script { .. } => {}
            }
        }
        hex(&Sha256::digest(bare.canonical().as_bytes()))
    }
    /// Returns the hash of a run on a drive that earlier runs have used. Runs with equal histories
    /// have equal hashes.
    pub fn hash_after(&self, carried: &Carried) -> String {
        let Carried {
            after,
            pause_ns,
            trim,
            ..
        } = carried;
        let text = format!("{after} {pause_ns} {trim} {}", self.hash());
        hex(&Sha256::digest(text.as_bytes()))
    }
    /// Returns the specification as TOML, for users.
    ///
    /// # Errors
    /// A seed above 2^63 - 1, which TOML cannot represent.
    pub fn to_toml(&self) -> Result<String, SpecErrors> {
        toml::to_string(self).map_err(|e| SpecErrors::single("", e.to_string()))
    }
}
