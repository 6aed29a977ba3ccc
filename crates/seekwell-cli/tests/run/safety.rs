//! Devices and pipes that are named as outputs, and other files, are not damaged. A device that is
//! named as an input does not fill the memory. No time is spent on a result that cannot be written.

use crate::{Ran, command, good, ran, scratch, seekwell};
use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An empty directory for one test.
fn directory(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("safety-{name}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a directory");
    dir
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("there").flatten();
    let mut names: Vec<_> = entries
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Creates a device node or a pipe. If this is not allowed, prints a message and returns false.
fn mknod(path: &Path, args: &[&str]) -> bool {
    let made = Command::new("mknod").arg(path).args(args).output();
    let made = made.is_ok_and(|o| o.status.success());
    if !made {
        println!(
            "skipped: {}: mknod {args:?} is not allowed here",
            path.display()
        );
    }
    made
}

/// Runs the binary with at most 20 s of CPU time and 2 GiB of address space. A signal then ends a
/// program that reads a device to its end, or that measures before it checks its output.
fn run_with_limits(args: &[&str]) -> Ran {
    let mut c = Command::new("sh");
    let script = r#"ulimit -t 20; ulimit -v 2097152; exec "$0" "$@""#;
    c.args(["-c", script, env!("CARGO_BIN_EXE_seekwell")])
        .args(args)
        .stdin(Stdio::null());
    ran(c.output().expect("a shell"))
}

#[test]
fn output_to_devices_and_pipes_keeps_the_node() {
    let dir = directory("nodes");
    let list = good(&["schedulers"]);
    let null = dir.join("null");
    if mknod(&null, &["c", "1", "3"]) {
        assert_eq!(good(&["schedulers", "-o", &null.display().to_string()]), "");
        let meta = fs::symlink_metadata(&null).expect("there");
        assert!(meta.file_type().is_char_device() && meta.rdev() == 0x103);
        fs::remove_file(&null).expect("ours");
    }
    let disk = dir.join("disk");
    if mknod(&disk, &["b", "7", "250"]) {
        let r = seekwell(&["schedulers", "-o", &disk.display().to_string()]);
        assert_eq!(r.code, 3, "{}", r.err);
        assert!(
            r.err.contains("block device, whose contents would be lost"),
            "{}",
            r.err
        );
        assert!(
            fs::symlink_metadata(&disk)
                .expect("there")
                .file_type()
                .is_block_device()
        );
        fs::remove_file(&disk).expect("ours");
    }
    let pipe = dir.join("pipe");
    assert!(mknod(&pipe, &["p"]), "everybody may make pipes");
    let to = pipe.display().to_string();
    // A failed command does not wait for a reader of the pipe.
    assert_eq!(
        run_with_limits(&["run", "fs-mark", "-d", "none.toml", "-o", &to]).code,
        2
    );
    let child = command(&["schedulers", "-o", &to]).spawn().expect("runs");
    let mut text = String::new();
    let mut reader = fs::File::open(&pipe).expect("open");
    reader.read_to_string(&mut text).expect("read");
    assert!(child.wait_with_output().expect("ends").status.success());
    assert_eq!(text, list);
    assert_eq!(names(&dir), ["pipe"]);
}

#[test]
fn output_to_a_descriptor_continues_at_its_offset() {
    let dir = directory("descriptors");
    let list = good(&["schedulers"]);
    let file = dir.join("all").display().to_string();
    for (to, redirect) in [
        ("/dev/stdout", ">"),
        ("/dev/fd/3", "3>"),
        ("/proc/self/fd/3", "3>"),
    ] {
        let number = if redirect == ">" { "1" } else { "3" };
        let script = format!(
            r#"{{ echo before >&{number}; "$0" schedulers -o {to}; echo behind >&{number}; }} {redirect}"$1""#
        );
        let o = Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_seekwell"), &file])
            .output()
            .expect("a shell");
        assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
        let text = fs::read_to_string(&file).expect("there");
        assert_eq!(text, format!("before\n{list}behind\n"), "{to}");
    }
    // The output is a pipe, as with `| less`.
    assert_eq!(good(&["schedulers", "-o", "/dev/stdout"]), list);
    assert_eq!(good(&["schedulers", "-o", "-"]), list);
    assert_eq!(names(&dir), ["all"]);
}

#[test]
fn output_through_a_link_replaces_the_target_with_owner_and_mode() {
    let dir = directory("links");
    let at = |name: &str| dir.join(name);
    fs::create_dir(at("sub")).expect("made");
    fs::write(at("sub/file"), "old").expect("written");
    fs::set_permissions(at("sub/file"), fs::Permissions::from_mode(0o640)).expect("ours");
    let root = rustix::process::geteuid().is_root();
    if root {
        std::os::unix::fs::chown(at("sub/file"), Some(65_534), Some(65_533)).expect("root");
    } else {
        println!("skipped: another owner: not root");
    }
    symlink("sub/file", at("link")).expect("linked");
    symlink("sub/new", at("dangling")).expect("linked");
    let planted = format!(".link.{}.part", std::process::id());
    symlink("sub/victim", at(&planted)).expect("linked");
    let list = good(&["schedulers"]);
    for (link, file) in [("link", "sub/file"), ("dangling", "sub/new")] {
        let before = fs::metadata(at(file)).ok();
        good(&["schedulers", "-o", &at(link).display().to_string()]);
        assert!(
            fs::symlink_metadata(at(link)).expect("there").is_symlink(),
            "{link}"
        );
        assert_eq!(fs::read_to_string(at(file)).expect("there"), list);
        if let Some(before) = before {
            let after = fs::metadata(at(file)).expect("there");
            assert_ne!(before.ino(), after.ino(), "replaced in one step");
            assert_eq!(
                (before.mode(), before.uid(), before.gid()),
                (after.mode(), after.uid(), after.gid())
            );
        }
    }
    assert_eq!(names(&at("sub")), ["file", "new"]);
    assert_eq!(names(&dir), [&*planted, "dangling", "link", "sub"]);
}

#[test]
fn manual_pages_are_written_like_other_outputs() {
    let dir = directory("man");
    fs::write(dir.join("mine"), "old").expect("written");
    symlink("mine", dir.join("seekwell.1")).expect("linked");
    good(&["man", &dir.display().to_string()]);
    assert!(
        fs::symlink_metadata(dir.join("seekwell.1"))
            .expect("there")
            .is_symlink()
    );
    let page = fs::read_to_string(dir.join("mine")).expect("there");
    assert!(page.contains(".TH"), "{page}");
    let all = names(&dir);
    assert!(all.contains(&"seekwell-explain.1".to_owned()), "{all:?}");
    assert!(
        all.iter().all(|n| n == "mine" || n.ends_with(".1")),
        "{all:?}"
    );
}

/// Long commands check their output first. Otherwise the CPU limit would end each of these
/// commands, or the command would report the bad input.
#[test]
fn unwritable_output_is_reported_before_any_measurement() {
    let dir = directory("early");
    let trace = scratch("safety-none.csv", b"");
    let bad = dir.join("none/out").display().to_string();
    let here = dir.display().to_string();
    let image = scratch("safety-image", &[0; 8192]);
    let commands: [&[&str]; 9] = [
        &["compare", "-w", "fs-mark:files=1000000", "-o"],
        &["run", "fs-mark:files=1000000", "-o"],
        &["run", "fs-mark:files=100000", "--dir", &here, "-o"],
        &["replay", &trace, "-o"],
        &["demo", "all", "--seeds", "1000", "-o"],
        &["explain", &trace, "--all", "-o"],
        &["calibrate", "hdd:hitachi-7k500", "-o"],
        &["devices", "--validate", "-o"],
        &["convert", &trace, "--to", "csv", "-o"],
    ];
    for c in commands {
        let r = run_with_limits(&[c, &[&bad]].concat());
        assert_eq!((r.code, &*r.out), (3, ""), "{c:?}: {}", r.err);
        assert!(
            r.err.contains("none/out: cannot be written: No such file"),
            "{c:?}: {}",
            r.err
        );
        let r = run_with_limits(&[c, &[&here]].concat());
        assert_eq!(r.code, 3, "{c:?} into a directory: {}", r.err);
    }
    let r = run_with_limits(&["calibrate", &image, "--plot", &bad]);
    assert_eq!(r.code, 3, "{}", r.err);
    assert_eq!(names(&dir), [""; 0], "asking leaves nothing");
}

#[test]
fn output_that_would_overwrite_an_input_is_rejected() {
    let dir = directory("apart");
    let at = |name: &str| dir.join(name).display().to_string();
    let trace = "t_ns,op,sector,sectors\n0,R,400,8\n";
    fs::write(at("t.csv"), trace).expect("written");
    fs::hard_link(at("t.csv"), at("hard")).expect("linked");
    symlink("t.csv", at("soft")).expect("linked");
    fs::write(at("d.toml"), "precious").expect("written");
    fs::write(at("j.fio"), "[a]\nrw=read\nsize=1m\n").expect("written");
    let device = format!("{},rpm=7200", at("d.toml"));
    for args in [
        vec!["replay", &at("t.csv"), "-s", "noop", "-o", &at("t.csv")],
        vec!["replay", &at("t.csv"), "-s", "noop", "-o", &at("hard")],
        vec!["replay", &at("soft"), "-s", "noop", "-o", &at("t.csv")],
        vec!["explain", &at("t.csv"), "-o", &at("soft")],
        vec!["replay", &at("t.csv"), "-d", &device, "-o", &at("d.toml")],
        vec!["devices", &at("d.toml"), "-o", &at("d.toml")],
        vec!["devices", &at("d.toml"), "--plot", &at("d.toml")],
        vec![
            "devices",
            "hdd:hitachi-7k200",
            "--plot",
            &at("x"),
            "-o",
            &at("x"),
        ],
        vec!["calibrate", &at("t.csv"), "-o", &at("hard")],
        vec!["convert", &at("soft"), "-o", &at("t.csv")],
        vec!["compare", "-w", &at("j.fio"), "-o", &at("j.fio")],
        vec!["run", &at("j.fio"), "-s", "noop", "-o", &at("j.fio")],
    ] {
        let r = run_with_limits(&args);
        assert_eq!((r.code, &*r.out), (2, ""), "{args:?}: {}", r.err);
        assert!(r.err.contains("the same file as"), "{args:?}: {}", r.err);
    }
    assert_eq!(fs::read_to_string(at("t.csv")).expect("there"), trace);
    assert_eq!(fs::read_to_string(at("d.toml")).expect("there"), "precious");
    assert_eq!(names(&dir), ["d.toml", "hard", "j.fio", "soft", "t.csv"]);
}

#[test]
fn device_node_in_place_of_a_file_is_not_read() {
    let dir = directory("kinds");
    let at = |name: &str| dir.join(name).display().to_string();
    symlink("/dev/zero", at("zero.fio")).expect("linked");
    fs::write(at("includes.fio"), "include /dev/zero\n[a]\nrw=read\n").expect("written");
    fs::write(at("big.toml"), vec![b'#'; (1 << 20) + 1]).expect("written");
    fs::write(at("big.fio"), vec![b'#'; (1 << 20) + 1]).expect("written");
    fs::write(at("bytes.toml"), b"kind = 1\n\xff").expect("written");
    assert!(mknod(&dir.join("pipe"), &["p"]));
    let here = at("");
    let zero = "is a character device, not a file";
    let mut all = vec![
        (vec!["devices", "/dev/zero"], zero),
        (vec!["replay", "/dev/zero", "-f", "csv"], zero),
        (vec!["replay", "/dev/zero"], zero),
        (vec!["explain", "/dev/zero"], zero),
        (vec!["convert", "/dev/zero", "-f", "csv"], zero),
        (vec!["explain", &here], "is a directory, not a file"),
        (vec!["replay", &here], "is a directory, not a file"),
        (vec!["devices", &here], "is a directory, not a file"),
    ];
    let (pipe, big, bytes) = (at("pipe"), at("big.toml"), at("bytes.toml"));
    all.push((vec!["devices", &pipe], "is a pipe, not a file"));
    all.push((vec!["run", "seeker", "-d", "/dev/zero"], zero));
    all.push((vec!["compare", "-d", "/dev/urandom"], zero));
    all.push((vec!["devices", &big], "is larger than 1024 KiB"));
    all.push((vec!["devices", &bytes], "line 2 is not text"));
    let (job, includes, long) = (at("zero.fio"), at("includes.fio"), at("big.fio"));
    all.push((vec!["run", &job], zero));
    all.push((vec!["compare", "-w", &job], zero));
    all.push((vec!["run", &includes], zero));
    all.push((vec!["run", &long], "is larger than 1024 KiB"));
    for (args, words) in all {
        let r = run_with_limits(&args);
        assert_eq!((r.code, &*r.out), (2, ""), "{args:?}: {}", r.err);
        assert!(r.err.contains(words), "{args:?}: {}", r.err);
        assert!(r.err.contains("; "), "{args:?}: no remedy: {}", r.err);
    }
    let disk = dir.join("disk");
    if mknod(&disk, &["b", "7", "250"]) {
        let disk = disk.display().to_string();
        let remedy = format!("measure it first (`seekwell calibrate {disk} -o mine.toml`)");
        for args in [["devices", &disk], ["compare", &*format!("-d{disk}")]] {
            let r = run_with_limits(&args);
            assert_eq!((r.code, &*r.out), (2, ""), "{args:?}: {}", r.err);
            assert!(r.err.contains("is a block device, not a file"), "{}", r.err);
            assert!(r.err.contains(&remedy), "{}", r.err);
        }
        let r = run_with_limits(&["replay", &disk]);
        assert!(r.err.contains("record its requests"), "{}", r.err);
        fs::remove_file(disk).expect("ours");
    }
}

/// Lines without end come from a pipe, and from a file that unpacks to a thousand times its size.
#[test]
fn endless_lines_are_rejected_in_bounded_memory() {
    let zeros = zstd::encode_all(&vec![b'x'; 64 << 20][..], 3).expect("packed");
    let packed = scratch("safety-long.zst", &zeros);
    for args in [
        vec!["explain", &packed],
        vec!["replay", &packed, "-f", "csv"],
    ] {
        let r = run_with_limits(&args);
        assert_eq!((r.code, &*r.out), (2, ""), "{args:?}: {}", r.err);
        assert!(r.err.len() < 400, "{args:?}: {}", r.err);
    }
    let script = r#"ulimit -t 20; ulimit -v 2097152; "$0" explain /dev/stdin </dev/zero |
        cat; tr '\0' x </dev/zero | "$0" explain /dev/stdin"#;
    let o = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_seekwell")])
        .output()
        .expect("a shell");
    let err = String::from_utf8_lossy(&o.stderr);
    assert_eq!(o.status.code(), Some(2), "{err}");
    assert!(err.contains("is a character device"), "{err}");
    assert!(err.contains("longer than 16 MiB"), "{err}");
    // Here the file contains many valid lines.
    let case =
        b"{\"case\":\"a\",\"elevator\":\"noop\",\"hz\":1000,\"input\":[[0,1,1,\"R\",8,8]]}\n";
    let many = zstd::encode_all(&case.repeat((33 << 20) / case.len())[..], 3).expect("packed");
    let r = run_with_limits(&["explain", &scratch("safety-many.zst", &many)]);
    assert_eq!(r.code, 2, "{}", r.err);
    assert!(r.err.contains("more than 32 MiB of cases"), "{}", r.err);
}
