//! Records of earlier schemas can still be read.

use seekwell_core::result::{Early, Host, Record, SCHEMA};
use seekwell_core::spec::{DeviceSpec, RunSpec, SchedulerSpec, WorkloadSpec};

/// Written by version 0.1.0 when the schema was 1: fs-mark of three files on a laptop disk.
const SCHEMA_1: &str = include_str!("data/record-schema-1.json");

#[test]
fn record_of_schema_1_is_read_completely() {
    let old: Record = serde_json::from_str(SCHEMA_1).expect("schema 1");
    assert_eq!((old.schema, old.substrate.as_str()), (1, "sim"));
    assert_eq!(
        (old.workload.as_str(), old.params["files"].as_str()),
        ("fs-mark", "3")
    );
    assert_eq!(old.device.spec, "hdd:hitachi-7k200");
    assert_eq!(old.scheduler.tunables["fifo_batch"], "1");
    assert_eq!((old.duration_ns, old.requests), (239_737_926, 823));
    let read_back = old.operation("fsync").expect("measured").latency.count();
    assert_eq!(read_back, 3);
    // Fields that the old record did not have stay absent, also when the record is written again.
    assert!(old.spec.is_none() && old.early.is_none() && old.host.is_none());
    assert_eq!((old.spec_hash.as_str(), old.build.as_str()), ("", ""));
    let again = serde_json::to_value(&old).expect("a record");
    assert!(again.get("spec").is_none() && again.get("host").is_none());
    let before: serde_json::Value = serde_json::from_str(SCHEMA_1).expect("JSON");
    assert_fields_kept("record", &before, &again);
    // Without a clock the whole run counts.
    assert_eq!((old.span_ns(), old.clock_start_ns), (old.duration_ns, None));
}

/// All old fields are present with the same values; there may be new fields.
fn assert_fields_kept(at: &str, before: &serde_json::Value, after: &serde_json::Value) {
    if let Some(all) = before.as_array() {
        assert_eq!(Some(all.len()), after.as_array().map(Vec::len), "{at}");
        for (i, value) in all.iter().enumerate() {
            assert_fields_kept(&format!("{at}[{i}]"), value, &after[i]);
        }
        return;
    }
    let Some(fields) = before.as_object() else {
        return assert_eq!(before, after, "{at}");
    };
    for (name, value) in fields {
        assert_fields_kept(&format!("{at}.{name}"), value, &after[name.as_str()]);
    }
}

#[test]
fn current_record_keeps_its_specification() {
    let device = DeviceSpec {
        spec: "hdd:hitachi-7k200".into(),
        ..DeviceSpec::default()
    };
    let scheduler = SchedulerSpec {
        name: "noop".into(),
        ..SchedulerSpec::default()
    };
    let workload = WorkloadSpec::Script {
        name: "fs-mark".into(),
        params: [("files".to_owned(), "3".to_owned())].into(),
    };
    let spec = RunSpec::new(device, scheduler, workload);
    let record = Record {
        schema: SCHEMA,
        spec_hash: spec.hash(),
        spec: Some(spec),
        early: Some(Early {
            why: "stopped by signal 2".into(),
            at_ns: 7,
            limit: true,
        }),
        host: Some(Host {
            kernel: "6.18".into(),
            cores: 2,
            ..Host::default()
        }),
        ..Record::default()
    };
    let text = serde_json::to_string(&record).expect("a record");
    let back: Record = serde_json::from_str(&text).expect("its own text");
    assert_eq!(
        (&back.spec, &back.early, &back.host),
        (&record.spec, &record.early, &record.host)
    );
    assert_eq!(back.spec.expect("embedded").hash(), back.spec_hash);
}
