//! MSR Cambridge traces (Narayanan and others, FAST 2008): one week of 36 volumes of servers in a
//! data centre, 2007. The files are `HOST_DISK.csv.gz`, without a header line; copies can have one.
//! The columns are `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! Timestamp is the time of the issue. Timestamp and ResponseTime are in units of Windows filetime,
//! which are steps of 100 ns; timestamps count from 1601. Type is Read or Write. Offset and Size
//! are in bytes. The format does not contain dependencies between requests.

use super::volumes::{Row, Volume, VolumesReader, Wrong, fields, looks_like};
use crate::info::{Carries, FormatInfo, Has, Keeps, Volumes};
use crate::text::number;
use seekwell_core::Op;

const HEADER: &[u8] = b"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
const REMEDY: &str = "the line should read \"Timestamp,Hostname,DiskNumber,Type,Offset,Size,\
                      ResponseTime\", Type Read or Write, times in steps of 100 ns";
/// Nanoseconds per step of Windows filetime.
const STEP_NS: u64 = 100;

/// The format's entry in the registry.
pub const INFO: FormatInfo = FormatInfo {
    name: "msr",
    summary: "MSR Cambridge: volumes of enterprise servers, 2007",
    extensions: &["csv"],
    help: "Each line has the fields Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime. \
           A header line is optional. Times are in steps of 100 ns (Windows filetime), offset and \
           size in bytes. The published files have one volume each; if a file has several volumes, \
           --trace-device HOST_DISK (usr_0) selects one of them. The format contains no process \
           IDs, so replay it with --mode timed, scaled:FACTOR or depth:N.",
    carries: Carries {
        pids: Has::No,
        completions: Has::Yes,
        issues: Has::No,
        ioprio: Has::No,
        flags: Has::No,
        time: "100 ns",
    },
    keeps: Keeps::NONE,
    volumes: Volumes::Named,
    text: true,
    detect: |head| looks_like(head, parse, Some(HEADER)),
    parts: None,
    open: |mut inputs, options, _| {
        let input = inputs.remove(0);
        Ok(Box::new(VolumesReader::new(
            input,
            options,
            parse,
            Some(HEADER),
            REMEDY,
        )))
    },
    create: None,
};

fn parse(line: &[u8]) -> Result<Row<'_>, Wrong<'_>> {
    let [time, host, disk, kind, offset, size, response] = fields(line)?;
    let steps = |w| number(w).and_then(|n| n.checked_mul(STEP_NS));
    let op = match kind {
        k if k.eq_ignore_ascii_case(b"read") => Op::Read,
        k if k.eq_ignore_ascii_case(b"write") => Op::Write,
        _ => return Err(("Type", kind)),
    };
    if host.is_empty() || host.len() > 255 {
        return Err(("Hostname", host));
    }
    number(disk).ok_or(("DiskNumber", disk))?;
    Ok(Row {
        t_ns: steps(time).ok_or(("Timestamp", time))?,
        op: Some(op),
        offset: number(offset).ok_or(("Offset", offset))?,
        length: number(size).ok_or(("Size", size))?,
        volume: Volume::Disk(host, disk),
        response_ns: Some(steps(response).ok_or(("ResponseTime", response))?),
    })
}
