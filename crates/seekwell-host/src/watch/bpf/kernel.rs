//! Calls bpf(2) and perf_event_open(2) directly, without a wrapper library. Six commands are used.
//! Each command gets a struct of numbers and pointers. The memory that the pointers refer to stays
//! valid during the call.
//!
//! The usual library (aya) is not used, because it only loads object files. An object file is
//! compiled in advance, for the field offsets of one kernel. See [`super::program`] for the reason
//! to generate programs.

use super::program::Insn;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP_ELEM: libc::c_int = 1;
const PROG_LOAD: libc::c_int = 5;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;

const MAP_TYPE_ARRAY: u32 = 2;
const MAP_TYPE_RINGBUF: u32 = 27;
const PROG_TYPE_TRACEPOINT: u32 = 5;

/// License of the program. It calls no function that is reserved for GPL programs.
const LICENSE: &CStr = c"MIT OR Apache-2.0";

#[repr(C)]
#[derive(Default)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct MapLookup {
    map_fd: u32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct GetInfo {
    fd: u32,
    info_len: u32,
    info: u64,
}

/// The first version of `struct perf_event_attr`.
#[repr(C)]
#[derive(Default)]
struct PerfEvent {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

/// Returns the address of a value. It is valid while the value is borrowed.
fn address<T: ?Sized>(of: &T) -> u64 {
    std::ptr::from_ref(of).cast::<()>() as u64
}

/// Calls bpf(2).
fn bpf<T>(command: libc::c_int, attr: &mut T) -> io::Result<i32> {
    #[expect(unsafe_code, reason = "no safe wrapper exists")]
    // SAFETY: `attr` is one of the structs above. It has the kernel's layout and the given size.
    // Its pointers refer to values that the callers keep during the call.
    let r = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attr, size_of::<T>()) };
    match i32::try_from(r) {
        Ok(n) if n >= 0 => Ok(n),
        _ => Err(io::Error::last_os_error()),
    }
}

fn owned(fd: RawFd) -> OwnedFd {
    #[expect(
        unsafe_code,
        reason = "a descriptor that was just made has no owner yet"
    )]
    // SAFETY: this call created the descriptor, and nothing else owns it.
    unsafe {
        OwnedFd::from_raw_fd(fd)
    }
}

/// Creates a ring buffer. Its size in bytes must be a power of two and a multiple of the page size.
pub fn ring(bytes: u32) -> io::Result<OwnedFd> {
    let mut attr = MapCreate {
        map_type: MAP_TYPE_RINGBUF,
        max_entries: bytes,
        ..MapCreate::default()
    };
    bpf(MAP_CREATE, &mut attr).map(owned)
}

/// Creates an array of zeros. `value_bytes` is a multiple of 8.
pub fn array(value_bytes: u32, entries: u32) -> io::Result<OwnedFd> {
    let mut attr = MapCreate {
        map_type: MAP_TYPE_ARRAY,
        key_size: 4,
        value_size: value_bytes,
        max_entries: entries,
        ..MapCreate::default()
    };
    bpf(MAP_CREATE, &mut attr).map(owned)
}

/// Creates a map that contains a single number.
pub fn counter() -> io::Result<OwnedFd> {
    array(8, 1)
}

/// Copies the first entry of an array to `to`. The length of `to` must be that of the entry.
pub fn first_entry(array: &OwnedFd, to: &mut [u64]) -> io::Result<()> {
    let key = 0_u32;
    let mut attr = MapLookup {
        map_fd: array.as_raw_fd().cast_unsigned(),
        key: address(&key),
        value: to.as_mut_ptr() as u64,
        ..MapLookup::default()
    };
    bpf(MAP_LOOKUP_ELEM, &mut attr)?;
    Ok(())
}

/// Returns the value of a counter.
pub fn count(counter: &OwnedFd) -> io::Result<u64> {
    let mut value = [0];
    first_entry(counter, &mut value)?;
    Ok(value[0])
}

/// Loads a program. An error contains the message of the kernel's verifier.
pub fn load(program: &[Insn]) -> io::Result<OwnedFd> {
    let with = |log: &mut [u8]| {
        let mut attr = ProgLoad {
            prog_type: PROG_TYPE_TRACEPOINT,
            insn_cnt: program.len() as u32,
            insns: address(program),
            license: LICENSE.as_ptr() as u64,
            log_level: u32::from(!log.is_empty()),
            log_size: log.len() as u32,
            log_buf: match log.is_empty() {
                true => 0,
                false => log.as_mut_ptr() as u64,
            },
            ..ProgLoad::default()
        };
        bpf(PROG_LOAD, &mut attr).map(owned)
    };
    let first = match with(&mut []) {
        Ok(fd) => return Ok(fd),
        Err(e) => e,
    };
    let mut log = vec![0; 64 << 10];
    if first.raw_os_error() == Some(libc::EPERM) || with(&mut log).is_ok() {
        return Err(first);
    }
    let end = log.iter().position(|b| *b == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]).into_owned();
    let last = text.lines().rev().find(|l| !l.starts_with("processed "));
    match last {
        Some(line) => Err(io::Error::new(first.kind(), format!("{first}: {line}"))),
        None => Err(first),
    }
}

/// Returns how often a program was skipped because another program was running on the same CPU. The
/// kernel counts this itself (since Linux 6.7 for tracepoints).
pub fn missed(program: &OwnedFd) -> io::Result<u64> {
    /// Position of this count in `struct bpf_prog_info`, in 64-bit words.
    const AT: usize = 26;
    let mut info = [0_u64; AT + 1];
    let mut attr = GetInfo {
        fd: program.as_raw_fd().cast_unsigned(),
        info_len: size_of_val(&info) as u32,
        info: &raw mut info as u64,
    };
    bpf(OBJ_GET_INFO_BY_FD, &mut attr)?;
    Ok(info[AT])
}

/// Attaches a program to a tracepoint. The program runs on every CPU until the returned descriptor
/// is closed.
pub fn attach(program: &OwnedFd, tracepoint: u64) -> io::Result<OwnedFd> {
    const TRACEPOINT: u32 = 2;
    const FLAG_CLOEXEC: libc::c_ulong = 8;
    const ENABLE: libc::c_ulong = 0x2400;
    const SET_BPF: libc::c_ulong = 0x4004_2408;
    let attr = PerfEvent {
        kind: TRACEPOINT,
        size: size_of::<PerfEvent>() as u32,
        config: tracepoint,
        sample_period: 1,
        wakeup_events: 1,
        ..PerfEvent::default()
    };
    // The arguments mean any process on the first CPU. The program nevertheless runs on all CPUs,
    // because it belongs to the tracepoint.
    let (pid, cpu, group): (libc::c_int, libc::c_int, libc::c_int) = (-1, 0, -1);
    #[expect(unsafe_code, reason = "no safe wrapper exists")]
    // SAFETY: `attr` has the kernel's layout and contains its own size. The kernel only reads it.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attr,
            pid,
            cpu,
            group,
            FLAG_CLOEXEC,
        )
    };
    let fd = match i32::try_from(fd) {
        Ok(fd) if fd >= 0 => owned(fd),
        _ => return Err(io::Error::last_os_error()),
    };
    for (request, value) in [(SET_BPF, program.as_raw_fd()), (ENABLE, 0)] {
        #[expect(unsafe_code, reason = "no safe wrapper exists")]
        // SAFETY: both requests get a number and access no memory. The descriptors are open.
        let r = unsafe { libc::ioctl(fd.as_raw_fd(), request as _, value) };
        if r != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(fd)
}
