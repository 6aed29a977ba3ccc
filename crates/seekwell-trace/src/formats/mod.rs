//! The formats. Each has its own file or directory.

pub mod alibaba;
pub mod biosnoop;
pub mod blkparse;
pub mod blktrace;
pub mod cachesim;
pub mod csv;
pub mod disksim;
pub mod fiu;
pub mod ftrace;
pub mod iolog;
pub mod iosnoop;
mod lines;
pub mod msr;
pub mod oracle;
pub mod parquet;
pub mod perf;
pub mod spc;
pub mod systor;
pub mod tencent;
mod volumes;
pub mod vscsi;

// The template of docs/add-a-trace-format.md uses items that are private to the crate.
#[cfg(test)]
#[path = "../../tests/add/requests.rs"]
mod example_of_the_page;

#[cfg(test)]
mod tests {
    #[test]
    fn page_quotes_the_example_format() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let read = |path: &str| std::fs::read_to_string(root.join(path)).expect(path);
        let page = read("../../docs/add-a-trace-format.md");
        let code = read("tests/add/requests.rs");
        let blocks = page.split("```rust\n").skip(1);
        let blocks: Vec<&str> = blocks.filter_map(|b| b.split("```").next()).collect();
        assert!(blocks.len() >= 2, "{} blocks", blocks.len());
        for block in blocks {
            assert!(
                code.contains(block),
                "not in tests/add/requests.rs:\n{block}"
            );
        }
    }
}
