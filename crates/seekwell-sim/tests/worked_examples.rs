//! Every case in `cases/` as a test with its own name: the worked examples of the specifications,
//! which `seekwell explain` can read.

use libtest_mimic::{Arguments, Failed, Trial};
use seekwell_microscope::format::CsvOptions;
use seekwell_microscope::{Agreement, Case, read_cases, run};
use std::path::{Path, PathBuf};

fn check(case: &Case) -> Result<(), Failed> {
    let want = case
        .expected()?
        .ok_or("the case expects nothing: give `dispatch`")?;
    let got = run(case, false)?;
    let timers = case.expected_timers();
    let a = Agreement::compare(&want, timers.as_deref(), &got);
    if a.identical() && got.left.iter().map(|b| b.0).eq(case.left.iter().copied()) {
        return Ok(());
    }
    let show = |v: &[(seekwell_core::Instant, Vec<seekwell_core::BioId>)]| {
        let one = |(t, ids): &(seekwell_core::Instant, Vec<seekwell_core::BioId>)| {
            let ids: Vec<_> = ids.iter().map(|b| b.0.to_string()).collect();
            format!("{}@{t}", ids.join("+"))
        };
        v.iter().map(one).collect::<Vec<_>>().join(" ")
    };
    let times = |v: &[seekwell_core::Instant]| {
        v.iter()
            .map(|t| t.to_string())
            .collect::<Vec<_>>()
            .join(" ")
    };
    Err(format!(
        "\nwant {}\n got {}\nwant timers {}\n got timers {}\nleft {:?}",
        show(&want),
        show(&got.dispatch),
        timers.as_deref().map_or("-".to_owned(), times),
        times(&got.timers),
        got.left
    )
    .into())
}

fn main() {
    let args = Arguments::from_args();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
    let mut files: Vec<PathBuf> = match std::fs::read_dir(&dir) {
        Ok(entries) => entries.filter_map(|e| Some(e.ok()?.path())).collect(),
        Err(e) => panic!("{}: {e}", dir.display()),
    };
    files.retain(|f| f.extension().is_some_and(|e| e == "jsonl"));
    files.sort();
    let mut trials = Vec::new();
    for file in files {
        match read_cases(&file, &CsvOptions::default()) {
            Ok(cases) => trials.extend(
                cases
                    .into_iter()
                    .map(|c| Trial::test(c.case.clone(), move || check(&c))),
            ),
            Err(e) => {
                let name = file.display().to_string();
                trials.push(Trial::test(name, move || Err(e.to_string().into())));
            }
        }
    }
    libtest_mimic::run(&args, trials).exit();
}
