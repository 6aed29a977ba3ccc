//! Tencent CBS traces (Zhang and others, ATC 2020): 5584 volumes of a cloud, ten days of 2018. They
//! are published as tar archives, `YYYY-MM-DD-HH.tgz`, with one text file in each archive. The user
//! must extract the text file, because this reader does not read archives. The text file has no
//! header line. The columns are `Timestamp,Offset,Size,IOType,VolumeID`.
//!
//! The time is in whole Unix seconds. The requests of one second are in the order of the file, and
//! a replay submits them together. Offset and Size are in sectors of 512 bytes. IOType is 0 for a
//! read and 1 for a write. The traces contain no completions.

use super::volumes::{Row, Volume, VolumesReader, Wrong, fields, looks_like};
use crate::info::{Carries, FormatInfo, Has, Keeps, Volumes};
use crate::text::number;
use seekwell_core::Op;
use seekwell_core::units::SECTOR_BYTES;

const REMEDY: &str = "the line should read \"Timestamp,Offset,Size,IOType,VolumeID\", the time in \
                      seconds, offset and size in sectors, IOType 0 (read) or 1 (write)";
const SECOND_NS: u64 = 1_000_000_000;
/// Plausible times in the first field, in Unix seconds: 2001 to 2065.
const TIMES: std::ops::Range<u64> = 1_000_000_000..3_000_000_000;

/// The format's entry in the registry.
pub const INFO: FormatInfo = FormatInfo {
    name: "tencent",
    summary: "Tencent CBS: volumes of a cloud, 2018",
    extensions: &["csv"],
    help: "Each line has the fields Timestamp,Offset,Size,IOType,VolumeID. There is no header \
           line. The time is in whole seconds, so --mode timed submits all requests of a second \
           together. --mode scaled:FACTOR and depth:N have the same inexact times. Offset and size \
           are in sectors. IOType is 0 for a read and 1 for a write. The published files are tar \
           archives: tar -xzOf FILE.tgz | seekwell replay -. One file contains all volumes; \
           --trace-device ID selects one of them. The format contains no process IDs and no \
           completion times.",
    carries: Carries {
        pids: Has::No,
        completions: Has::No,
        issues: Has::No,
        ioprio: Has::No,
        flags: Has::No,
        time: "1 s",
    },
    keeps: Keeps::NONE,
    volumes: Volumes::Named,
    text: true,
    // Many formats have five numbers per line. A plausible time in the first field makes this
    // format likely enough.
    detect: |head| {
        let comma = head.iter().position(|&c| c == b',').unwrap_or(0);
        number(&head[..comma]).is_some_and(|t| TIMES.contains(&t)) && looks_like(head, parse, None)
    },
    parts: None,
    open: |mut inputs, options, notes| {
        notes.say(
            "times are whole seconds: the requests of one second are submitted at once".to_owned(),
        );
        let input = inputs.remove(0);
        Ok(Box::new(VolumesReader::new(
            input, options, parse, None, REMEDY,
        )))
    },
    create: None,
};

fn parse(line: &[u8]) -> Result<Row<'_>, Wrong<'_>> {
    let [time, offset, size, kind, volume] = fields(line)?;
    let op = match kind {
        b"0" => Op::Read,
        b"1" => Op::Write,
        _ => return Err(("IOType", kind)),
    };
    let bytes = |w| number(w).and_then(|n| n.checked_mul(SECTOR_BYTES));
    let t_ns = number(time).and_then(|t| t.checked_mul(SECOND_NS));
    let id = number(volume).and_then(|n| u32::try_from(n).ok());
    Ok(Row {
        t_ns: t_ns.ok_or(("Timestamp", time))?,
        op: Some(op),
        offset: bytes(offset).ok_or(("Offset", offset))?,
        length: bytes(size).ok_or(("Size", size))?,
        volume: Volume::Number(id.ok_or(("VolumeID", volume))?),
        response_ns: None,
    })
}
