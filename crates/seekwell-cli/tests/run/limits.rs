//! No run is endless, and starved tasks are reported.

use crate::{good, scratch, seekwell};
use serde_json::Value;

const STARVING: &str = "random-read:tasks=8";
const ONE_COMMAND: &str = "hdd:hitachi-7k200,depth=1";
const SATA: &str = "ssd:sata-tlc-1t";
const REMARK: &str =
    "! cfq: 5 of 8 readers starved: 4 to 10 operations each while others did 464 to 468";

#[test]
fn starved_tasks_are_named_on_the_first_screen() {
    let args = ["run", STARVING, "-d", ONE_COMMAND, "-s", "cfq,noop", "-q"];
    let text = good(&args);
    assert!(text.contains(REMARK), "{text}");
    assert_eq!(text.matches("starved").count(), 1, "not under noop\n{text}");
    // With a single scheduler, the report contains the scheduler's name too.
    let args = ["run", STARVING, "-d", ONE_COMMAND, "-s", "cfq", "--json"];
    let doc: Value = serde_json::from_str(&good(&args)).expect("JSON");
    let starved = &doc["records"][0]["starved"][0];
    assert_eq!(starved["tasks"], "reader");
    assert_eq!(
        (&starved["starved"], &starved["of"]),
        (&5.into(), &8.into())
    );
    let text = good(&["run", STARVING, "-d", ONE_COMMAND, "-s", "cfq", "-q"]);
    assert!(text.contains(REMARK), "{text}");
}

#[test]
fn starved_tasks_are_named_for_several_seeds_and_on_the_page() {
    let page = scratch("starved.html", b"");
    let args = [
        "compare",
        "-w",
        STARVING,
        "-d",
        ONE_COMMAND,
        "-s",
        "cfq,noop",
        "-q",
        "--seeds",
        "3",
        "--report",
        &page,
    ];
    let text = good(&args);
    let said = "! random-read: cfq: 5 of 8 readers starved: ";
    assert!(text.contains(said), "{text}");
    assert!(text.contains("runs)"), "{text}");
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("cfq: 5 of 8 readers starved: "));
    assert!(!page.contains("noop: 5 of 8 readers starved"));
}

/// Without a scheduler, direct reads always overtook the flushes of this program, because SATA
/// queues no other command with a flush.
#[test]
fn app_start_ends_under_none_on_sata() {
    let start = |scheduler: &str| {
        let args = ["run", "app-start", "-d", SATA, "-s", scheduler, "--json"];
        let doc: Value = serde_json::from_str(&good(&args)).expect("JSON");
        let record = &doc["records"][0];
        assert_eq!(record.get("early"), None, "{scheduler}");
        record["metric"]["value"].as_f64().expect("a time")
    };
    let (throttled, free) = (start("none"), start("none:wbt_lat_usec=0"));
    assert!((1.1..1.2).contains(&throttled), "{throttled}");
    assert!((3.0..3.3).contains(&free), "{free}");
}

#[test]
fn run_at_its_limit_ranks_below_a_finished_run() {
    let of = |command: &'static str| {
        [
            command,
            "-w",
            "app-start",
            "-d",
            SATA,
            "-s",
            "none,bfq",
            "-q",
            "--seeds",
            "3",
            "--machine",
            "limit=22",
        ]
    };
    let r = seekwell(&of("compare"));
    assert_eq!(r.code, 4, "{}", r.err);
    assert!(
        r.err
            .contains("app-start under `none`: stopped at the time limit of 22 s")
    );
    for words in [
        ">17.9 s",
        "bfq ahead, `none` at least ",
        "`none`: 3 of 3 runs not finished after 17.9 s",
    ] {
        assert!(r.out.contains(words), "{words}\n{}", r.out);
    }
    // `recommend` gives an answer.
    let advice = good(&of("recommend"));
    assert!(advice.contains("Take bfq"), "{advice}");
    assert!(advice.contains("at least "), "{advice}");
    // With one seed the conclusion is the same, as far as a single run supports it.
    let args = [
        "run",
        "app-start",
        "-d",
        SATA,
        "-s",
        "none,bfq",
        "-q",
        "--limit",
        "22",
    ];
    let r = seekwell(&args);
    assert_eq!(r.code, 4, "{}", r.err);
    assert!(
        r.out.contains("! `none`: not finished after 17.9 s"),
        "{}",
        r.out
    );
}

#[test]
fn experiment_plan_reports_the_possible_cost_of_starvation() {
    let text = "devices = ['ssd:sata-tlc-1t']\nschedulers = ['none', 'bfq']\nworkload = 'app-start'\n\
                [experiment]\nname = 'starts'\nrepeats = 3\n";
    let file = scratch("starts.toml", text.as_bytes());
    let plan = good(&["compare", &file, "--dry-run"]);
    let plan = plan.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        plan.contains(
            "if schedulers starve the workload, because a starved run continues until its limit"
        ),
        "{plan}"
    );
}
