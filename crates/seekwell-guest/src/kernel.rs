//! Kernels in the cache.

use crate::cpu_state;
use crate::error::GuestError;
use std::path::{Path, PathBuf};

/// The kernel that messages propose.
const DEFAULT_VERSION: &str = "6.12";

/// The line of `about` with the size of a CPU's registers for which the kernel was built.
pub(crate) const REGISTERS: &str = "register-bytes";

/// A kernel that was built for guests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its name, which the user chose at its build.
    pub name: String,
    /// Its directory, with `linux`, `seed.so`, `config` and `about`.
    pub dir: PathBuf,
}

/// Returns the directory of kernels and templates: `$SEEKWELL_GUEST_CACHE`, or `seekwell/guest`
/// below the user's cache directory.
///
/// # Errors
/// Returns an error if neither the variable nor a home directory is set.
pub fn cache_dir() -> Result<PathBuf, GuestError> {
    let set = |name| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    set("SEEKWELL_GUEST_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|d| d.join("seekwell/guest")))
        .or_else(|| set("HOME").map(|d| d.join(".cache/seekwell/guest")))
        .ok_or_else(|| GuestError::Usage("HOME is not set, so there is no cache directory; set SEEKWELL_GUEST_CACHE to a directory".to_owned()))
}

impl Kernel {
    /// Returns the directory of a kernel of this name.
    pub(crate) fn place(cache: &Path, name: &str) -> PathBuf {
        cache.join("kernels").join(name)
    }

    /// Returns all kernels of the cache, in the order of their names.
    pub fn list(cache: &Path) -> Vec<Kernel> {
        let entries = std::fs::read_dir(cache.join("kernels"))
            .into_iter()
            .flatten();
        let mut all: Vec<_> = entries
            .filter_map(Result::ok)
            .filter(|e| e.path().join("linux").is_file())
            .filter_map(|e| {
                let name = e.file_name().into_string().ok()?;
                Some(Kernel {
                    name,
                    dir: e.path(),
                })
            })
            .collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Finds a kernel by name. Without a name, it is the newest version of a distribution's kernel,
    /// or the only kernel.
    ///
    /// # Errors
    /// Returns [`GuestError::NoKernel`] if there is none.
    pub fn find(cache: &Path, name: Option<&str>) -> Result<Kernel, GuestError> {
        let all = Self::list(cache);
        let found = match name {
            Some(name) => all.iter().find(|k| k.name == name),
            None => all.iter().max_by_key(|k| version_key(&k.name)),
        };
        let found = found.cloned().ok_or_else(|| {
            let names: Vec<_> = all.iter().map(|k| k.name.as_str()).collect();
            GuestError::NoKernel {
                name: name.unwrap_or(DEFAULT_VERSION).to_owned(),
                present: if names.is_empty() {
                    "none".to_owned()
                } else {
                    names.join(", ")
                },
            }
        })?;
        match found.register_bytes() {
            Some(has) if has < cpu_state::size() => Err(GuestError::OtherCpu {
                source_tree: found.value("source").unwrap_or_default(),
                name: found.name,
                has,
                needs: cpu_state::size(),
            }),
            _ => Ok(found),
        }
    }

    /// Returns the size of the CPU's registers for which the kernel was built, in bytes. `None`: the
    /// kernel asks its host for the size.
    fn register_bytes(&self) -> Option<u32> {
        // Kernels of this cache that were built before the line existed.
        let old = || version_key(&self.value("version").unwrap_or_default()) < vec![6, 13];
        match self.value(REGISTERS) {
            Some(text) => text.parse().ok(),
            None => old().then_some(cpu_state::FIXED),
        }
    }

    /// Returns the value of a line about the build.
    fn value(&self, key: &str) -> Option<String> {
        let about = self.about();
        let mut words = about.lines().filter_map(|l| l.split_once(' '));
        words.find(|w| w.0 == key).map(|w| w.1.to_owned())
    }

    /// Returns the text about the build: version, source, file systems.
    pub fn about(&self) -> String {
        std::fs::read_to_string(self.dir.join("about")).unwrap_or_default()
    }
}

/// Orders names such as `6.1` and `6.12` by number; other names come first.
fn version_key(name: &str) -> Vec<u32> {
    name.split('.').map_while(|p| p.parse().ok()).collect()
}
