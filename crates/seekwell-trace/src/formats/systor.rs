//! SNIA SYSTOR '17 traces (Lee and others): virtual desktops of a company, February and March 2016.
//! The files are `YYYYMMDDHH-LUNn.csv.gz`, with the header
//! `Timestamp,Response,IOType,LUN,Offset,Size`.
//!
//! Timestamp is in Unix seconds with nine decimals, and is exact to microseconds. Response is in
//! seconds, Offset and Size are in bytes. IOType is R or W. It is blank if no response was
//! recorded; such lines are skipped and counted.

use super::volumes::{Row, Volume, VolumesReader, Wrong, fields, looks_like};
use crate::info::{Carries, FormatInfo, Has, Keeps, Volumes};
use crate::text::{decimal_ns, number};
use seekwell_core::Op;

const HEADER: &[u8] = b"Timestamp,Response,IOType,LUN,Offset,Size";
const REMEDY: &str = "the line should read \"Timestamp,Response,IOType,LUN,Offset,Size\", times \
                      in seconds, IOType R, W or nothing";
const SECOND_NS: u64 = 1_000_000_000;

/// The format's entry in the registry.
pub const INFO: FormatInfo = FormatInfo {
    name: "systor",
    summary: "SNIA SYSTOR '17: LUNs of virtual desktops, 2016",
    extensions: &["csv"],
    help: "Each line has the fields Timestamp,Response,IOType,LUN,Offset,Size. The first line is a \
           header. Times are in Unix seconds with a fraction, offset and size in bytes. The \
           published files have one hour and LUN each; if a file has several LUNs, --trace-device \
           N selects one of them. Lines without IOType (no response was recorded) are skipped and \
           counted. The format contains no process IDs, so replay it with --mode timed, \
           scaled:FACTOR or depth:N.",
    carries: Carries {
        pids: Has::No,
        completions: Has::Maybe,
        issues: Has::No,
        ioprio: Has::No,
        flags: Has::No,
        time: "1 us",
    },
    keeps: Keeps::NONE,
    volumes: Volumes::Named,
    text: true,
    // Without the header, lines of other formats look the same, so the user must give the format.
    detect: |head| {
        let first = head.split(|&c| c == b'\n').next().unwrap_or(b"");
        first.trim_ascii_end().eq_ignore_ascii_case(HEADER)
            && (head.len() < 2 * HEADER.len() || looks_like(head, parse, Some(HEADER)))
    },
    parts: None,
    open: |mut inputs, options, _| {
        let input = inputs.remove(0);
        let reader = VolumesReader::new(input, options, parse, Some(HEADER), REMEDY);
        Ok(Box::new(reader))
    },
    create: None,
};

fn parse(line: &[u8]) -> Result<Row<'_>, Wrong<'_>> {
    let [time, response, kind, lun, offset, size] = fields(line)?;
    let op = match kind.trim_ascii() {
        b"R" => Some(Op::Read),
        b"W" => Some(Op::Write),
        b"" => None,
        _ => return Err(("IOType", kind)),
    };
    let response_ns = match response.trim_ascii() {
        b"" => None,
        w => Some(decimal_ns(w, SECOND_NS).ok_or(("Response", response))?),
    };
    let lun_number = number(lun).and_then(|n| u32::try_from(n).ok());
    Ok(Row {
        t_ns: decimal_ns(time, SECOND_NS).ok_or(("Timestamp", time))?,
        op,
        offset: number(offset).ok_or(("Offset", offset))?,
        length: number(size).ok_or(("Size", size))?,
        volume: Volume::Number(lun_number.ok_or(("LUN", lun))?),
        response_ns,
    })
}
