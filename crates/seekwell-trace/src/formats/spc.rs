//! The trace format of the Storage Performance Council, revision 1.0.1. The UMass trace repository
//! publishes OLTP and web search traces in this format (Financial1, WebSearch2 ...,
//! <https://traces.cs.umass.edu>).
//!
//! The columns are `ASU,LBA,Size,Opcode,Timestamp`; optional fields can follow. The ASU is the
//! number of a volume. The LBA counts blocks of 512 bytes in the published traces, and Size is in
//! bytes. The opcode is R or W in any case. The time is in seconds from the start of the trace.

use super::volumes::{Row, Volume, VolumesReader, Wrong, looks_like};
use crate::info::{Carries, FormatInfo, Has, Keeps, Volumes};
use crate::text::{decimal_ns, number};
use seekwell_core::units::SECTOR_BYTES;
use seekwell_core::{NSEC_PER_SEC, Op};

const REMEDY: &str = "the line should read \"ASU,LBA,Size,Opcode,Timestamp\", LBA in blocks of 512 \
                      bytes, Size in bytes, Opcode R or W, the time in seconds";

/// The format's entry in the registry.
pub const INFO: FormatInfo = FormatInfo {
    name: "spc",
    summary: "SPC: OLTP and web search traces of the UMass repository",
    extensions: &["spc"],
    help: "Each line has the fields ASU,LBA,Size,Opcode,Timestamp; further fields are ignored. \
           There is no header line. LBA is in blocks of 512 bytes, Size in bytes, the time in \
           seconds. A file has several ASUs (volumes); --trace-device N selects one of them. The \
           format contains no process IDs and no completion times, so replay it with --mode timed, \
           scaled:FACTOR or depth:N.",
    carries: Carries {
        pids: Has::No,
        completions: Has::No,
        issues: Has::No,
        ioprio: Has::No,
        flags: Has::No,
        time: "1 us",
    },
    keeps: Keeps::NONE,
    volumes: Volumes::Named,
    text: true,
    detect: |head| looks_like(head, parse, None),
    parts: None,
    open: |mut inputs, options, _| {
        let input = inputs.remove(0);
        let reader = VolumesReader::new(input, options, parse, None, REMEDY);
        Ok(Box::new(reader))
    },
    create: None,
};

fn parse(line: &[u8]) -> Result<Row<'_>, Wrong<'_>> {
    let mut words = line.split(|&c| c == b',').map(<[u8]>::trim_ascii);
    let mut next = || words.next().ok_or(("all fields of the format", line));
    let [asu, lba, size, opcode, time] = [next()?, next()?, next()?, next()?, next()?];
    let op = match opcode {
        b"R" | b"r" => Op::Read,
        b"W" | b"w" => Op::Write,
        _ => return Err(("Opcode", opcode)),
    };
    let id = number(asu).and_then(|n| u32::try_from(n).ok());
    let offset = number(lba).and_then(|n| n.checked_mul(SECTOR_BYTES));
    Ok(Row {
        t_ns: decimal_ns(time, NSEC_PER_SEC).ok_or(("Timestamp", time))?,
        op: Some(op),
        offset: offset.ok_or(("LBA", lba))?,
        length: number(size).ok_or(("Size", size))?,
        volume: Volume::Number(id.ok_or(("ASU", asu))?),
        response_ns: None,
    })
}
