//! Alibaba block traces 2020 (Li and others, IISWC 2020). They contain 1000 disks of a cloud in
//! January 2020. All records are in `io_traces.csv`, without a header line. The columns are
//! `device_id,opcode,offset,length,timestamp`.
//!
//! The opcode is R or W. Offset and length are in bytes. The time is in microseconds and was
//! measured in the server. Completions were not recorded.

use super::volumes::{Row, Volume, VolumesReader, Wrong, fields, looks_like};
use crate::info::{Carries, FormatInfo, Has, Keeps, Volumes};
use crate::text::number;
use seekwell_core::Op;

const REMEDY: &str = "the line should read \"device_id,opcode,offset,length,timestamp\", opcode R \
                      or W, the time in microseconds";

/// The format's entry in the registry.
pub const INFO: FormatInfo = FormatInfo {
    name: "alibaba",
    summary: "Alibaba block traces 2020: disks of a cloud",
    extensions: &["csv"],
    help: "Each line has the fields device_id,opcode,offset,length,timestamp. There is no header \
           line. Offset and length are in bytes, the time is in microseconds. One file contains \
           all 1000 disks; --trace-device ID selects one of them. The format contains no process \
           IDs and no completion times, so replay it with --mode timed, scaled:FACTOR or depth:N.",
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
        Ok(Box::new(VolumesReader::new(
            input, options, parse, None, REMEDY,
        )))
    },
    create: None,
};

fn parse(line: &[u8]) -> Result<Row<'_>, Wrong<'_>> {
    let [device, opcode, offset, length, time] = fields(line)?;
    let op = match opcode {
        b"R" => Op::Read,
        b"W" => Op::Write,
        _ => return Err(("opcode", opcode)),
    };
    let id = number(device).and_then(|n| u32::try_from(n).ok());
    let t_ns = number(time).and_then(|t| t.checked_mul(1000));
    Ok(Row {
        t_ns: t_ns.ok_or(("timestamp", time))?,
        op: Some(op),
        offset: number(offset).ok_or(("offset", offset))?,
        length: number(length).ok_or(("length", length))?,
        volume: Volume::Number(id.ok_or(("device_id", device))?),
        response_ns: None,
    })
}
