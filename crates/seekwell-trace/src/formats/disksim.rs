//! The ASCII trace format of DiskSim, the default input of that simulator and of its SSD
//! extensions: `arrival devno blkno bcount flags`, separated by blanks.
//!
//! The layout follows the DiskSim 4.0 reference manual (Bucy and others, CMU-PDL-08-101, 2008). The
//! arrival is in milliseconds from the start. The block number and the number of blocks count
//! blocks of 512 bytes. The flags are a hexadecimal number; bit 0 means a read.

use super::volumes::{Row, Volume, VolumesReader, Wrong, blank_fields, looks_like};
use crate::info::{Carries, FormatInfo, Has, Keeps, Volumes};
use crate::text::{decimal_ns, number};
use seekwell_core::Op;
use seekwell_core::units::SECTOR_BYTES;

const REMEDY: &str = "the line should read \"arrival devno blkno bcount flags\", the arrival in \
                      milliseconds, flags in hexadecimal digits";
const MS_NS: u64 = 1_000_000;

/// The format's entry in the registry.
pub const INFO: FormatInfo = FormatInfo {
    name: "disksim",
    summary: "DiskSim's ASCII traces",
    extensions: &["trace", "txt"],
    help: "Each line has the fields arrival, devno, blkno, bcount and flags, separated by blanks. \
           The arrival is in milliseconds with a fraction, blkno and bcount are in blocks of 512 \
           bytes, and bit 0 of the hexadecimal flags means a read. Other simulators (MQSim, SSDsim) \
           use the same columns with times in whole nanoseconds; read such a trace with --columns \
           t_ns=1,sector=3,sectors=4,is_read=5. If a trace has several devices, --trace-device N \
           selects one of them. The format contains no process IDs and no completion times, so \
           replay it with --mode timed, scaled:FACTOR or depth:N.",
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
    // Other simulators have the same columns, but whole numbers as times.
    detect: |head| {
        let first = head.split(|&c| c == b'\n').next().unwrap_or(b"");
        first.contains(&b'.') && looks_like(head, parse, None)
    },
    parts: None,
    open: |mut inputs, options, _| {
        let input = inputs.remove(0);
        let reader = VolumesReader::new(input, options, parse, None, REMEDY);
        Ok(Box::new(reader))
    },
    create: None,
};

fn hexadecimal(w: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(w.strip_prefix(b"0x").unwrap_or(w)).ok()?;
    let plain = digits.bytes().all(|c| c.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|_| plain)
}

fn parse(line: &[u8]) -> Result<Row<'_>, Wrong<'_>> {
    let [time, device, block, blocks, flags] = blank_fields(line)?;
    let bytes = |w| number(w).and_then(|n| n.checked_mul(SECTOR_BYTES));
    let read = hexadecimal(flags).ok_or(("flags", flags))? & 1 == 1;
    let id = number(device).and_then(|n| u32::try_from(n).ok());
    Ok(Row {
        t_ns: decimal_ns(time, MS_NS).ok_or(("arrival", time))?,
        op: Some(if read { Op::Read } else { Op::Write }),
        offset: bytes(block).ok_or(("blkno", block))?,
        length: bytes(blocks).ok_or(("bcount", blocks))?,
        volume: Volume::Number(id.ok_or(("devno", device))?),
        response_ns: None,
    })
}
