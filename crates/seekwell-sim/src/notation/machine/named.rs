//! Named machines: those of published comparisons, and typical current machines. Their data files
//! are in `machines/`. The files state the source of each value.

use super::{MachineSpec, typed};
use std::sync::OnceLock;

/// A value and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sourced {
    /// Name of the option ([`super::WORDS`]).
    pub name: String,
    /// Value of the option, as typed.
    pub value: String,
    /// The kind of source ("published", "data sheet" or "estimate"), with details.
    pub source: String,
}

/// A named machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Name of the machine.
    pub name: String,
    /// Description in one line.
    pub summary: String,
    /// Year of the machine.
    pub year: u32,
    /// Modelled devices that the machine has or could have.
    pub devices: Vec<String>,
    /// The known properties of the machine.
    pub options: Vec<Sourced>,
    /// The same properties as a specification.
    pub spec: MachineSpec,
}

const FILES: &[&str] = &[
    include_str!("../../../machines/laptop.toml"),
    include_str!("../../../machines/server.toml"),
    include_str!("../../../machines/phone.toml"),
    include_str!("../../../machines/raspberry-pi.toml"),
    include_str!("../../../machines/cloud-vm.toml"),
    include_str!("../../../machines/mysql-2008.toml"),
    include_str!("../../../machines/phoronix-2012.toml"),
    include_str!("../../../machines/phoronix-2012-i5.toml"),
    include_str!("../../../machines/phoronix-2012-i7.toml"),
    include_str!("../../../machines/laptop-ssd-2012.toml"),
    include_str!("../../../machines/moto-g-2014.toml"),
    include_str!("../../../machines/postgres-2015.toml"),
];

/// Returns `None` for an invalid file. A test checks the project's own files.
fn read(text: &str) -> Option<Machine> {
    let table: toml::Table = text.parse().ok()?;
    let word = |key: &str| Some(table.get(key)?.as_str()?.to_owned());
    let option = |(name, v): (&String, &toml::Value)| {
        Some(Sourced {
            name: name.clone(),
            value: v.get("value")?.as_str()?.to_owned(),
            source: v.get("source")?.as_str()?.to_owned(),
        })
    };
    let options = table.get("options")?.as_table()?.iter().map(option);
    let options: Vec<Sourced> = options.collect::<Option<_>>()?;
    let list: Vec<String> = options
        .iter()
        .map(|o| format!("{}={}", o.name, o.value))
        .collect();
    let devices = table.get("devices")?.as_array()?.iter();
    let devices = devices.map(|d| Some(d.as_str()?.to_owned()));
    Some(Machine {
        name: word("name")?,
        summary: word("summary")?,
        year: table.get("year")?.as_integer()?.try_into().ok()?,
        devices: devices.collect::<Option<_>>()?,
        spec: typed(&list.join(",")).ok()?.spec,
        options,
    })
}

/// Returns all machines: typical current ones first, then the others by year.
pub fn machines() -> &'static [Machine] {
    static ALL: OnceLock<Vec<Machine>> = OnceLock::new();
    ALL.get_or_init(|| FILES.iter().filter_map(|t| read(t)).collect())
}

/// Finds a machine by name.
pub fn named(name: &str) -> Option<&'static Machine> {
    // A text with `=` is an option and not a name. The check also prevents a recursion, because
    // this function is called while the files are being read.
    if name.contains('=') {
        return None;
    }
    machines().iter().find(|m| m.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekwell_device::describe;

    #[test]
    fn every_machine_file_has_sources_and_existing_devices() {
        assert_eq!(machines().len(), FILES.len(), "a file cannot be read");
        for m in machines() {
            assert!(
                named(&m.name).is_some() && !m.devices.is_empty(),
                "{}",
                m.name
            );
            for d in &m.devices {
                assert!(describe(d).is_ok(), "{}: {d}", m.name);
            }
            for o in &m.options {
                let kind = o.source.split(':').next().unwrap_or_default();
                assert!(
                    ["published", "data sheet", "estimate"].contains(&kind),
                    "{}: {o:?}",
                    m.name
                );
            }
        }
        let mut names: Vec<&str> = machines().iter().map(|m| &*m.name).collect();
        names.dedup();
        assert_eq!(names.len(), FILES.len());
    }

    #[test]
    fn machine_name_comes_first_and_options_override_it() {
        let all = typed("moto-g-2014").expect("a machine").spec;
        assert_eq!((all.cores, all.cpu_permille), (Some(4), Some(250)));
        assert_eq!(
            (all.kernel.as_deref(), all.barriers),
            (Some("3.4"), Some(false))
        );
        let more = typed("moto-g-2014,memory=2G,cpu=1").expect("changed").spec;
        assert_eq!(
            (more.memory_bytes, more.cpu_permille),
            (Some(2 << 30), Some(1000))
        );
        assert_eq!(more.kernel, all.kernel);
        for (text, words) in [
            ("laptpo", "did you mean `laptop`?"),
            (
                "memory=2G,laptop",
                "\"laptop\" is neither a machine nor an option of one",
            ),
        ] {
            let e = typed(text).expect_err(text).to_string();
            assert!(e.contains(words), "{text}: {e}");
        }
    }
}
