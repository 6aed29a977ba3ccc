//! Checks the metadata and the page headers of a file before the Parquet library reads them.
//!
//! Both are in the compact protocol of Thrift. The library (60.1) skips unknown fields. It skips a
//! list of booleans by counting up to the length of the list, without reading a byte. Seven bytes
//! that give a length of 2^31 take it three seconds, and a file of 4 KiB can take it half an hour.
//! This module skips fields in the same way, but with a limit on such elements.
//!
//! The fields that the library knows (parquet.thrift) must have their types. The library reads
//! known fields by number without checking the type, so for a wrong type it would read other bytes
//! than this module. All other checks are left to the library.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};

/// Maximum number of elements that occupy no bytes, per file. Writers produce none.
const EMPTY_MAX: u64 = 1 << 16;
/// The library's limit of nesting in skipped fields.
const DEPTH: u32 = 64;
/// Fields of a page header: unpacked size in bytes, and packed size in bytes.
const UNPACKED: i16 = 2;
const PACKED: i16 = 3;
/// Field of a page header that describes the dictionary; in it, the field of the number of values.
const DICTIONARY: i16 = 7;
const VALUES: i16 = 1;
/// Maximum unpacked size of a page in bytes, in addition to [`RATIO_MAX`] times its packed size.
/// The library allocates memory before it unpacks. Usual writers make pages of 1 MB.
const PAGE_MAX: u64 = 1 << 26;
/// A compression ratio that gzip, LZ4 and Snappy cannot reach.
const RATIO_MAX: u64 = 2048;

/// A field that the format defines.
struct Known {
    id: i16,
    /// Type: 1 boolean, 3 to 6 integers, 7 double, 8 text or bytes, 9 list, 12 structure.
    of: u8,
    /// Type number of the elements of a list.
    element: u8,
    /// Fields of the structure, or of the structures in the list.
    inside: &'static [Known],
}

/// Makes a field with a simple value.
const fn v(id: i16, of: u8) -> Known {
    list(id, of, 0, &[])
}
/// Makes a field with a structure.
const fn s(id: i16, inside: &'static [Known]) -> Known {
    list(id, 12, 0, inside)
}
/// Makes a field with a list of structures.
const fn all(id: i16, inside: &'static [Known]) -> Known {
    list(id, 9, 12, inside)
}
const fn list(id: i16, of: u8, element: u8, inside: &'static [Known]) -> Known {
    Known {
        id,
        of,
        element,
        inside,
    }
}

const UNIT: &[Known] = &[s(1, &[]), s(2, &[]), s(3, &[])];
const TIME: &[Known] = &[v(1, 1), s(2, UNIT)];
const LOGICAL_TYPE: &[Known] = &[
    s(1, &[]),
    s(2, &[]),
    s(3, &[]),
    s(4, &[]),
    s(5, &[v(1, 5), v(2, 5)]),
    s(6, &[]),
    s(7, TIME),
    s(8, TIME),
    s(10, &[v(1, 3), v(2, 1)]),
    s(11, &[]),
    s(12, &[]),
    s(13, &[]),
    s(14, &[]),
    s(15, &[]),
    s(16, &[v(1, 3)]),
    s(17, &[v(1, 8)]),
    s(18, &[v(1, 8), v(2, 5)]),
    s(19, &[]),
];
const SCHEMA: &[Known] = &[
    v(1, 5),
    v(2, 5),
    v(3, 5),
    v(4, 8),
    v(5, 5),
    v(6, 5),
    v(7, 5),
    v(8, 5),
    v(9, 5),
    s(10, LOGICAL_TYPE),
];
const STATISTICS: &[Known] = &[
    v(1, 8),
    v(2, 8),
    v(3, 6),
    v(4, 6),
    v(5, 8),
    v(6, 8),
    v(7, 1),
    v(8, 1),
    v(9, 6),
];
const KEY_VALUE: &[Known] = &[v(1, 8), v(2, 8)];
const BOX: &[Known] = &[
    v(1, 7),
    v(2, 7),
    v(3, 7),
    v(4, 7),
    v(5, 7),
    v(6, 7),
    v(7, 7),
    v(8, 7),
];
const COLUMN: &[Known] = &[
    v(1, 5),
    list(2, 9, 5, &[]),
    list(3, 9, 8, &[]),
    v(4, 5),
    v(5, 6),
    v(6, 6),
    v(7, 6),
    all(8, KEY_VALUE),
    v(9, 6),
    v(10, 6),
    v(11, 6),
    s(12, STATISTICS),
    all(13, &[v(1, 5), v(2, 5), v(3, 5)]),
    v(14, 6),
    v(15, 5),
    s(16, &[v(1, 6), list(2, 9, 6, &[]), list(3, 9, 6, &[])]),
    s(17, &[s(1, BOX), list(2, 9, 5, &[])]),
];
const CHUNK: &[Known] = &[
    v(1, 8),
    v(2, 6),
    s(3, COLUMN),
    v(4, 6),
    v(5, 5),
    v(6, 6),
    v(7, 5),
    s(8, &[s(1, &[]), s(2, &[list(1, 9, 8, &[]), v(2, 8)])]),
    v(9, 8),
];
const ROW_GROUP: &[Known] = &[
    all(1, CHUNK),
    v(2, 6),
    v(3, 6),
    all(4, &[v(1, 5), v(2, 1), v(3, 1)]),
    v(5, 6),
    v(6, 6),
    v(7, 4),
];
const CIPHER: &[Known] = &[v(1, 8), v(2, 8), v(3, 1)];
const FILE: &[Known] = &[
    v(1, 5),
    all(2, SCHEMA),
    v(3, 6),
    all(4, ROW_GROUP),
    all(5, KEY_VALUE),
    v(6, 8),
    all(7, &[s(1, &[]), s(2, &[])]),
    s(8, &[s(1, CIPHER), s(2, CIPHER)]),
    v(9, 8),
];
const PAGE: &[Known] = &[
    v(1, 5),
    v(UNPACKED, 5),
    v(PACKED, 5),
    v(4, 5),
    s(5, &[v(1, 5), v(2, 5), v(3, 5), v(4, 5), s(5, STATISTICS)]),
    s(6, &[]),
    s(DICTIONARY, &[v(VALUES, 5), v(2, 5), v(3, 1)]),
    s(
        8,
        &[
            v(1, 5),
            v(2, 5),
            v(3, 5),
            v(4, 5),
            v(5, 5),
            v(6, 5),
            v(7, 1),
            s(8, STATISTICS),
        ],
    ),
];
/// An unknown field.
const OTHER: &Known = &v(0, 0);

/// The reason why the check stops.
#[derive(Debug, PartialEq)]
enum Stop {
    /// Invalid or incomplete Thrift data. The library also detects these.
    Odd,
    /// More elements that occupy no bytes than any writer produces.
    Empty(u64),
    /// A field of the format has a wrong type.
    Type(i16),
    /// (packed, unpacked): a page whose unpacked size is impossible for its packed size.
    Page(u64, u64),
    /// (values, bytes): a dictionary with more values than its bytes can contain.
    Dictionary(u64, u64),
}

type Way<T> = Result<T, Stop>;

/// The sizes in a page header.
#[derive(Default)]
struct Sizes {
    unpacked: i64,
    packed: Option<i64>,
    /// Value of the first field, if it is a number; then the number of values in the dictionary.
    first: i64,
    dictionary: i64,
}

struct Walk<'a> {
    from: BufReader<&'a File>,
    /// Current position in the file.
    at: u64,
    /// End of the current section.
    end: u64,
    /// Number of skipped elements that occupy no bytes.
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
    /// Continues at the section from `at` to `end`.
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
    /// Reads a number of 32 bits. Like the library, keeps only the low 32 bits of a larger number.
    fn number(&mut self) -> Way<i64> {
        self.zig_zag().map(|n| i64::from(n as i32))
    }
    fn size(n: u64) -> Way<u64> {
        if n > i32::MAX as u64 {
            Err(Stop::Odd)
        } else {
            Ok(n)
        }
    }
    /// Skips `n` elements of these types. Elements that occupy no bytes are only counted.
    fn elements(&mut self, n: u64, types: &[u8], inside: &Known, depth: u32) -> Way<()> {
        if types.iter().all(|t| matches!(t, 1 | 2)) {
            self.empty += n;
            let most = self.empty > EMPTY_MAX;
            return if most { Err(Stop::Empty(n)) } else { Ok(()) };
        }
        for _ in 0..n {
            for t in types {
                self.field(*t, inside, depth)?;
            }
        }
        Ok(())
    }
    /// Skips a value. Checks lists and structures of the format recursively.
    fn field(&mut self, of: u8, known: &Known, depth: u32) -> Way<()> {
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
                let element = head & 0xf;
                if n > 0 && known.element != 0 && known.element != element {
                    return Err(Stop::Type(known.id));
                }
                self.elements(n, &[element], known, depth)
            }
            11 => match Self::size(self.vlq()?)? {
                0 => Ok(()),
                n => {
                    let both = self.byte()?;
                    self.elements(n, &[both >> 4, both & 0xf], OTHER, depth)
                }
            },
            12 => self.fields(known.inside, depth).map(|_| ()),
            13 => self.pass(16),
            _ => Err(Stop::Odd),
        }
    }
    /// Skips the fields of a structure. Returns the values that describe the sizes of a page.
    fn fields(&mut self, all: &[Known], depth: u32) -> Way<Sizes> {
        let (mut id, mut size) = (0_i16, Sizes::default());
        loop {
            let head = self.byte()?;
            if head & 0xf == 0 {
                return Ok(size);
            }
            id = match head >> 4 {
                0 => self.zig_zag()? as i16,
                delta => id.checked_add(i16::from(delta)).ok_or(Stop::Odd)?,
            };
            let of = head & 0xf;
            let known = all.iter().find(|k| k.id == id);
            if known.is_some_and(|k| k.of != if of == 2 { 1 } else { of }) {
                return Err(Stop::Type(id));
            }
            match of {
                5 if id == VALUES => size.first = self.number()?,
                12 if id == DICTIONARY => {
                    let depth = depth.checked_sub(1).ok_or(Stop::Odd)?;
                    let inside = known.unwrap_or(OTHER).inside;
                    size.dictionary = self.fields(inside, depth)?.first;
                }
                5 if id == UNPACKED => size.unpacked = self.number()?,
                5 if id == PACKED => size.packed = Some(self.number()?),
                of => self.field(of, known.unwrap_or(OTHER), depth)?,
            }
        }
    }
    /// Checks the pages of a column chunk.
    fn pages(&mut self, begin: u64, end: u64) -> Way<()> {
        self.section(begin, end)?;
        while self.at < self.end {
            let size = self.fields(PAGE, DEPTH)?;
            let packed = size.packed.and_then(|n| u64::try_from(n).ok());
            let packed = packed.ok_or(Stop::Odd)?;
            let unpacked = u64::try_from(size.unpacked).unwrap_or(0);
            if unpacked > PAGE_MAX.saturating_add(packed.saturating_mul(RATIO_MAX)) {
                return Err(Stop::Page(packed, unpacked));
            }
            // A negative number becomes larger than any limit.
            let values = size.dictionary as u64;
            if values > unpacked {
                return Err(Stop::Dictionary(values, unpacked));
            }
            self.pass(packed)?;
        }
        Ok(())
    }
}

fn to_text(way: Way<()>) -> Result<(), String> {
    match way {
        Err(Stop::Empty(n)) => Err(format!("a list is said to have {n} empty elements")),
        Err(Stop::Type(id)) => Err(format!("field {id} is not of the type that the format has")),
        Err(Stop::Page(packed, unpacked)) => Err(format!(
            "a page of {packed} bytes is said to unpack to {unpacked}"
        )),
        Err(Stop::Dictionary(values, bytes)) => Err(format!(
            "a dictionary of {bytes} bytes is said to have {values} values"
        )),
        Ok(()) | Err(Stop::Odd) => Ok(()),
    }
}

/// Checks the metadata at the end of the file.
///
/// # Errors
/// Returns an error for contents that no writer produces and that the library would need a long
/// time to skip.
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
        walk.fields(FILE, DEPTH).map(|_| ())
    };
    to_text(way(&mut Walk::new(file)))
}

/// Checks the headers of the pages in these byte ranges (start and length).
///
/// # Errors
/// Returns the same errors as [`contents`].
pub(super) fn pages(file: &File, chunks: impl Iterator<Item = (u64, u64)>) -> Result<(), String> {
    let mut walk = Walk::new(file);
    for (begin, n) in chunks {
        to_text(walk.pages(begin, begin.saturating_add(n)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Makes a file with these metadata and valid magic bytes.
    fn file(contents: &[u8]) -> File {
        let mut f = tempfile::tempfile().expect("a file");
        let n = (contents.len() as u32).to_le_bytes();
        let all = [b"PAR1", contents, &n, b"PAR1"].concat();
        f.write_all(&all).expect("written");
        f
    }
    /// Makes a list of booleans (field 15) whose length is in base 128.
    fn list(n: &[u8]) -> Vec<u8> {
        [&[0xf9, 0xf1], n, &[0]].concat()
    }

    #[test]
    fn number_of_empty_list_elements_is_limited() {
        let most = file(&list(&[0xff, 0xff, 0xff, 0xff, 0x07]));
        let why = contents(&most).expect_err("too many");
        assert!(why.contains("2147483647 empty elements"), "{why}");
        // 65536 and 65537 elements, and two lists of 40000 elements each.
        assert_eq!(contents(&file(&list(&[0x80, 0x80, 0x04]))), Ok(()));
        assert!(contents(&file(&list(&[0x81, 0x80, 0x04]))).is_err());
        let two = [
            0xf9, 0xf1, 0xc0, 0xb8, 0x02, 0x19, 0xf1, 0xc0, 0xb8, 0x02, 0,
        ];
        assert!(contents(&file(&two)).is_err());
        assert_eq!(contents(&file(&[&two[..5], &[0]].concat())), Ok(()));
    }

    #[test]
    fn empty_list_is_found_at_any_nesting() {
        let bad = [0xf1, 0xff, 0xff, 0xff, 0xff, 0x07];
        // The values are true, a byte, i16, i32, i64, a double, a text and a list of two bytes. A
        // set of one i32, an empty map, a map of one i32 to text, a structure with a list, and 16
        // bytes follow. The field numbers are above 15, and the format has no such fields.
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
            let behind = [&[0xf1], v, &[0x19], &bad, &[0]].concat();
            let why = contents(&file(&behind)).expect_err("too many");
            assert!(why.contains("empty"), "{why} {v:x?}");
            assert_eq!(
                contents(&file(&[&[0xf1], v, &[0]].concat())),
                Ok(()),
                "{v:x?}"
            );
        }
        // A bad list can be in a structure, in a list of structures, in a set or in a map. Its
        // field number can be explicit.
        for inside in [
            [&[0x1c, 0x19], &bad[..], &[0, 0]].concat(),
            [&[0x19, 0x1c, 0x19], &bad[..], &[0, 0]].concat(),
            [&[0x1a], &bad[..], &[0]].concat(),
            [&[0x1b, 0xff, 0xff, 0xff, 0xff, 0x07, 0x11], &[0][..]].concat(),
            [&[0x09, 0x30], &bad[..], &[0]].concat(),
        ] {
            let why = contents(&file(&[&[0xf1], &inside[..]].concat())).expect_err("too many");
            assert!(why.contains("empty"), "{why} {inside:x?}");
        }
    }

    #[test]
    fn metadata_field_with_a_wrong_type_is_rejected() {
        // The version (field 1) is an i32, and then a text. The number of rows (field 3) is an i64,
        // and then a boolean. In place of the boolean, the library would read a number.
        assert_eq!(contents(&file(&[0x15, 2, 0x26, 2, 0])), Ok(()));
        for other in [&[0x18, 0, 0][..], &[0x31, 0], &[0x19, 0, 0x10]] {
            let why = contents(&file(other)).expect_err("another");
            assert!(why.contains("not of the type"), "{why}");
        }
        // The schema (field 2) is a list of structures, of which one has a name (field 4). Then it
        // is a list of numbers. Then the name is a number.
        assert_eq!(contents(&file(&[0x29, 0x1c, 0x48, 1, 65, 0, 0])), Ok(()));
        assert!(contents(&file(&[0x29, 0x15, 2, 0])).is_err());
        assert!(contents(&file(&[0x29, 0x1c, 0x45, 2, 0, 0])).is_err());
        // An empty list can have any element type. A boolean has one of two types.
        assert_eq!(contents(&file(&[0x29, 0x00, 0])), Ok(()));
        for kind in [0x11, 0x12] {
            // Row groups (field 4), sorting columns (field 4), descending (field 2).
            let sorted = [0x49, 0x1c, 0x49, 0x1c, 0x15, 0, kind, 0, 0, 0];
            assert_eq!(contents(&file(&sorted)), Ok(()), "{sorted:x?}");
        }
    }

    #[test]
    fn malformed_metadata_is_left_to_the_library() {
        for other in [&[][..], &[0xfe, 0], &[0xf9], &[0xf8, 0xff, 1], &[0xfc; 200]] {
            assert_eq!(contents(&file(other)), Ok(()), "{other:x?}");
        }
        assert_eq!(contents(&tempfile::tempfile().expect("a file")), Ok(()));
    }

    #[test]
    fn every_page_header_is_checked() {
        // A page of type 0 (field 1) with packed and unpacked size 2. Two bytes of data follow.
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
        // 25 bytes cannot unpack to 2^30 bytes. The library checks the size of 2^26 bytes.
        let page = |unpacked: &[u8]| {
            let head = [&[0x15, 0, 0x15], unpacked, &[0x15, 50, 0]].concat();
            let f = file(&[&head[..], &[0; 25]].concat());
            pages(&f, [(4, head.len() as u64 + 25)].into_iter())
        };
        let why = page(&[0x80, 0x80, 0x80, 0x80, 0x08]).expect_err("a bomb");
        assert!(
            why.contains("25 bytes is said to unpack to 1073741824"),
            "{why}"
        );
        assert_eq!(page(&[0x80, 0x80, 0x80, 0x40]), Ok(()));
        let dictionary_below_zero = || {
            let head = [0x15, 4, 0x15, 50, 0x15, 50, 0x4c, 0x15, 1, 0, 0];
            let f = file(&[&head[..], &[0; 25]].concat());
            pages(&f, [(4, head.len() as u64 + 25)].into_iter())
        };
        // The library reads a size of 2^32 + 25 as 25, so the bytes that follow are checked.
        let head = [0x15, 0, 0x15, 50, 0x15, 0xb2, 0x80, 0x80, 0x80, 0x20, 0];
        let more = [&head[..], &[0; 25], &bad].concat();
        let whole = more.len() as u64;
        assert!(pages(&file(&more), [(4, whole)].into_iter()).is_err());
        // A dictionary page (type 2, field 7) of 25 bytes can have 25 values, but not 26.
        let dictionary = |values: u8| {
            let head = [0x15, 4, 0x15, 50, 0x15, 50, 0x4c, 0x15, 2 * values, 0, 0];
            let f = file(&[&head[..], &[0; 25]].concat());
            pages(&f, [(4, head.len() as u64 + 25)].into_iter())
        };
        assert_eq!(dictionary(25), Ok(()));
        assert!(dictionary_below_zero().is_err());
        let why = dictionary(26).expect_err("more values than bytes");
        assert!(why.contains("25 bytes is said to have 26 values"), "{why}");
        // A negative size ends the check.
        let back = [0x15, 0, 0x15, 4, 0x15, 3, 0];
        assert_eq!(pages(&file(&back), [(4, 7)].into_iter()), Ok(()));
    }
}
