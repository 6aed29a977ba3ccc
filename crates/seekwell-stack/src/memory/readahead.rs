//! On-demand read-ahead (2.6.23 and later). It chooses the pages that a read of an open file
//! fetches from the disk.
//!
//! Each open file has one state. Two threads that share a descriptor therefore disturb each other.

use seekwell_core::Advice;

/// Read-ahead state of an open file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadAhead {
    /// Start of the window, which has the pages `start..start + size`. A read of the page that is
    /// `async_size` pages before the end starts the next window.
    start: u32,
    size: u32,
    async_size: u32,
    /// Position that the next read is compared with: the last page read, or the page after it
    /// ([`prev`](Self::prev_of)). `u32::MAX` before the first read.
    pub(crate) prev: u32,
    pub(crate) advice: Advice,
    /// Number of windows that marks have started in this stream.
    round: u8,
    /// Number of misses of mapped reads, minus the hits. Far above 0, accesses count as random.
    pub(crate) mapped_miss: u32,
}

impl Default for ReadAhead {
    fn default() -> Self {
        ReadAhead {
            start: 0,
            size: 0,
            async_size: 0,
            prev: u32::MAX,
            advice: Advice::Normal,
            round: 0,
            mapped_miss: 0,
        }
    }
}

/// The pages to read. `mark` is the page among them whose read starts the next window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    pub(crate) start: u32,
    pub(crate) size: u32,
    pub(crate) mark: Option<u32>,
    /// Number of marks that the stream has reached. This number determines the folio size.
    pub(crate) round: u8,
}

/// Size of the largest window, and the kernel's rules for starting a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Most {
    pub(crate) pages: u32,
    /// Two windows that would follow each other immediately are read as one window.
    pub(crate) joined: bool,
    /// A missing page directly after a window continues the read-ahead, whichever read misses it.
    pub(crate) resumed: bool,
    pub(crate) context: Context,
}

/// The meaning of cached pages directly before a missing page, if the read does not continue an
/// earlier read of its open file. Random reads of a partly cached file find such pages by chance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Context {
    /// The cached pages have no effect (until 2.6.30).
    Ignored,
    /// Even one cached page indicates a stream. Its first window is read (2.6.31 to 3.11).
    Any,
    /// The cached pages indicate a stream if they are more than the read requests. The window has
    /// the size of both together (3.12 and later; "readahead: make context readahead more
    /// conservative", 2cad40180197).
    More,
}

impl Context {
    /// Returns the rule with this number in the constant `readahead_context`.
    pub(crate) fn from_number(rule: u64) -> Self {
        match rule {
            0 => Context::Ignored,
            1 => Context::Any,
            _ => Context::More,
        }
    }
}

/// Queries of the page cache that the state machine needs.
pub(crate) trait Cached {
    /// Returns the first missing page from `from` on and below `end`.
    fn hole(&self, from: u32, end: u32) -> Option<u32>;
    /// Returns the number of present pages directly before `idx`, at most `max`.
    fn run_before(&self, idx: u32, max: u32) -> u32;
}

/// Returns the size of a stream's first window: `n` rounded up to a power of two, and multiplied by
/// 4 or 2 if small.
fn init(n: u32, max: u32) -> u32 {
    let n = n.max(1).next_power_of_two();
    if n <= max / 32 {
        n * 4
    } else if n <= max / 4 {
        n * 2
    } else {
        max
    }
}
/// Returns the size of the window that follows a window of `n` pages.
fn next(n: u32, max: u32) -> u32 {
    if n < max / 16 {
        n * 4
    } else {
        (n * 2).min(max)
    }
}

impl ReadAhead {
    /// Returns the position with which the next read is compared, after a read of `len` bytes from
    /// `off`. Older kernels use the last page of the read. Newer kernels use the page at its end
    /// (`prev_pos`), so that a sequential reader may skip one page.
    pub(crate) fn prev_of(off: u64, len: u64, behind: bool) -> u32 {
        let end = off + len;
        (if behind { end } else { end.saturating_sub(1) } / 4096) as u32
    }
    fn window(&self) -> Window {
        let mark = (self.async_size > 0).then(|| self.start + self.size - self.async_size);
        Window {
            start: self.start,
            size: self.size,
            mark,
            round: self.round,
        }
    }
    /// Decides which pages to fetch for a read of `req` pages from `idx` on. The first page is
    /// missing. With `marked`, it is present and carries the mark. `max` gives the largest window.
    /// Returns the pages to read immediately. Returns `None` if nothing is to be read, for example
    /// if the marked page belongs to no known window and all pages after it are present.
    pub(crate) fn step(
        &mut self,
        cache: &impl Cached,
        idx: u32,
        req: u32,
        max: Most,
        marked: bool,
    ) -> Option<Window> {
        let (context, joined, resumed) = (max.context, max.joined, max.resumed);
        let max = match self.advice {
            Advice::Sequential => max.pages * 2,
            _ => max.pages,
        };
        if max == 0 || self.advice == Advice::Random {
            // In this mode, a marked page starts no window.
            return (!marked).then_some(Window {
                start: idx,
                size: req,
                mark: None,
                round: 0,
            });
        }
        self.round = match marked {
            true => self.round.saturating_add(1),
            false => 0,
        };
        if idx == 0 && !marked {
            return Some(self.begin(idx, req, max, joined));
        }
        let behind = self.start.wrapping_add(self.size);
        let expected = idx == behind || idx == behind.wrapping_sub(self.async_size);
        if expected && self.size > 0 && (marked || resumed) {
            self.start += self.size;
            self.size = next(self.size, max);
            self.async_size = self.size;
            return Some(self.ready(idx, max, joined));
        }
        if marked {
            // Several streams use one open file. The cache shows how far this stream has been read
            // ahead.
            let hole = cache.hole(idx + 1, idx.saturating_add(max))?;
            self.start = hole;
            self.size = next(hole - idx + req, max);
            self.async_size = self.size;
            return Some(self.ready(idx, max, joined));
        }
        let follows = self.prev != u32::MAX && idx.wrapping_sub(self.prev) <= 1;
        if req > max || follows {
            return Some(self.begin(idx, req, max, joined));
        }
        let run = match context {
            Context::Ignored => 0,
            _ => cache.run_before(idx, max),
        };
        let history = if run == idx { run * 2 } else { run };
        if context == Context::Any && run > 0 {
            self.start = idx;
            self.size = init(history + req, max);
            self.async_size = self.size;
            return Some(self.ready(idx, max, joined));
        }
        if context == Context::More && run > req {
            self.start = idx;
            self.size = (history + req).min(max);
            self.async_size = 1;
            return Some(self.window());
        }
        Some(Window {
            start: idx,
            size: req,
            mark: None,
            round: 0,
        })
    }
    fn begin(&mut self, idx: u32, req: u32, max: u32, joined: bool) -> Window {
        self.start = idx;
        self.size = init(req, max);
        self.async_size = if self.size > req {
            self.size - req
        } else {
            self.size
        };
        self.ready(idx, max, joined)
    }
    /// Returns the present window. If the first page of the window is its mark, the next window
    /// follows immediately. Kernels with `joined` then read both windows as one.
    fn ready(&mut self, idx: u32, max: u32, joined: bool) -> Window {
        if joined && idx == self.start && self.size == self.async_size {
            self.async_size = next(self.size, max);
            self.size += self.async_size;
        }
        self.window()
    }
    /// Handles a miss of a mapped access. Returns a window of the pages around it.
    pub(crate) fn around(&mut self, idx: u32, max: u32) -> Window {
        self.start = idx.saturating_sub(max / 2);
        self.size = max;
        self.async_size = max / 4;
        self.round = 0;
        self.window()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const W32: Most = Most {
        pages: 32,
        joined: true,
        resumed: true,
        context: Context::Any,
    };

    struct None_;
    impl Cached for None_ {
        fn hole(&self, _: u32, _: u32) -> Option<u32> {
            None
        }
        fn run_before(&self, _: u32, _: u32) -> u32 {
            0
        }
    }
    struct Run(u32);
    impl Cached for Run {
        fn hole(&self, from: u32, _: u32) -> Option<u32> {
            Some(from + self.0)
        }
        fn run_before(&self, _: u32, _: u32) -> u32 {
            self.0
        }
    }

    #[test]
    fn first_window_sizes_with_a_128_kib_limit_match_the_kernel() {
        let got: Vec<u32> = [1, 2, 3, 4, 5, 8, 9, 16, 32].map(|n| init(n, 32)).into();
        assert_eq!(got, [4, 4, 8, 8, 16, 16, 32, 32, 32]);
    }

    #[test]
    fn windows_of_a_4_kib_reader_grow_from_16_to_128_kib() {
        let mut ra = ReadAhead::default();
        let mut sizes = Vec::new();
        let mut mark = None;
        let mut end = 0;
        for idx in 0..200 {
            let w = if idx >= end {
                ra.step(&None_, idx, 1, W32, false)
            } else if mark == Some(idx) {
                ra.step(&None_, idx, 1, W32, true)
            } else {
                None
            };
            ra.prev = idx;
            if let Some(w) = w {
                sizes.push(w.size * 4);
                (end, mark) = (w.start + w.size, w.mark);
            }
        }
        println!("windows of a 4 KiB reader, KiB: {sizes:?}");
        assert_eq!(sizes[..6], [16, 32, 64, 128, 128, 128]);
    }

    /// If the largest window is 512 KiB, windows below a sixteenth of it grow by a factor of four,
    /// and the others by two. If the largest window is 128 KiB (the usual size), even the first
    /// window of 4 pages is above this threshold.
    #[test]
    fn small_windows_under_a_large_limit_grow_fourfold() {
        let w128 = Most {
            pages: 128,
            joined: false,
            ..W32
        };
        let mut ra = ReadAhead::default();
        let mut w = ra.step(&None_, 0, 1, w128, false).expect("reads");
        let mut sizes = vec![w.size];
        while sizes.len() < 6 {
            let at = w.mark.expect("a window has its mark");
            w = ra.step(&None_, at, 1, w128, true).expect("the next");
            sizes.push(w.size);
        }
        assert_eq!(sizes, [4, 16, 32, 64, 128, 128]);
        assert_eq!([next(7, 128), next(8, 128), next(9, 128)], [28, 16, 18]);
        assert_eq!([init(4, 128), init(5, 128), init(33, 128)], [16, 16, 128]);
    }

    #[test]
    fn random_reads_fetch_only_the_requested_pages_and_keep_the_state() {
        let mut ra = ReadAhead {
            prev: 3,
            ..ReadAhead::default()
        };
        let before = ra.window();
        let w = ra.step(&None_, 1000, 4, W32, false);
        assert_eq!(
            w,
            Some(Window {
                start: 1000,
                size: 4,
                mark: None,
                round: 0,
            })
        );
        assert_eq!(ra.window(), before);
        // Cached pages before the read indicate a stream.
        let w = ra.step(&Run(6), 2000, 2, W32, false).expect("reads");
        assert_eq!((w.start, w.size), (2000, 16 + 32));
        // The mark belongs to no known window, so read-ahead continues from the hole.
        let w = ra.step(&Run(5), 5000, 1, W32, true).expect("reads");
        assert_eq!((w.start, w.size), (5006, 14));
    }

    /// Returns the size and the mark of the window that a read of `req` pages at page 1000 fetches.
    /// `run` pages directly before page 1000 are in the cache.
    fn window_after(context: Context, run: u32, req: u32) -> (u32, Option<u32>) {
        let most = Most {
            context,
            joined: false,
            ..W32
        };
        let mut ra = ReadAhead::default();
        let w = ra.step(&Run(run), 1000, req, most, false).expect("reads");
        (w.size, w.mark)
    }

    /// Counted on 6.18 with mincore(2): the number of pages that reads of 1, 2 and 4 pages at page
    /// 1000 fetch. The first column is the number of cached pages before page 1000.
    #[test]
    fn random_reads_behind_cached_pages_read_ahead_like_the_kernel() {
        let counted = [
            (0, [1, 2, 4]),
            (1, [1, 2, 4]),
            (2, [3, 2, 4]),
            (3, [4, 5, 4]),
            (4, [5, 6, 4]),
            (5, [6, 7, 9]),
            (8, [9, 10, 12]),
        ];
        for (run, sizes) in counted {
            let ours = [1, 2, 4].map(|req| window_after(Context::More, run, req).0);
            assert_eq!(ours, sizes, "{run} pages before it");
        }
        // The last page carries the mark, so that a stream continues there.
        assert_eq!(window_after(Context::More, 8, 2), (10, Some(1009)));
        // If the cached pages reach back to the start of the file, they count twice.
        let most = Most {
            context: Context::More,
            ..W32
        };
        let w = ReadAhead::default().step(&Run(6), 6, 1, most, false);
        assert_eq!(w.map(|w| w.size), Some(13));
    }

    #[test]
    fn cached_pages_needed_for_read_ahead_depend_on_the_kernel() {
        assert_eq!(window_after(Context::Any, 1, 2), (8, Some(1000)));
        assert_eq!(window_after(Context::Any, 0, 2), (2, None));
        assert_eq!(window_after(Context::Ignored, 9, 2), (2, None));
        assert_eq!(
            [0, 1, 2].map(Context::from_number),
            [Context::Ignored, Context::Any, Context::More]
        );
    }

    #[test]
    fn large_reads_and_random_advice_set_the_window() {
        let mut ra = ReadAhead::default();
        // A read of 64 KiB at the start of the file gives a window of 128 KiB with the mark in the
        // middle.
        let w = ra.step(&None_, 0, 16, W32, false).expect("reads");
        assert_eq!((w.size, w.mark), (32, Some(16)));
        let advised = |advice| ReadAhead {
            advice,
            ..ReadAhead::default()
        };
        ra = advised(Advice::Random);
        assert_eq!(ra.step(&None_, 7, 3, W32, false).map(|w| w.size), Some(3));
        ra = advised(Advice::Sequential);
        assert_eq!(ra.step(&None_, 0, 40, W32, false).map(|w| w.size), Some(64));
    }

    #[test]
    fn window_that_starts_at_its_own_mark_is_joined_or_separate() {
        for (joined, size, mark) in [(true, 64, 32), (false, 32, 0)] {
            let most = Most { joined, ..W32 };
            let mut ra = ReadAhead::default();
            let w = ra.step(&None_, 0, 32, most, false);
            assert_eq!(w.map(|w| (w.size, w.mark)), Some((size, Some(mark))));
            // The mark starts a window with larger folios.
            let w = ra.step(&None_, mark, 32, most, true).expect("the next");
            assert_eq!((w.start, w.size, w.round), (size, 32, 1));
        }
    }
}
