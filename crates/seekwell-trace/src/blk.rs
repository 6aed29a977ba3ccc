//! Events of the block layer, as blktrace and blkparse record them: a common event type, the
//! letters and numbers of actions, and the letters of the RWBS field.
//!
//! Bounces, aborts, driver data and SCSI packet commands are left out, because no replay can repeat
//! them.

use seekwell_core::{Action, Flags, IoPrio, Op};

/// One event of a block trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlkEvent {
    /// Time on the clock of the trace, in ns.
    pub t_ns: u64,
    /// Kind of event.
    pub action: Action,
    /// Operation.
    pub op: Op,
    /// Flags of the operation.
    pub flags: Flags,
    /// First sector.
    pub sector: u64,
    /// Length in sectors; for `Unplug`, the number of requests.
    pub sectors: u32,
    /// Process id.
    pub task: u32,
    /// CPU number.
    pub cpu: u32,
    /// Device number, `major << 20 | minor`.
    pub device: u32,
    /// Error number of a completion; 0 if there is none.
    pub error: u16,
    /// I/O priority of the request, if it is known.
    pub ioprio: Option<IoPrio>,
    /// True for a flush with the write bit (`FWS`). Such a flush comes from the submitter, not from
    /// the kernel's flush machinery.
    pub write_bit: bool,
}

impl BlkEvent {
    /// Returns the event in its normal form. A write of length zero with a leading F becomes a
    /// flush, and its flag `PREFLUSH` is removed.
    pub fn normal(mut self) -> Self {
        if self.sectors == 0 && self.flags.contains(Flags::PREFLUSH) {
            self.op = Op::Flush;
        }
        if self.op == Op::Flush {
            self.flags -= Flags::PREFLUSH;
            self.sectors = 0;
        }
        self
    }
    /// Returns true if the event transfers no data: a flush, or a write of length zero that
    /// completes a flush.
    pub fn is_flush(&self) -> bool {
        self.op == Op::Flush || (self.sectors == 0 && self.op == Op::Write)
    }
}

/// Numbers of actions in binary traces (the low half of the action word).
const NUMBERS: &[(u16, Action)] = &[
    (1, Action::Queue),
    (2, Action::BackMerge),
    (3, Action::FrontMerge),
    (4, Action::GetRq),
    (5, Action::SleepRq),
    (6, Action::Requeue),
    (7, Action::Issue),
    (8, Action::Complete),
    (9, Action::Plug),
    (10, Action::Unplug),
    (11, Action::Unplug),
    (12, Action::Insert),
    (13, Action::Split),
    (15, Action::Remap),
];

/// Returns the action with this number, or `None` for an action that is left out.
pub fn action_of_number(n: u16) -> Option<Action> {
    NUMBERS.iter().find(|e| e.0 == n).map(|e| e.1)
}
/// Returns the number of an action, or `None` for an action that blktrace does not have.
pub fn number_of_action(a: Action) -> Option<u16> {
    NUMBERS.iter().find(|e| e.1 == a).map(|e| e.0)
}

/// Returns the action for the letter or letters of blkparse, or `None` for an action that is left
/// out.
pub fn action_of_letters(s: &[u8]) -> Option<Action> {
    Some(match s {
        b"Q" => Action::Queue,
        b"G" => Action::GetRq,
        b"S" => Action::SleepRq,
        b"M" => Action::BackMerge,
        b"F" => Action::FrontMerge,
        b"I" => Action::Insert,
        b"P" => Action::Plug,
        b"U" | b"UT" => Action::Unplug,
        b"X" => Action::Split,
        b"A" => Action::Remap,
        b"D" => Action::Issue,
        b"R" => Action::Requeue,
        b"C" => Action::Complete,
        b"m" => Action::Why,
        _ => return None,
    })
}

/// The contents of an RWBS field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rwbs {
    /// The operation. `None` for `N` without a flush, which transfers no data.
    pub op: Option<Op>,
    /// Flags of the operation. A leading F is [`Flags::PREFLUSH`].
    pub flags: Flags,
    /// True if the field contains the letter W.
    pub write_bit: bool,
}

/// Parses an RWBS field. Unknown letters (zones, atomic writes, additions of future kernels) are
/// ignored.
pub fn rwbs_parse(s: &[u8]) -> Rwbs {
    let mut op = None;
    let mut main = false;
    let mut flags = Flags::empty();
    let mut write_bit = false;
    for &c in s {
        match c {
            b'F' if !main && !flags.contains(Flags::PREFLUSH) => flags |= Flags::PREFLUSH,
            // After the letter of the operation, F means FUA. "FF" is a flush in kernel events.
            b'F' if main => flags |= Flags::FUA,
            b'R' if !main => (op, main) = (Some(Op::Read), true),
            b'W' if !main => (op, main, write_bit) = (Some(Op::Write), true, true),
            b'D' if !main => (op, main) = (Some(Op::Discard), true),
            b'N' if !main => main = true,
            b'A' => flags |= Flags::RAHEAD,
            b'S' => flags |= Flags::SYNC,
            b'M' => flags |= Flags::META,
            b'B' => flags |= Flags::BARRIER,
            _ => {}
        }
    }
    if op.is_none() && flags.contains(Flags::PREFLUSH) {
        op = Some(Op::Flush);
    }
    Rwbs {
        op,
        flags,
        write_bit,
    }
}

/// Writes an RWBS field in the order of blkparse. A flush has the write bit, as a submitter's flush
/// does. Write-zeroes has no letter, so it becomes a write.
pub fn rwbs_write(op: Op, flags: Flags, out: &mut Vec<u8>) {
    if op == Op::Flush || flags.contains(Flags::PREFLUSH) {
        out.push(b'F');
    }
    out.push(match op {
        Op::Read => b'R',
        Op::Write | Op::Flush | Op::WriteZeroes => b'W',
        Op::Discard => b'D',
    });
    let letters = [
        (Flags::FUA, b'F'),
        (Flags::RAHEAD, b'A'),
        (Flags::BARRIER, b'B'),
        (Flags::SYNC, b'S'),
        (Flags::META, b'M'),
    ];
    for (flag, letter) in letters {
        if flags.contains(flag) {
            out.push(letter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(s: &str) -> (Option<Op>, Flags) {
        let r = rwbs_parse(s.as_bytes());
        (r.op, r.flags)
    }

    #[test]
    fn rwbs_fields_of_real_traces_are_parsed() {
        assert_eq!(parse("R"), (Some(Op::Read), Flags::empty()));
        assert_eq!(parse("RAM"), (Some(Op::Read), Flags::RAHEAD | Flags::META));
        let all = Flags::PREFLUSH | Flags::FUA | Flags::SYNC | Flags::META;
        assert_eq!(parse("FWFSM"), (Some(Op::Write), all));
        assert_eq!(parse("FN"), (Some(Op::Flush), Flags::PREFLUSH));
        assert_eq!(parse("FF"), (Some(Op::Flush), Flags::PREFLUSH));
        assert_eq!(parse("N"), (None, Flags::empty()));
        assert_eq!(parse("D"), (Some(Op::Discard), Flags::empty()));
        assert!(rwbs_parse(b"FWS").write_bit && !rwbs_parse(b"FN").write_bit);
    }

    #[test]
    fn unknown_rwbs_letters_are_ignored() {
        assert_eq!(parse("WZUS"), (Some(Op::Write), Flags::SYNC));
        assert_eq!(parse("?z1"), (None, Flags::empty()));
        assert_eq!(parse(""), (None, Flags::empty()));
    }

    #[test]
    fn action_numbers_and_letters_agree() {
        for &(n, a) in NUMBERS {
            assert_eq!(action_of_number(n), Some(a));
            assert_eq!(
                action_of_letters(a.letter().to_string().as_bytes()),
                Some(a)
            );
        }
        assert_eq!(number_of_action(Action::Unplug), Some(10));
        assert_eq!(number_of_action(Action::Why), None);
    }
}
