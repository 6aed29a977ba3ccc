//! What can go wrong between a device name and a device.

/// A device could not be made. The text names the place, the fault and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// A fault in a preset file.
    #[error("{file}:{line}: {what}; {remedy}")]
    Preset {
        /// File as the user named it, or the name of the embedded one.
        file: String,
        /// Line, from 1.
        line: usize,
        /// The fault.
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// A fault in a device specification as typed.
    #[error("device \"{spec}\": {what}; {remedy}")]
    Spec {
        /// As typed.
        spec: String,
        /// The fault.
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// A preset file could not be read.
    #[error("{path}: {what}; give the path of a preset file, or a name from `seekwell devices`")]
    Read {
        /// The path.
        path: String,
        /// The system's words.
        what: String,
    },
}

/// A fault in one parameter, before it is known where the parameter came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamError {
    /// The parameter at fault.
    pub key: &'static str,
    /// The fault.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

impl ParamError {
    /// A fault in `key`.
    pub fn new(key: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        ParamError {
            key,
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}
