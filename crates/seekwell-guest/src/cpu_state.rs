//! The size of the CPU registers that a guest's kernel saves for each program.
//!
//! A kernel of User Mode Linux passes the extended registers (AVX, AMX) of a program to its host by
//! PTRACE_SETREGSET, and the host accepts only their full size. Kernels before 6.13 have a fixed
//! size of 2696 bytes (arch/x86/um/user-offsets.c), which is that of AVX-512. CPUs with AMX need
//! 11008 bytes, and no program runs in such a kernel. So the build adapts the size to the CPU.

use crate::error::GuestError;
use std::fs;
use std::path::Path;

/// The file with the fixed size.
const FILE: &str = "arch/x86/um/user-offsets.c";
/// The definition in this file, before its value.
const DEFINITION: &str = "HOST_FP_SIZE, ";
/// The value in all kernels before 6.13.
pub(crate) const FIXED: u32 = 2696;

/// Returns the size of the extended registers of this CPU, as the host's kernel has enabled them
/// (CPUID leaf 0xD), in bytes.
pub(crate) fn size() -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::x86_64::__cpuid_count(0xd, 0).ebx
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        0
    }
}

/// Returns the fixed size in a source tree, in bytes. `None`: the kernel asks its host for the size.
pub(crate) fn fixed_in(tree: &Path) -> Option<u32> {
    let text = fs::read_to_string(tree.join(FILE)).ok()?;
    // The file also has definitions for other architectures, whose values are expressions.
    let values = text.split(DEFINITION).skip(1);
    let mut numbers = values.filter_map(|rest| rest.split(')').next()?.trim().parse().ok());
    numbers.next()
}

/// Changes the fixed size in a source tree. The file may be a link to a tree that must not change.
pub(crate) fn adapt(tree: &Path, from: u32, to: u32) -> Result<(), GuestError> {
    let path = tree.join(FILE);
    let error = || GuestError::host(format!("change {}", path.display()));
    let text = fs::read_to_string(&path).map_err(error())?;
    let old = format!("{DEFINITION}{from}");
    let new = text.replacen(&old, &format!("{DEFINITION}{to}"), 1);
    fs::remove_file(&path).map_err(error())?;
    fs::write(&path, new).map_err(error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_size_is_found_and_changed_without_touching_a_linked_file() {
        let dir = std::env::temp_dir().join(format!("seekwell-cpu-{}", std::process::id()));
        let (original, copy) = (dir.join("original"), dir.join("copy"));
        for d in [&original, &copy] {
            fs::create_dir_all(d.join("arch/x86/um")).expect("made");
        }
        let text = "\tDEFINE_LONGS(HOST_FP_SIZE, sizeof(struct user_fpregs_struct));\n\
                    \tDEFINE_LONGS(HOST_FP_SIZE, 2696);\n";
        fs::write(original.join(FILE), text).expect("written");
        std::os::unix::fs::symlink(original.join(FILE), copy.join(FILE)).expect("linked");
        assert_eq!(fixed_in(&copy), Some(FIXED));
        adapt(&copy, FIXED, 11_008).expect("changed");
        assert_eq!(
            (fixed_in(&copy), fixed_in(&original)),
            (Some(11_008), Some(FIXED))
        );
        // Kernels since 6.13 define nothing.
        fs::write(copy.join(FILE), "int x;\n").expect("written");
        assert_eq!(fixed_in(&copy), None);
        fs::remove_dir_all(&dir).expect("removed");
    }
}
