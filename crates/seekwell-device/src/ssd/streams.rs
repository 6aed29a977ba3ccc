//! Sequential readers and writers, found by address: a command that begins where an earlier one
//! ended continues its stream.

/// Streams followed at a time.
pub(super) const STREAMS: usize = 8;
/// Ends of other commands remembered, any of which may become a stream.
const CANDIDATES: usize = 8;

/// What a command is to the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing known ends where it begins.
    Alone,
    /// The second of a new stream, which got this place (whatever was there is forgotten).
    Begins(usize),
    /// One more of a stream.
    Continues(usize),
}

/// Ends of streams and of single commands, in sectors.
#[derive(Debug, Clone)]
pub(super) struct Streams {
    ends: [u64; STREAMS],
    single: [u64; CANDIDATES],
    /// Next place to be overwritten, of each.
    turn: usize,
    turn_single: usize,
    /// Stream that went on last: it is not the next to be overwritten.
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
    /// Notes a command [from, to).
    #[inline]
    pub fn note(&mut self, from: u64, to: u64) -> Found {
        // Both are searched whole: the compiler makes a few vector instructions of that.
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
