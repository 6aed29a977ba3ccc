//! The text output of blkparse in its default layout:
//! `maj,min cpu seq seconds.ns pid ACTION RWBS sector + sectors [process]`.
//! Completions end with `[error]`. The summary at the end is skipped.
//!
//! The reader leaves out layouts made with `-f`, packet commands (a dump of bytes in parentheses)
//! and the contents of messages (`m`).

mod read;
mod write;

use super::lines::LineReader;
use crate::info::{Carries, FormatInfo, Has, Keeps, Volumes};
use seekwell_core::Flags;
pub use write::BlkparseWriter;
pub(crate) use write::message_text;

/// The format's entry in the registry.
pub const INFO: FormatInfo = FormatInfo {
    name: "blkparse",
    summary: "text printed by blkparse in its default layout",
    extensions: &["blkparse", "txt"],
    help: "The file has one line per event of the block layer. Records are made from the Q events \
           (or from the D events, if requested). The I, D and C events of the same sectors supply \
           the times of insertion, issue and completion. Lengths are rounded up to sectors. The \
           format has no priorities, and write-zeroes cannot be distinguished from writes.",
    carries: Carries {
        pids: Has::Yes,
        completions: Has::Maybe,
        issues: Has::Maybe,
        ioprio: Has::No,
        flags: Has::Yes,
        time: "1 ns",
    },
    keeps: Keeps {
        flags: Keeps::EVENTS.flags.union(Flags::BARRIER),
        ..Keeps::EVENTS
    },
    volumes: Volumes::Numbered,
    text: true,
    detect: read::detect,
    parts: None,
    open: |mut inputs, options, _| {
        let input = inputs.remove(0);
        Ok(Box::new(LineReader::new(read::DIALECT, input, options)))
    },
    create: Some(|out, options| Ok(Box::new(BlkparseWriter::new(out, options)))),
};
