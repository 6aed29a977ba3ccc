//! `seekwell man [DIRECTORY]`: writes manual pages.

use crate::cli::{Cli, Man};
use crate::fail::Failure;
use crate::out::Out;
use clap::CommandFactory;
use std::path::Path;

/// Prints the main page, or writes all pages to the directory.
pub fn run(a: &Man) -> Result<(), Failure> {
    let command = Cli::command();
    if let Some(dir) = &a.directory {
        let name = dir.display().to_string();
        if !dir.is_dir() {
            return Err(Failure::input(format!(
                "{name}: no such directory; create it first"
            )));
        }
        return pages(command.disable_help_subcommand(true), dir);
    }
    page(clap_mangen::Man::new(command), None)
}

/// Writes a page to a file or to standard output.
fn page(man: clap_mangen::Man, file: Option<&Path>) -> Result<(), Failure> {
    let mut text = Vec::new();
    man.render(&mut text).map_err(|source| Failure::Output {
        what: "manual page".to_owned(),
        source,
    })?;
    let mut out = Out::open(file)?;
    out.text(&String::from_utf8_lossy(&text))?;
    out.done()
}

/// Writes one page per command. The names are those of clap_mangen. Existing files are replaced
/// atomically.
fn pages(mut command: clap::Command, dir: &Path) -> Result<(), Failure> {
    command.build();
    for c in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        pages(c.clone(), dir)?;
    }
    let man = clap_mangen::Man::new(command);
    let file = dir.join(man.get_filename());
    page(man, Some(&file))
}
