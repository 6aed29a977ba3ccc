//! Detects sequential readers and writers by address: a command that begins where an earlier one
//! ended continues its stream.

/// Number of streams that are tracked.
pub(super) const STREAMS: usize = 8;
/// Number of remembered ends of single commands, each of which may become a stream.
const CANDIDATES: usize = 8;

/// How a command relates to the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// No known command or stream ends where this command begins.
    Alone,
    /// The command is the second of a new stream, which takes this place from any earlier stream.
    Begins(usize),
    /// The command continues the stream in this place.
    Continues(usize),
}

/// Ends of streams and of single commands, in sectors.
#[derive(Debug, Clone)]
pub(super) struct Streams {
    ends: [u64; STREAMS],
    single: [u64; CANDIDATES],
    /// Next place to overwrite: of the streams, and of the single commands.
    turn: usize,
    turn_single: usize,
    /// The most recently continued stream, which must not be overwritten next.
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
    /// Records a command [from, to).
    #[inline]
    pub fn note(&mut self, from: u64, to: u64) -> Found {
        // Search all entries without an early exit: the compiler turns this loop into a few vector
        // instructions.
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
    fn a_stream_begins_with_the_second_and_survives_random_commands() {
        let mut s = Streams::new();
        assert_eq!(s.note(100, 108), Found::Alone);
        assert_eq!(s.note(108, 116), Found::Begins(1));
        for i in 0..100 {
            assert_eq!(s.note(10_000 + 64 * i, 10_008 + 64 * i), Found::Alone);
        }
        assert_eq!(s.note(116, 124), Found::Continues(1));
    }

    #[test]
    fn eight_streams_at_a_time() {
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
