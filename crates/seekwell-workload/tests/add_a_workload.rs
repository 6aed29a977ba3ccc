//! Checks that the template of docs/add-a-workload.md compiles, passes its own tests, and is quoted
//! there unchanged.

use seekwell_workload::scripts::common;
use seekwell_workload::{Script, register};
use std::sync::Once;

#[path = "add/append_log.rs"]
mod append_log;

/// The part of `seekwell_workload::testing` that the template uses. The template is not in the
/// registry, so it is registered before it runs.
pub mod testing {
    use super::{Once, Script, append_log, register};
    use seekwell_workload::testing::{self, TestMachine};

    pub struct Trial;

    impl Trial {
        pub fn run(name: &str, given: &[(&str, &str)]) -> testing::Trial {
            static ONCE: Once = Once::new();
            ONCE.call_once(|| {
                let script = Script::new(&append_log::WORKLOAD)
                    .on::<TestMachine>(|m, p, dir| Box::pin(append_log::run(m, p, dir)));
                register(script).expect("a new name");
            });
            testing::Trial::run(name, given)
        }
    }
}

#[test]
fn example_workload_rate_counts_durable_records() {
    let given = [("records", "20"), ("group", "20")];
    let few = testing::Trial::run("append-log", &given).metric();
    let given = [("records", "20"), ("group", "1")];
    let many = testing::Trial::run("append-log", &given).metric();
    // An fsync takes 100 us on the test machine.
    assert!(few > 5.0 * many && many < 10_000.0, "{few} {many}");
}

#[test]
fn page_quotes_the_example_workload() {
    let page = include_str!("../../../docs/add-a-workload.md");
    let code = include_str!("add/append_log.rs");
    let blocks = page.split("```rust\n").skip(1);
    let blocks: Vec<&str> = blocks.filter_map(|b| b.split("```").next()).collect();
    assert!(blocks.len() >= 2, "{} blocks", blocks.len());
    for block in blocks {
        assert!(
            code.contains(block),
            "not in tests/add/append_log.rs:\n{block}"
        );
    }
}
