//! Paths of scripts, which are relative to the directory of the run, and those of the kernel.

use seekwell_core::Errno;

/// A path has parts joined by '/', none of them empty or "..", and no byte 0.
#[inline]
pub(super) fn check(p: &str) -> Result<(), Errno> {
    // Nearly all have neither '/' nor '.' at an end or side by side: that is seen many bytes at once.
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
    // Byte by byte, as if a '/' stood behind it: bytes of the part so far, and whether they are dots.
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

/// A path as the kernel takes it.
pub(super) fn path(p: &str) -> Result<Box<str>, Errno> {
    check(p)?;
    Ok(absolute(p))
}

/// A path that was checked, as the kernel takes it.
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

    /// What is written at the head of [`check`].
    fn plainly(p: &str) -> bool {
        let bad = |part: &str| part.is_empty() || part == "..";
        !p.contains('\0') && !p.split('/').any(bad)
    }

    proptest! {
        #[test]
        fn paths_are_checked_as_they_are_split(p in "[./ab\\x00]{0,9}|[ab]{20,40}[./ab\\x00]{0,3}[ab]{0,20}") {
            prop_assert_eq!(check(&p).is_ok(), plainly(&p), "{:?}", p);
        }
    }

    #[test]
    fn a_script_cannot_leave_its_directory() {
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
