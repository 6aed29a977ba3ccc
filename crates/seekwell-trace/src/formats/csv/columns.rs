//! The columns that a header names, and the parser of lines.

use super::fields::Separator;
use super::{FLAGS, OPS};
use crate::error::shown;
use crate::formats::vscsi::scsi_operation;
use crate::record::{Record, device_number};
use crate::text::{decimal_ns, number};
use seekwell_core::units::SECTOR_BYTES;
use seekwell_core::{CgroupId, Flags, IoPrio, Op, Sector, Sectors, TaskId, suggest};

/// The content of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Column {
    /// Time; the value is the number of ns per unit.
    Time(u64),
    Op,
    /// A digit; the digit 1 is the operation of this column, and 0 is the opposite.
    Is(Op),
    /// SCSI operation code in hexadecimal digits.
    Scsi,
    Flags,
    Sector,
    /// Position; the value is the number of bytes per unit.
    Offset(u64),
    Sectors,
    /// Length; the value is the number of bytes per unit.
    Bytes(u64),
    Pid,
    Cpu,
    IoPrio,
    Cgroup,
    Device,
    Insert,
    Issue,
    Complete,
    /// Time from the submission to the completion; the value is the number of ns per unit.
    Latency(u64),
    Error,
    Id,
}

impl Column {
    /// Returns true if every line needs a value in this column.
    fn needed(self) -> bool {
        // Operation, position and length.
        [1, 3, 4].contains(&self.twin())
    }
    /// Returns a number that is the same for columns with the same content in different units.
    fn twin(self) -> u8 {
        use Column as C;
        match self {
            C::Time(_) => 0,
            C::Op | C::Is(_) | C::Scsi => 1,
            C::Flags => 2,
            C::Sector | C::Offset(_) => 3,
            C::Sectors | C::Bytes(_) => 4,
            C::Pid => 5,
            C::Cpu => 6,
            C::IoPrio => 7,
            C::Cgroup => 8,
            C::Device => 9,
            C::Insert => 10,
            C::Issue => 11,
            C::Complete | C::Latency(_) => 12,
            C::Error => 13,
            C::Id => 14,
        }
    }
}

/// Number of bytes in the unit of `page` and `pages`.
const PAGE_BYTES: u64 = 4096;

/// All names of columns. Messages use the first name of each column.
const NAMES: &[(&str, Column)] = &[
    ("t_ns", Column::Time(1)),
    ("t_us", Column::Time(1_000)),
    ("t_ms", Column::Time(1_000_000)),
    ("t_s", Column::Time(1_000_000_000)),
    ("op", Column::Op),
    ("is_read", Column::Is(Op::Read)),
    ("is_write", Column::Is(Op::Write)),
    ("scsi_op", Column::Scsi),
    ("flags", Column::Flags),
    ("sector", Column::Sector),
    ("offset", Column::Offset(1)),
    ("page", Column::Offset(PAGE_BYTES)),
    ("sectors", Column::Sectors),
    ("n", Column::Sectors),
    ("bytes", Column::Bytes(1)),
    ("pages", Column::Bytes(PAGE_BYTES)),
    ("pid", Column::Pid),
    ("cpu", Column::Cpu),
    ("ioprio", Column::IoPrio),
    ("cgroup", Column::Cgroup),
    ("device", Column::Device),
    ("t_insert", Column::Insert),
    ("t_issue", Column::Issue),
    ("t_complete", Column::Complete),
    ("lat_ns", Column::Latency(1)),
    ("lat_us", Column::Latency(1_000)),
    ("lat_ms", Column::Latency(1_000_000)),
    ("lat_s", Column::Latency(1_000_000_000)),
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

/// The fault and the remedy.
pub(super) type Fault = (String, String);

/// Name of the column and content of an invalid field.
pub(super) type Wrong<'a> = (&'static str, &'a [u8]);

/// The columns of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Columns {
    /// The content of each field; `None` for a field that is not used.
    pub(super) fields: Vec<Option<Column>>,
    pub(super) separator: Separator,
    /// The operation of all records, if no column contains it.
    pub(super) op: Option<(Op, Flags)>,
    /// True if lines can have more fields.
    pub(super) open: bool,
}

impl Columns {
    pub(super) fn new(columns: impl IntoIterator<Item = Column>) -> Columns {
        Columns {
            fields: columns.into_iter().map(Some).collect(),
            separator: Separator::Byte(b','),
            op: None,
            open: false,
        }
    }
    /// Returns the columns of a file without a header: `t_us,id,pid,op,sector,n`.
    pub fn positional() -> Columns {
        Columns::new(POSITIONAL)
    }
    /// Returns true if the columns are `t_us,id,pid,op,sector,n`.
    pub fn is_positional(&self) -> bool {
        *self == Columns::positional()
    }
    /// Parses a header. The error consists of the fault and the remedy.
    pub fn of_header(line: &[u8]) -> Result<Columns, Fault> {
        let mut columns = Columns::new([]);
        for w in line.split(|&c| c == b',').map(<[u8]>::trim_ascii) {
            let field = columns.fields.len();
            columns.put(field, w)?;
        }
        columns.complete("add it to the header")
    }

    /// Stores the column with this name as the content of a field.
    pub(super) fn put(&mut self, field: usize, name: &[u8]) -> Result<(), Fault> {
        let Some(&(name, column)) = NAMES.iter().find(|n| n.0.as_bytes() == name) else {
            let known: Vec<&str> = NAMES.iter().map(|n| n.0).collect();
            let asked = String::from_utf8_lossy(name);
            let question = suggest::did_you_mean(&asked, known.iter().copied(), &[]);
            let question = question.map_or(String::new(), |q| q + " ");
            return Err((
                format!("no column is called {}", shown(name)),
                format!("{question}The columns are {}", known.join(", ")),
            ));
        };
        if self.has(column) {
            let what = format!("the column {name} has the same content as another column");
            return Err((what, "remove one of them".to_owned()));
        }
        self.fields.resize(self.fields.len().max(field + 1), None);
        if self.fields[field].is_some() {
            let what = format!("the field {} has two names", field + 1);
            return Err((what, "number each field once".to_owned()));
        }
        self.fields[field] = Some(column);
        Ok(())
    }

    fn has(&self, column: Column) -> bool {
        let op = column.twin() == Column::Op.twin() && self.op.is_some();
        op || self
            .fields
            .iter()
            .flatten()
            .any(|c| c.twin() == column.twin())
    }

    /// Returns the columns if none is missing.
    pub(super) fn complete(self, remedy: &str) -> Result<Columns, Fault> {
        for (names, column) in [
            ("op", Column::Op),
            ("sector (or offset)", Column::Sector),
            ("sectors (or n, or bytes)", Column::Sectors),
        ] {
            if !self.has(column) {
                let what = format!("the column {names} is missing");
                return Err((what, remedy.to_owned()));
            }
        }
        Ok(self)
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
        if let Some((op, flags)) = self.op {
            (fields.row.record.op, fields.row.record.flags) = (op, flags);
        }
        let mut rest = Some(line);
        for &column in &self.fields {
            let name = || column.map_or("all fields", name_of);
            let w = self.separator.next(&mut rest);
            let w = w.ok_or_else(|| (name(), &line[line.len()..]))?;
            if let Some(column) = column {
                fields.set(column, w).ok_or_else(|| (name(), w))?;
            }
        }
        if let Some(w) = rest.filter(|_| !self.open) {
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

pub(super) fn op_of(w: &[u8]) -> Option<(Op, Flags)> {
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
    /// Time to the completion in ns, if there is such a column.
    latency_ns: Option<u64>,
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
            latency_ns: None,
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
            Column::Is(op) => {
                r.op = match (w, op) {
                    (b"1", op) => op,
                    (b"0", Op::Read) => Op::Write,
                    (b"0", _) => Op::Read,
                    _ => return None,
                }
            }
            Column::Scsi => {
                let hex = std::str::from_utf8(w).ok()?;
                let digits = hex.strip_prefix("0x").unwrap_or(hex);
                r.op = scsi_operation(u16::from_str_radix(digits, 16).ok()?)?;
            }
            Column::Flags => r.flags |= flags_of(w)?,
            Column::Sector => r.sector = Sector(number(w)?),
            Column::Offset(unit) => self.offset = Some(number(w)?.checked_mul(unit)?),
            Column::Sectors => r.sectors = Sectors(number(w)?.try_into().ok()?),
            Column::Bytes(unit) => self.bytes = Some(number(w)?.checked_mul(unit)?),
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
            Column::Latency(unit) => self.latency_ns = Some(decimal_ns(w, unit)?),
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
        if let Some(latency_ns) = self.latency_ns {
            r.complete_ns = Some(r.t_ns.checked_add(latency_ns)?);
        }
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
