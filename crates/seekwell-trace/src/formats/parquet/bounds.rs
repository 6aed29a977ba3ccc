//! A look at a file's table of contents and page headers before the library reads them.
//!
//! Both are Thrift's compact protocol. The library (60.1) passes over fields it does not know, and a
//! list of booleans by counting to its length without reading a byte: seven bytes that say 2^31
//! take it three seconds, a file of 4 KiB half an hour. Here the same way is gone with a bound on
//! what is counted through so. Left out: whether anything is as it should be, the library says; and
//! fields that it knows by their number under another type than theirs: it reads those by its own,
//! so that a file can still be made, by intent, in which it finds such a list and this does not.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};

/// Most elements without a byte of their own in one file; no writer makes any there.
const EMPTY_MAX: u64 = 1 << 16;
/// The library's, for a field that is passed over.
const DEPTH: u32 = 64;
/// The field of a page's header that says how many bytes follow it.
const PAGE_SIZE: i64 = 3;

/// Why the way ends.
#[derive(Debug, PartialEq)]
enum Stop {
    /// No Thrift, or cut off: the library finds the same.
    Odd,
    /// More would be counted through than any writer says.
    Empty(u64),
}

type Way<T> = Result<T, Stop>;

struct Walk<'a> {
    from: BufReader<&'a File>,
    /// Where in the file.
    at: u64,
    /// Where what is read ends.
    end: u64,
    /// Elements that were counted through.
    empty: u64,
}

impl<'a> Walk<'a> {
    fn new(file: &'a File) -> Self {
        Walk {
            from: BufReader::new(file),
            at: 0,
            end: 0,
            empty: 0,
        }
    }
    /// On from here, to there.
    fn section(&mut self, at: u64, end: u64) -> Way<()> {
        let there = self.from.seek(SeekFrom::Start(at));
        (self.at, self.end) = (there.map_err(|_| Stop::Odd)?, end);
        Ok(())
    }
    fn byte(&mut self) -> Way<u8> {
        if self.at >= self.end {
            return Err(Stop::Odd);
        }
        let b = self.from.fill_buf().ok().and_then(|b| b.first().copied());
        self.from.consume(usize::from(b.is_some()));
        self.at += 1;
        b.ok_or(Stop::Odd)
    }
    fn pass(&mut self, n: u64) -> Way<()> {
        if n > self.end.saturating_sub(self.at) {
            return Err(Stop::Odd);
        }
        let by = i64::try_from(n).map_err(|_| Stop::Odd)?;
        self.from.seek_relative(by).map_err(|_| Stop::Odd)?;
        self.at += n;
        Ok(())
    }
    fn vlq(&mut self) -> Way<u64> {
        let (mut value, mut shift) = (0_u64, 0_u32);
        loop {
            let b = self.byte()?;
            value |= u64::from(b & 0x7f).wrapping_shl(shift);
            if b & 0x80 == 0 {
                return Ok(value);
            }
            shift = shift.wrapping_add(7);
        }
    }
    fn zig_zag(&mut self) -> Way<i64> {
        let v = self.vlq()?;
        Ok((v >> 1) as i64 ^ -((v & 1) as i64))
    }
    fn size(n: u64) -> Way<u64> {
        if n > i32::MAX as u64 {
            Err(Stop::Odd)
        } else {
            Ok(n)
        }
    }
    /// So many elements of these types: those that have no bytes are not walked.
    fn elements(&mut self, n: u64, types: &[u8], depth: u32) -> Way<()> {
        if types.iter().all(|t| matches!(t, 1 | 2)) {
            self.empty += n;
            let most = self.empty > EMPTY_MAX;
            return if most { Err(Stop::Empty(n)) } else { Ok(()) };
        }
        for _ in 0..n {
            for t in types {
                self.field(*t, depth)?;
            }
        }
        Ok(())
    }
    /// Past a value.
    fn field(&mut self, of: u8, depth: u32) -> Way<()> {
        let depth = depth.checked_sub(1).ok_or(Stop::Odd)?;
        match of {
            1 | 2 => Ok(()),
            3 => self.pass(1),
            4..=6 => self.vlq().map(|_| ()),
            7 => self.pass(8),
            8 => {
                let n = self.vlq()?;
                self.pass(n)
            }
            9 | 10 => {
                let head = self.byte()?;
                let n = match head >> 4 {
                    15 => Self::size(self.vlq()?)?,
                    n => u64::from(n),
                };
                match head {
                    0 => Ok(()),
                    _ => self.elements(n, &[head & 0xf], depth),
                }
            }
            11 => match Self::size(self.vlq()?)? {
                0 => Ok(()),
                n => {
                    let both = self.byte()?;
                    self.elements(n, &[both >> 4, both & 0xf], depth)
                }
            },
            12 => self.fields(depth).map(|_| ()),
            13 => self.pass(16),
            _ => Err(Stop::Odd),
        }
    }
    /// Past the fields of a structure; what the one says that a page's size is in.
    fn fields(&mut self, depth: u32) -> Way<Option<i64>> {
        let (mut id, mut size) = (0_i64, None);
        loop {
            let head = self.byte()?;
            if head & 0xf == 0 {
                return Ok(size);
            }
            id = match head >> 4 {
                0 => self.zig_zag()?,
                delta => id.wrapping_add(i64::from(delta)),
            };
            match head & 0xf {
                5 if id == PAGE_SIZE => size = Some(self.zig_zag()?),
                of => self.field(of, depth)?,
            }
        }
    }
    /// Through the pages of a column's chunk.
    fn pages(&mut self, begin: u64, end: u64) -> Way<()> {
        self.section(begin, end)?;
        while self.at < self.end {
            let size = self.fields(DEPTH)?;
            let size = size.and_then(|n| u64::try_from(n).ok()).ok_or(Stop::Odd)?;
            self.pass(size)?;
        }
        Ok(())
    }
}

fn said(way: Way<()>) -> Result<(), String> {
    match way {
        Err(Stop::Empty(n)) => Err(format!("a list is said to have {n} empty elements")),
        Ok(()) | Err(Stop::Odd) => Ok(()),
    }
}

/// The table of contents at the end.
///
/// # Errors
/// What it says that no writer says, and that would take the library long to pass over.
pub(super) fn contents(file: &File) -> Result<(), String> {
    let Ok(len) = file.metadata().map(|m| m.len()) else {
        return Ok(());
    };
    let way = |walk: &mut Walk| {
        let tail = len.checked_sub(8).ok_or(Stop::Odd)?;
        walk.section(tail, len)?;
        let mut n = [0; 4];
        for b in &mut n {
            *b = walk.byte()?;
        }
        let begin = tail.checked_sub(u64::from(u32::from_le_bytes(n)));
        walk.section(begin.ok_or(Stop::Odd)?, tail)?;
        walk.fields(DEPTH).map(|_| ())
    };
    said(way(&mut Walk::new(file)))
}

/// The headers of the pages in these ranges of bytes: begin and length.
///
/// # Errors
/// As [`contents`].
pub(super) fn pages(file: &File, chunks: impl Iterator<Item = (u64, u64)>) -> Result<(), String> {
    let mut walk = Walk::new(file);
    for (begin, n) in chunks {
        said(walk.pages(begin, begin.saturating_add(n)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A file whose table of contents is this, with its own marks around.
    fn file(contents: &[u8]) -> File {
        let mut f = tempfile::tempfile().expect("a file");
        let n = (contents.len() as u32).to_le_bytes();
        let all = [b"PAR1", contents, &n, b"PAR1"].concat();
        f.write_all(&all).expect("written");
        f
    }
    /// A list of booleans (field 15) of a length in seven bits a byte.
    fn list(n: &[u8]) -> Vec<u8> {
        [&[0xf9, 0xf1], n, &[0]].concat()
    }

    #[test]
    fn what_has_no_bytes_is_not_counted_through_beyond_what_writers_say() {
        let most = file(&list(&[0xff, 0xff, 0xff, 0xff, 0x07]));
        let why = contents(&most).expect_err("too many");
        assert!(why.contains("2147483647 empty elements"), "{why}");
        // 65536 and 65537, and the sum of two lists of 40000.
        assert_eq!(contents(&file(&list(&[0x80, 0x80, 0x04]))), Ok(()));
        assert!(contents(&file(&list(&[0x81, 0x80, 0x04]))).is_err());
        let two = [
            0xf9, 0xf1, 0xc0, 0xb8, 0x02, 0x19, 0xf1, 0xc0, 0xb8, 0x02, 0,
        ];
        assert!(contents(&file(&two)).is_err());
        assert_eq!(contents(&file(&[&two[..5], &[0]].concat())), Ok(()));
    }

    #[test]
    fn it_is_found_behind_values_of_every_kind_and_inside_of_others() {
        let bad = [0xf1, 0xff, 0xff, 0xff, 0xff, 0x07];
        // True, a byte, i16, i32, i64, a double, text, a list of two bytes, a set of one i32, an
        // empty map, a map of text to i32, a structure with a list in it, 16 bytes.
        let values: [&[u8]; 13] = [
            &[0x11],
            &[0x13, 9],
            &[0x14, 0x82, 1],
            &[0x15, 0x82, 1],
            &[0x16, 0x82, 1],
            &[0x17, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0x18, 2, 0xf9, 0xf1],
            &[0x19, 0x23, 0xf9, 0xf1],
            &[0x1a, 0x15, 0x80, 1],
            &[0x1b, 0],
            &[0x1b, 1, 0x85, 1, 7, 3],
            &[0x1c, 0x19, 0x13, 5, 0],
            &[0x1d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ];
        for v in values {
            assert!(
                contents(&file(&[v, &[0x19], &bad, &[0]].concat())).is_err(),
                "{v:x?}"
            );
            assert_eq!(contents(&file(&[v, &[0]].concat())), Ok(()), "{v:x?}");
        }
        // In a structure, in a list of structures, as a set, as a map, under a number told whole.
        for inside in [
            [&[0x1c, 0x19], &bad[..], &[0, 0]].concat(),
            [&[0x19, 0x1c, 0x19], &bad[..], &[0, 0]].concat(),
            [&[0x1a], &bad[..], &[0]].concat(),
            [&[0x1b, 0xff, 0xff, 0xff, 0xff, 0x07, 0x11], &[0][..]].concat(),
            [&[0x09, 0x10], &bad[..], &[0]].concat(),
        ] {
            assert!(contents(&file(&inside)).is_err(), "{inside:x?}");
        }
    }

    #[test]
    fn what_is_no_table_of_contents_is_left_to_the_library() {
        for other in [&[][..], &[0x1e, 0], &[0x19], &[0x18, 0xff, 1], &[0x1c; 200]] {
            assert_eq!(contents(&file(other)), Ok(()), "{other:x?}");
        }
        assert_eq!(contents(&tempfile::tempfile().expect("a file")), Ok(()));
    }

    #[test]
    fn headers_of_all_pages_are_looked_at() {
        // Kind 0, unpacked 2, packed 2; two bytes of data.
        let page = [0x15, 0, 0x15, 4, 0x15, 4, 0, 0xaa, 0xbb];
        let bad = [
            0x15, 0, 0x15, 4, 0x15, 4, 0xf9, 0xf1, 0xff, 0xff, 0xff, 0x07, 0,
        ];
        let three = [&page[..], &page, &bad].concat();
        let f = file(&three);
        let whole = three.len() as u64;
        assert!(pages(&f, [(4, whole)].into_iter()).is_err());
        assert_eq!(pages(&f, [(4, 18)].into_iter()), Ok(()));
        assert!(pages(&f, [(4, 18), (22, whole - 18)].into_iter()).is_err());
        // A size below zero ends the way.
        let back = [0x15, 0, 0x15, 4, 0x15, 3, 0];
        assert_eq!(pages(&file(&back), [(4, 7)].into_iter()), Ok(()));
    }
}
