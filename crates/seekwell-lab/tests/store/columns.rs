//! docs/results.md, the list of columns and the files must agree.

use super::{bytes, experiment, keys, results};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use seekwell_lab::results::columns::{Column, RUN, TABLES};
use seekwell_lab::results::{EXPERIMENT, EXPERIMENT_TEXT, Folder, HISTOGRAMS, JOURNAL};
use std::path::Path;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results.md");
    std::fs::read_to_string(path).expect("the page")
}

fn row(c: &Column) -> String {
    let null = if c.nullable { " or null" } else { "" };
    format!(
        "| `{}` | {}{null} | {} | {} |",
        c.name,
        c.kind.name(),
        c.unit,
        c.help
    )
}

#[test]
fn results_page_documents_exactly_the_existing_columns() {
    let page = page();
    let (first, rest) = page.split_once("\n### runs.parquet\n").expect("sections");
    let rest = format!("\n### runs.parquet\n{rest}");
    let listed = |text: &str| -> Vec<String> {
        let start = text.find("| column |").expect("a table");
        let rows = text[start..].lines().skip(2);
        rows.take_while(|l| l.starts_with('|'))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(listed(first), RUN.iter().map(row).collect::<Vec<_>>());
    for table in TABLES {
        let head = format!("\n### {}\n", table.file);
        let (_, section) = rest.split_once(&head).expect("a section");
        assert_eq!(
            listed(section),
            table.columns.iter().map(row).collect::<Vec<_>>()
        );
        let told = format!("| `{}` | {} |", table.file, table.help);
        assert!(first.contains(&told), "{told}");
    }
    for name in [EXPERIMENT_TEXT, EXPERIMENT, HISTOGRAMS, JOURNAL] {
        assert!(first.contains(&format!("| `{name}` |")), "{name}");
    }
}

#[test]
fn parquet_files_have_the_listed_columns() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("r");
    let mut folder = Folder::create(&at, &experiment(2)).expect("made");
    keys(2, 5)
        .into_iter()
        .for_each(|k| super::add(&mut folder, k));
    folder
        .finish(&results(&experiment(2), &keys(2, 5)))
        .expect("finished");
    for table in TABLES {
        let file = std::fs::File::open(at.join(table.file)).expect("opened");
        let parquet = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
        let said = parquet.metadata().file_metadata().key_value_metadata();
        let said = said.expect("metadata");
        assert!(said.iter().any(|k| k.key == "seekwell.results"));
        assert!(said.iter().any(|k| k.value.as_deref() == Some(table.file)));
        let fields = parquet.schema().fields().clone();
        let mut listed = RUN.iter().chain(table.columns);
        for field in &fields {
            if field.name() == "axis.clients" {
                assert_eq!(table.file, "runs.parquet");
                continue;
            }
            let c = listed.next().expect("a column that is listed");
            let is = (
                field.name().as_str(),
                field.data_type(),
                field.is_nullable(),
            );
            assert_eq!(is, (c.name, &c.kind.arrow(), c.nullable));
        }
        assert!(listed.next().is_none(), "{}", table.file);
        let rows: usize = parquet
            .build()
            .expect("read")
            .map(|b| b.expect("a batch").num_rows())
            .sum();
        // Two runs failed. They have a table row in two of the files.
        let expected = match table.file {
            "runs.parquet" => 18 * 2 + 2,
            "operations.parquet" => 18 * 3,
            "records.parquet" => 20,
            _ => rows.max(18 * 2),
        };
        assert_eq!(rows, expected, "{}", table.file);
    }
    assert!(bytes(&at)["histograms.hlog"].len() > 18 * 3 * 100);
}

#[test]
fn run_histograms_are_found_by_tag() {
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("r");
    let key = keys(1, 1)[1];
    let mut folder = Folder::create(&at, &experiment(1)).expect("made");
    super::add(&mut folder, key);
    folder
        .finish(&results(&experiment(1), &[key]))
        .expect("finished");
    let log = bytes(&at).remove("histograms.hlog").expect("there");
    let (mut tags, mut counts) = (Vec::new(), Vec::new());
    for entry in IntervalLogIterator::new(&log) {
        let LogEntry::Interval(i) = entry.expect("a line") else {
            continue;
        };
        tags.push(i.tag().expect("a tag").as_str().to_owned());
        use base64::Engine as _;
        let text = base64::engine::general_purpose::STANDARD.decode(i.encoded_histogram());
        let histogram: hdrhistogram::Histogram<u64> =
            hdrhistogram::serialization::Deserializer::new()
                .deserialize(&mut text.expect("base64").as_slice())
                .expect("a histogram");
        counts.push(histogram.len());
        let whole = &super::record(key).operations[0].latency;
        if tags.len() == 3 {
            assert_eq!(histogram.value_at_quantile(0.99), whole.percentile_ns(99.0));
        }
    }
    let ends = [
        "/block/read",
        "/block/write",
        "/workload/write%2C%20a%20file",
    ];
    assert_eq!(tags.len(), 3, "{tags:?}");
    for (tag, end) in tags.iter().zip(ends) {
        assert!(tag.contains("/cfq:x=1/0/") && tag.ends_with(end), "{tag}");
    }
    assert_eq!(counts, [133, 67, 200]);
}
