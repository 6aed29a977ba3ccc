//! Detection of sequential readers and writers by address. A command that begins where an earlier
//! command ended continues the stream of that command.

/// Maximum number of streams that are tracked.
pub(super) const STREAMS: usize = 8;
/// Number of single commands whose ends are remembered. Each of them can become a stream.
const CANDIDATES: usize = 8;

/// The relation of a command to the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// No known command or stream ends where this command begins.
    Alone,
    /// The command is the second command of a new stream. The new stream gets this index and
    /// replaces any earlier stream there.
    Begins(usize),
    /// The command continues the stream with this index.
    Continues(usize),
}

/// End sectors of streams and of single commands.
#[derive(Debug, Clone)]
pub(super) struct Streams {
    ends: [u64; STREAMS],
    single: [u64; CANDIDATES],
    /// Index of the stream that is replaced next.
    turn: usize,
    /// Index of the single command that is replaced next.
    turn_single: usize,
    /// The stream that was continued last. It must not be replaced next.
    last: usize,
}

impl Streams {
    pub fn new() -> Self {
        Streams {
            ends: [u64::MAX; STREAMS],
            single: [u64::MAX; CANDIDATES],
            turn: 0,
            turn_single: 0,
            last: 0,
        }
    }
    /// Records a command [from, to), and returns its relation to the streams.
    #[inline]
    pub fn note(&mut self, from: u64, to: u64) -> Found {
        // Compare all entries without an early exit. The compiler converts this loop to a few
        // vector instructions.
        if self.ends.iter().fold(false, |a, e| a | (*e == from)) {
            let i = self.ends.iter().position(|e| *e == from).unwrap_or(0);
            self.ends[i] = to;
            self.last = i;
            return Found::Continues(i);
        }
        if self.single.iter().fold(false, |a, e| a | (*e == from)) {
            for e in &mut self.single {
                if *e == from {
                    *e = u64::MAX;
                }
            }
            if self.turn == self.last {
                self.turn = (self.turn + 1) % STREAMS;
            }
            let i = self.turn;
            self.turn = (i + 1) % STREAMS;
            self.ends[i] = to;
            self.last = i;
            return Found::Begins(i);
        }
        self.single[self.turn_single] = to;
        self.turn_single = (self.turn_single + 1) % CANDIDATES;
        Found::Alone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_begins_with_its_second_command_and_survives_random_commands() {
        let mut s = Streams::new();
        assert_eq!(s.note(100, 108), Found::Alone);
        assert_eq!(s.note(108, 116), Found::Begins(1));
        for i in 0..100 {
            assert_eq!(s.note(10_000 + 64 * i, 10_008 + 64 * i), Found::Alone);
        }
        assert_eq!(s.note(116, 124), Found::Continues(1));
    }

    #[test]
    fn eight_streams_are_tracked_at_a_time() {
        let mut s = Streams::new();
        for round in 0..5 {
            for i in 0..8u64 {
                let at = i * 1_000_000 + round * 8;
                let found = s.note(at, at + 8);
                match round {
                    0 => assert_eq!(found, Found::Alone),
                    1 => assert!(matches!(found, Found::Begins(_))),
                    _ => assert!(matches!(found, Found::Continues(_))),
                }
            }
        }
    }
}
