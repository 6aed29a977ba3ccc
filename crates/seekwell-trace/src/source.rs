//! The interface between the reader of one format and the common reader.

use crate::blk::BlkEvent;
use crate::error::{Place, TraceError};
use crate::notes::Notes;
use crate::record::Record;
use std::collections::BTreeMap;

/// Note that counts ranges in bytes that are not multiples of a sector.
pub(crate) const NOTE_UNALIGNED: &str = "ranges not aligned to 512 bytes widened to whole sectors";

/// The reader of one format. It returns times in ns on the clock of the trace. [`Reader`](crate::Reader) converts
/// them to times since the first record.
pub trait Source: Send {
    /// Returns the next record, or `None` after the last record. It is not called again after
    /// `None` or an error.
    fn next(&mut self, notes: &mut Notes) -> Result<Option<Record>, TraceError>;
    /// Returns the file name and the position of the input that `next` read last, for messages.
    fn place(&self) -> (&str, Place);
    /// Returns the process names found so far, by process id.
    fn tasks(&self) -> Option<&BTreeMap<u32, String>> {
        None
    }
    /// Returns the detected version, if the format has versions.
    fn version(&self) -> Option<u32> {
        None
    }
    /// Returns true if the format contains events, from which records are made.
    fn tells_events(&self) -> bool {
        false
    }
    /// Moves the events of the selected device since the last call to `into`, if events are kept.
    fn take_events(&mut self, _into: &mut Vec<BlkEvent>) {}
    /// Returns the name of a device in the trace.
    fn device_name(&self, device: u32) -> String {
        device_text(device)
    }
}

/// Returns a device number as text: `8,16`.
pub(crate) fn device_text(device: u32) -> String {
    format!("{},{}", device >> 20, device & 0xf_ffff)
}
