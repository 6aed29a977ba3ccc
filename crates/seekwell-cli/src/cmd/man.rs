//! `seekwell man [DIRECTORY]`

use crate::cli::{Cli, Man};
use crate::fail::Failure;
use crate::out::Out;
use clap::CommandFactory;

/// Prints the page, or writes all of them.
pub fn run(a: &Man) -> Result<(), Failure> {
    let command = Cli::command();
    let failed = |what: String| move |source| Failure::Output { what, source };
    if let Some(dir) = &a.directory {
        let name = dir.display().to_string();
        if !dir.is_dir() {
            return Err(Failure::input(format!(
                "{name}: no such directory; make it first"
            )));
        }
        return clap_mangen::generate_to(command, dir)
            .map_err(failed(format!("{name}: a page cannot be written")));
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut text)
        .map_err(failed("manual page".to_owned()))?;
    let mut out = Out::open(None)?;
    out.text(&String::from_utf8_lossy(&text))?;
    out.done()
}
