//! Checks the extension module that cargo built with the tests. `scripts/test-python.sh` installs
//! this module. Its behaviour is tested in Python, in this directory.

use std::path::PathBuf;

/// Returns the path of the built module, which is in the directory of this test.
fn built() -> PathBuf {
    let own = std::env::current_exe().expect("a path");
    own.with_file_name("lib_seekwell.so")
}

#[test]
fn extension_module_exports_the_python_entry_point() {
    let file = built();
    let bytes = std::fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    assert_eq!(&bytes[..4], b"\x7fELF");
    let door = b"\0PyInit__seekwell\0";
    assert!(
        bytes.windows(door.len()).any(|w| w == door),
        "{}",
        file.display()
    );
}

/// Checks that the stubs and the module contain the same names. mypy relies on the stubs.
#[test]
fn stubs_name_every_function() {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let read = |f: &str| std::fs::read_to_string(here.join(f)).expect("it is there");
    let lib = read("src/lib.rs");
    let added = lib.split("wrap_pyfunction!(").skip(1);
    let added = added.filter_map(|rest| rest.split(',').next());
    let mut functions: Vec<&str> = added.filter_map(|path| path.rsplit(':').next()).collect();
    let stubs = read("seekwell/_seekwell.pyi");
    let told = stubs.lines().filter_map(|l| l.strip_prefix("def "));
    let mut told: Vec<&str> = told.filter_map(|l| l.split('(').next()).collect();
    functions.sort_unstable();
    told.sort_unstable();
    assert!(functions.len() > 10);
    assert_eq!(functions, told);
}
