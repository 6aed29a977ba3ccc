//! Conversion of paths in scripts, which are relative to the directory of the run, to paths of the
//! kernel.

use seekwell_core::Errno;

/// Checks a path. Its parts are joined by '/'. No part may be empty or "..", and there may be no
/// byte 0.
#[inline]
pub(super) fn check(p: &str) -> Result<(), Errno> {
    // Most paths have no '/' or '.' at an end, and no two of these next to each other. This is
    // checked for many bytes at once.
    let mark = |b: &u8| u8::from(*b == b'/') | u8::from(*b == b'.');
    let (Some((first, behind)), Some((last, before))) =
        (p.as_bytes().split_first(), p.as_bytes().split_last())
    else {
        return Err(Errno::EINVAL);
    };
    let pairs = before.iter().zip(behind);
    let odd = pairs.fold(0, |odd, (a, b)| odd | mark(a) & mark(b) | u8::from(*a == 0));
    match odd | mark(first) | mark(last) | u8::from(*last == 0) {
        0 => Ok(()),
        _ => check_parts(p),
    }
}

fn check_parts(p: &str) -> Result<(), Errno> {
    // Check byte by byte, with a '/' appended. `len` is the length of the current part, and `dots`
    // says whether it consists of dots.
    let (mut len, mut dots, mut bad) = (0u32, true, false);
    for b in p.bytes().chain([b'/']) {
        if b == b'/' {
            bad |= len == 0 || dots && len == 2;
            (len, dots) = (0, true);
        } else {
            bad |= b == 0;
            dots &= b == b'.';
            len += 1;
        }
    }
    if bad { Err(Errno::EINVAL) } else { Ok(()) }
}

/// Checks a path and converts it to the kernel's form.
pub(super) fn path(p: &str) -> Result<Box<str>, Errno> {
    check(p)?;
    Ok(absolute(p))
}

/// Converts a checked path to the kernel's form.
pub(super) fn absolute(p: &str) -> Box<str> {
    let inner = if p == "." { "" } else { p };
    let mut absolute = String::with_capacity(1 + inner.len());
    absolute.push('/');
    absolute.push_str(inner);
    absolute.into_boxed_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Checks the rule of [`check`] in the simplest way.
    fn plainly(p: &str) -> bool {
        let bad = |part: &str| part.is_empty() || part == "..";
        !p.contains('\0') && !p.split('/').any(bad)
    }

    proptest! {
        #[test]
        fn path_check_agrees_with_a_plain_implementation(p in "[./ab\\x00]{0,9}|[ab]{20,40}[./ab\\x00]{0,3}[ab]{0,20}") {
            prop_assert_eq!(check(&p).is_ok(), plainly(&p), "{:?}", p);
        }
    }

    #[test]
    fn script_cannot_leave_its_directory() {
        for bad in ["", "/", "/a", "a/", "a//b", "..", "a/..", "../a", "a\0"] {
            assert_eq!(path(bad), Err(Errno::EINVAL), "{bad:?}");
        }
        for (good, kernel) in [
            ("a", "/a"),
            (".", "/"),
            ("a/b..", "/a/b.."),
            ("...", "/..."),
        ] {
            assert_eq!(path(good).as_deref(), Ok(kernel));
        }
    }
}
