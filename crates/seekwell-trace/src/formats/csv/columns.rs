//! The columns that a header names, and the parser of lines.

use super::{FLAGS, OPS};
use crate::error::shown;
use crate::record::{Record, device_number};
use crate::text::{decimal_ns, number};
use seekwell_core::units::SECTOR_BYTES;
use seekwell_core::{CgroupId, Flags, IoPrio, Op, Sector, Sectors, TaskId, suggest};

/// The content of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Column {
    /// Time; the value is the number of ns per unit.
    Time(u64),
    Op,
    Flags,
    Sector,
    /// Position of the first byte.
    Offset,
    Sectors,
    Bytes,
    Pid,
    Cpu,
    IoPrio,
    Cgroup,
    Device,
    Insert,
    Issue,
    Complete,
    Error,
    Id,
}

impl Column {
    /// Returns true if every line needs a value in this column.
    fn needed(self) -> bool {
        use Column as C;
        matches!(self, C::Op | C::Sector | C::Offset | C::Sectors | C::Bytes)
    }
    /// Returns a number that is the same for columns with the same content in different units.
    fn twin(self) -> u8 {
        use Column as C;
        match self {
            C::Time(_) => 0,
            C::Op => 1,
            C::Flags => 2,
            C::Sector | C::Offset => 3,
            C::Sectors | C::Bytes => 4,
            C::Pid => 5,
            C::Cpu => 6,
            C::IoPrio => 7,
            C::Cgroup => 8,
            C::Device => 9,
            C::Insert => 10,
            C::Issue => 11,
            C::Complete => 12,
            C::Error => 13,
            C::Id => 14,
        }
    }
}

/// All names of columns. Messages use the first name of each column.
const NAMES: &[(&str, Column)] = &[
    ("t_ns", Column::Time(1)),
    ("t_us", Column::Time(1_000)),
    ("t_ms", Column::Time(1_000_000)),
    ("t_s", Column::Time(1_000_000_000)),
    ("op", Column::Op),
    ("flags", Column::Flags),
    ("sector", Column::Sector),
    ("offset", Column::Offset),
    ("sectors", Column::Sectors),
    ("n", Column::Sectors),
    ("bytes", Column::Bytes),
    ("pid", Column::Pid),
    ("cpu", Column::Cpu),
    ("ioprio", Column::IoPrio),
    ("cgroup", Column::Cgroup),
    ("device", Column::Device),
    ("t_insert", Column::Insert),
    ("t_issue", Column::Issue),
    ("t_complete", Column::Complete),
    ("error", Column::Error),
    ("id", Column::Id),
];

/// Words for operations, in addition to the letters.
const WORDS: &[(&str, Op, Flags)] = &[
    ("read", Op::Read, Flags::empty()),
    ("write", Op::Write, Flags::empty()),
    ("discard", Op::Discard, Flags::empty()),
    ("trim", Op::Discard, Flags::empty()),
    ("unmap", Op::Discard, Flags::empty()),
    ("flush", Op::Flush, Flags::empty()),
    ("sync", Op::Flush, Flags::empty()),
    ("write-zeroes", Op::WriteZeroes, Flags::empty()),
    ("s", Op::Write, Flags::SYNC),
    ("n", Op::Write, Flags::SYNC.union(Flags::NOIDLE)),
    ("m", Op::Read, Flags::META),
    ("p", Op::Read, Flags::META.union(Flags::PRIO)),
    ("a", Op::Read, Flags::RAHEAD),
];

/// The columns of a file without a header.
const POSITIONAL: [Column; 6] = [
    Column::Time(1_000),
    Column::Id,
    Column::Pid,
    Column::Op,
    Column::Sector,
    Column::Sectors,
];

/// A parsed line.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The id, if there is a column of ids.
    pub id: Option<u64>,
    /// All other columns. Times are as in the file.
    pub record: Record,
    /// True if the position or length was not a multiple of a sector. The range was then extended
    /// to whole sectors.
    pub unaligned: bool,
}

/// Name of the column and content of an invalid field.
pub(super) type Wrong<'a> = (&'static str, &'a [u8]);

/// The columns of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Columns(Vec<Column>);

impl Columns {
    /// Returns the columns of a file without a header: `t_us,id,pid,op,sector,n`.
    pub fn positional() -> Columns {
        Columns(POSITIONAL.to_vec())
    }
    /// Returns true if the columns are `t_us,id,pid,op,sector,n`.
    pub fn is_positional(&self) -> bool {
        self.0 == POSITIONAL
    }
    /// Parses a header. The error consists of the fault and the remedy.
    pub fn of_header(line: &[u8]) -> Result<Columns, (String, String)> {
        let mut columns: Vec<Column> = Vec::new();
        for w in line.split(|&c| c == b',').map(<[u8]>::trim_ascii) {
            let Some(&(name, column)) = NAMES.iter().find(|n| n.0.as_bytes() == w) else {
                let known: Vec<&str> = NAMES.iter().map(|n| n.0).collect();
                let asked = String::from_utf8_lossy(w);
                let question = suggest::did_you_mean(&asked, known.iter().copied(), &[]);
                let question = question.map_or(String::new(), |q| q + " ");
                return Err((
                    format!("no column is called {}", shown(w)),
                    format!("{question}The columns are {}", known.join(", ")),
                ));
            };
            if columns.iter().any(|c| c.twin() == column.twin()) {
                let what = format!("the column {name} has the same content as another column");
                return Err((what, "remove one of them".to_owned()));
            }
            columns.push(column);
        }
        for (names, column) in [
            ("op", Column::Op),
            ("sector (or offset)", Column::Sector),
            ("sectors (or n, or bytes)", Column::Sectors),
        ] {
            if columns.iter().all(|c| c.twin() != column.twin()) {
                let what = format!("the column {names} is missing");
                return Err((what, "add it to the header".to_owned()));
            }
        }
        Ok(Columns(columns))
    }

    /// Returns true if this is the name of a column.
    pub fn is_known(name: &str) -> bool {
        NAMES.iter().any(|n| n.0 == name)
    }

    /// Parses a line.
    pub fn row(&self, line: &[u8]) -> Result<Row, String> {
        let row = self.parse(line);
        row.map_err(|(column, found)| format!("cannot read {column}: {}", shown(found)))
    }

    pub(super) fn parse<'a>(&self, line: &'a [u8]) -> Result<Row, Wrong<'a>> {
        let mut fields = Fields::default();
        let mut words = line.split(|&c| c == b',').map(<[u8]>::trim_ascii);
        for &column in &self.0 {
            let name = || name_of(column);
            let w = words.next().ok_or_else(|| (name(), &line[line.len()..]))?;
            fields.set(column, w).ok_or_else(|| (name(), w))?;
        }
        if let Some(w) = words.next() {
            return Err(("end of the line", w));
        }
        fields.row().ok_or(("place and length", line))
    }
}

fn name_of(column: Column) -> &'static str {
    NAMES.iter().find(|n| n.1 == column).map_or("", |n| n.0)
}

/// Returns true if the second field of the line marks a control row of `explain` (for example
/// `5,x,7`: process 7 exits).
pub(super) fn is_control(line: &[u8]) -> bool {
    const CONTROLS: [&[u8]; 9] = [
        b"x", b"p", b"t", b"d", b"w", b"plug", b"unplug", b"requeue", b"switch",
    ];
    let second = line.split(|&c| c == b',').nth(1);
    second.is_some_and(|w| CONTROLS.contains(&w.trim_ascii()))
}

pub(super) fn is_comment(line: &[u8]) -> bool {
    line.is_empty() || line[0] == b'#'
}

/// Returns true if the text begins with a header, or with a valid line of a file without a header.
pub(super) fn detect(head: &[u8]) -> bool {
    let mut lines = head
        .split(|&c| c == b'\n')
        .map(|l| l.strip_suffix(b"\r").unwrap_or(l));
    let first = lines.find(|l| !is_comment(l));
    first.is_some_and(|l| Columns::of_header(l).is_ok() || Columns::positional().parse(l).is_ok())
}

fn pair(w: &[u8]) -> Option<(u64, u64)> {
    let colon = memchr::memchr(b':', w)?;
    Some((number(&w[..colon])?, number(&w[colon + 1..])?))
}

fn flags_of(w: &[u8]) -> Option<Flags> {
    let mut flags = Flags::empty();
    for name in w.split(|&c| c == b'+') {
        flags |= FLAGS.iter().find(|f| f.1.as_bytes() == name)?.0;
    }
    Some(flags)
}

fn op_of(w: &[u8]) -> Option<(Op, Flags)> {
    if let [letter] = w
        && let Some(o) = OPS.iter().find(|o| o.1 == letter.to_ascii_uppercase())
    {
        return Some((o.0, Flags::empty()));
    }
    let word = WORDS
        .iter()
        .find(|o| w.eq_ignore_ascii_case(o.0.as_bytes()))?;
    Some((word.1, word.2))
}

/// The fields of a line while it is parsed.
struct Fields {
    row: Row,
    /// Position of the first byte, if there is such a column.
    offset: Option<u64>,
    /// Length in bytes, if there is such a column.
    bytes: Option<u64>,
}

impl Default for Fields {
    fn default() -> Self {
        let row = Row {
            id: None,
            record: Record::new(0, Op::Read, 0, 0),
            unaligned: false,
        };
        Fields {
            row,
            offset: None,
            bytes: None,
        }
    }
}

impl Fields {
    /// Stores a field. Returns `None` if the field is invalid.
    #[inline]
    fn set(&mut self, column: Column, w: &[u8]) -> Option<()> {
        if w.is_empty() {
            // An empty field is valid if a record can represent the value as unknown.
            return (!column.needed()).then_some(());
        }
        let r = &mut self.row.record;
        match column {
            Column::Time(unit) => r.t_ns = decimal_ns(w, unit)?,
            Column::Op => {
                let (op, flags) = op_of(w)?;
                r.op = op;
                r.flags |= flags;
            }
            Column::Flags => r.flags |= flags_of(w)?,
            Column::Sector => r.sector = Sector(number(w)?),
            Column::Offset => self.offset = Some(number(w)?),
            Column::Sectors => r.sectors = Sectors(number(w)?.try_into().ok()?),
            Column::Bytes => self.bytes = Some(number(w)?),
            Column::Pid => r.task = Some(TaskId(number(w)?.try_into().ok()?)),
            Column::Cpu => r.cpu = Some(number(w)?.try_into().ok()?),
            Column::IoPrio => {
                let (class, level) = pair(w)?;
                r.ioprio = Some(IoPrio::from_numbers(class, level)?);
            }
            Column::Cgroup => r.cgroup = CgroupId(number(w)?.try_into().ok()?),
            Column::Device => {
                let (major, minor) = pair(w)?;
                if major >= 1 << 12 || minor >= 1 << 20 {
                    return None;
                }
                r.device = device_number(major as u32, minor as u32);
            }
            Column::Insert => r.insert_ns = Some(number(w)?),
            Column::Issue => r.issue_ns = Some(number(w)?),
            Column::Complete => r.complete_ns = Some(number(w)?),
            Column::Error => r.error = number(w)?.try_into().ok()?,
            Column::Id => self.row.id = Some(number(w)?),
        }
        Some(())
    }

    /// Converts the fields to a row, with bytes converted to sectors. Returns `None` if they exceed
    /// the range of sectors.
    #[inline]
    fn row(mut self) -> Option<Row> {
        let r = &mut self.row.record;
        if self.offset.is_some() || self.bytes.is_some() {
            let in_bytes = |sectors: u64| sectors.checked_mul(SECTOR_BYTES);
            let from = self.offset.or_else(|| in_bytes(r.sector.0))?;
            let length = self.bytes.or_else(|| in_bytes(u64::from(r.sectors.0)))?;
            let end = from.checked_add(length)?;
            self.row.unaligned = !from.is_multiple_of(SECTOR_BYTES) || end % SECTOR_BYTES != 0;
            let first = from / SECTOR_BYTES;
            r.sector = Sector(first);
            // An empty range must not be extended.
            let sectors = if length == 0 {
                0
            } else {
                end.div_ceil(SECTOR_BYTES) - first
            };
            r.sectors = Sectors(sectors.try_into().ok()?);
        }
        Some(self.row)
    }
}
