use super::*;
use std::fs;
use std::os::unix::fs::symlink;

fn put(path: &Path, text: &str) -> io::Result<()> {
    let mut s = Sink::open(path)?;
    s.write_all(text.as_bytes())?;
    s.finish()
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("there").flatten();
    let mut names: Vec<_> = entries
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("readable")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("ours");
}

#[test]
fn file_is_replaced_atomically_and_keeps_its_mode() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("file");
    fs::write(&path, "old and longer").expect("written");
    set_mode(&path, 0o640);
    let before = fs::metadata(&path).expect("there").ino();
    let mut s = Sink::open(&path).expect("open");
    s.write_all(b"new").expect("written");
    assert_eq!(text(&path), "old and longer", "not before the end");
    s.finish().expect("replaced");
    assert_eq!((text(&path).as_str(), mode(&path)), ("new", 0o640));
    let after = fs::metadata(&path).expect("there").ino();
    assert_ne!(before, after, "in one step");
    // If the sink is dropped without `finish`, the file is unchanged and no temporary file remains.
    let mut s = Sink::open(&path).expect("open");
    s.write_all(b"half").expect("written");
    drop(s);
    assert_eq!(text(&path), "new");
    assert_eq!(names(dir.path()), ["file"]);
}

#[test]
fn new_file_has_the_users_default_mode() {
    let dir = tempfile::tempdir().expect("a directory");
    let (ours, plain) = (dir.path().join("ours"), dir.path().join("plain"));
    put(&ours, "x").expect("written");
    fs::write(&plain, "x").expect("written");
    assert_eq!(mode(&ours), mode(&plain), "0666 without the umask");
    assert_eq!(names(dir.path()), ["ours", "plain"]);
}

#[test]
fn symbolic_links_are_preserved() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("sub")).expect("made");
    fs::write(at("sub/file"), "old").expect("written");
    symlink("sub/file", at("link")).expect("linked");
    symlink("sub/none", at("dangling")).expect("linked");
    put(&at("link"), "new").expect("written");
    put(&at("dangling"), "made").expect("written");
    for (link, file, is) in [
        ("link", "sub/file", "new"),
        ("dangling", "sub/none", "made"),
    ] {
        assert!(fs::symlink_metadata(at(link)).expect("there").is_symlink());
        assert_eq!(text(&at(file)), is);
    }
    assert_eq!(names(&at("sub")), ["file", "none"]);
}

#[test]
fn planted_link_at_the_temporary_name_is_not_followed() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    fs::write(at("victim"), "precious").expect("written");
    // An attacker plants a link under a predictable temporary name.
    let planted = format!(".out.{}.part", std::process::id());
    symlink("victim", at(&planted)).expect("linked");
    put(&at("out"), "new").expect("written");
    assert_eq!(text(&at("victim")), "precious");
    assert_eq!(text(&at("out")), "new");
}

#[test]
fn pipes_and_devices_are_written_in_place() {
    let dir = tempfile::tempdir().expect("a directory");
    let pipe = dir.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::from_raw_mode(0o600)).expect("a pipe");
    // The check of a pipe without a reader does not block.
    crate::check(&pipe).expect("may be written");
    let reader = {
        let pipe = pipe.clone();
        std::thread::spawn(move || fs::read_to_string(pipe).expect("read"))
    };
    put(&pipe, "through").expect("written");
    assert_eq!(reader.join().expect("no panic"), "through");
    put(Path::new("/dev/null"), "nothing").expect("swallowed");
    let null = fs::metadata("/dev/null").expect("there");
    assert_eq!(Kind::from_metadata(&null), Kind::CharDevice);
    assert_eq!(names(dir.path()), ["pipe"]);
}

#[test]
fn open_descriptor_is_written_from_its_offset() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(b"before ").expect("written");
    let fd = file.as_file().as_raw_fd();
    put(Path::new(&format!("/proc/self/fd/{fd}")), "ours ").expect("written");
    put(Path::new(&format!("/dev/fd/{fd}")), "twice ").expect("written");
    file.write_all(b"behind").expect("written");
    assert_eq!(text(file.path()), "before ours twice behind");
    let reading = File::open(file.path()).expect("open");
    let e = put(Path::new(&format!("/dev/fd/{}", reading.as_raw_fd())), "x");
    assert_eq!(e.expect_err("read only").raw_os_error(), Some(libc::EBADF));
}

#[test]
fn extended_attributes_are_preserved() {
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
    let path = dir.path().join("file");
    fs::write(&path, "old").expect("written");
    let set = |value: &[u8]| {
        let f = File::open(&path).expect("open");
        rustix::fs::fsetxattr(&f, "user.seekwell", value, XattrFlags::empty())
    };
    if let Err(e) = set(b"kept") {
        println!("skipped: attributes: this file system has none: {e}");
        return;
    }
    put(&path, "new").expect("written");
    let mut value = [0; 16];
    let f = File::open(&path).expect("open");
    let n = rustix::fs::fgetxattr(&f, "user.seekwell", &mut value[..]).expect("kept");
    assert_eq!((&value[..n], text(&path).as_str()), (&b"kept"[..], "new"));
}

#[test]
fn file_in_an_unwritable_directory_is_written_in_place() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("file");
    fs::write(&path, "old and longer").expect("written");
    let into = in_place(&path).expect("open");
    let before = fs::metadata(&path).expect("there").ino();
    let mut s = Sink(To::Copy {
        collected: tempfile::tempfile().expect("a file"),
        into,
    });
    s.write_all(b"new").expect("written");
    assert_eq!(text(&path), "old and longer", "not before the end");
    s.finish().expect("copied");
    assert_eq!(text(&path), "new");
    assert_eq!(before, fs::metadata(&path).expect("there").ino());
}

#[test]
fn check_changes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    fs::write(at("file"), "old").expect("written");
    let before = fs::metadata(at("file")).expect("there").mtime_nsec();
    crate::check(&at("file")).expect("may be written");
    crate::check(&at("new")).expect("may be made");
    assert_eq!(names(dir.path()), ["file"]);
    let after = fs::metadata(at("file")).expect("there").mtime_nsec();
    assert_eq!((text(&at("file")).as_str(), after), ("old", before));
    for (path, kind) in [
        (at("none/file"), io::ErrorKind::NotFound),
        (dir.path().to_owned(), io::ErrorKind::IsADirectory),
        (at("file/x"), io::ErrorKind::NotADirectory),
    ] {
        assert_eq!(crate::check(&path).expect_err("refused").kind(), kind);
    }
}

#[test]
fn streamed_output_is_visible_immediately() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    fs::write(at("log"), "old and longer").expect("written");
    set_mode(&at("log"), 0o600);
    symlink("log", at("link")).expect("linked");
    let mut f = stream(&at("link")).expect("open");
    f.write_all(b"new").expect("written");
    assert_eq!(
        (text(&at("log")).as_str(), mode(&at("log"))),
        ("new", 0o600)
    );
    stream(&at("fresh")).expect("made");
    assert_eq!(names(dir.path()), ["fresh", "link", "log"]);
}

#[test]
fn sweep_removes_only_temporary_files_of_killed_writers() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    for name in [".seekwell-a1B2c3.part", ".seekwell-x", "a.part", "kept"] {
        fs::write(at(name), "x").expect("written");
    }
    fs::create_dir(at(".seekwell-dir.part")).expect("made");
    symlink(at("kept"), at(".seekwell-link.part")).expect("made");
    assert_eq!(sweep(dir.path()).expect("swept"), 1);
    assert_eq!(
        names(dir.path()),
        [
            ".seekwell-dir.part",
            ".seekwell-link.part",
            ".seekwell-x",
            "a.part",
            "kept"
        ]
    );
}
