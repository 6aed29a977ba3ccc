//! Tests writeback throttling in the running kernel. After a scheduler is selected, its setting
//! must equal the table that the simulations use. `compare --host` must not change it.

use crate::rig::ran;
use seekwell_host::watch::Ext4;
use seekwell_sched::wbt;
use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `LOOP_CTL_REMOVE` of linux/loop.h.
const LOOP_CTL_REMOVE: rustix::ioctl::Opcode = 0x4C81;

/// Lock for the search for an unused number. Two tests that search at the same time would find the
/// same number.
static ALONE: Mutex<()> = Mutex::new(());

/// A loop device whose number was never used, so that its settings were never written.
struct Fresh {
    number: usize,
    dir: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

impl Fresh {
    fn new(what: &str) -> Option<Fresh> {
        if let Some(why) = crate::disk::missing_requirement(&["losetup", "mkfs.ext4", "debugfs"]) {
            println!("skipped: {what}: {why}");
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let unused = |n: &usize| !Path::new(&format!("/sys/block/loop{n}")).exists();
        let number = (300..400).find(unused).expect("an unused number");
        let dir = std::env::temp_dir().join(format!("seekwell-throttle-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        let image = dir.join("image");
        let file = fs::File::create(&image).expect("a file");
        file.set_len(64 << 20).expect("sparse");
        let f = Fresh {
            number,
            dir,
            _alone: alone,
        };
        let attached = Command::new("losetup").arg(f.node()).arg(&image).status();
        assert!(attached.expect("losetup runs").success());
        if !f.queue().join("wbt_lat_usec").exists() {
            println!("skipped: {what}: this kernel has no writeback throttling");
            return None;
        }
        Some(f)
    }
    fn node(&self) -> PathBuf {
        PathBuf::from(format!("/dev/loop{}", self.number))
    }
    fn queue(&self) -> PathBuf {
        PathBuf::from(format!("/sys/block/loop{}/queue", self.number))
    }
    fn usec(&self) -> u64 {
        let text = fs::read_to_string(self.queue().join("wbt_lat_usec")).expect("it has it");
        text.trim().parse().expect("a number")
    }
    fn write(&self, name: &str, value: &str) {
        fs::write(self.queue().join(name), value).expect(name);
    }
    fn offered(&self) -> Vec<String> {
        let text = fs::read_to_string(self.queue().join("scheduler")).expect("it has it");
        let words = text.split_whitespace();
        words
            .map(|w| w.trim_matches(['[', ']']).to_owned())
            .collect()
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(self.node()).status();
        let control = fs::File::open("/dev/loop-control");
        if let Ok(control) = control {
            // Only this call removes the device, because no program does it.
            #[allow(unsafe_code)]
            // SAFETY: the call takes a number, not a pointer.
            let _ = unsafe {
                let setter =
                    rustix::ioctl::IntegerSetter::<LOOP_CTL_REMOVE>::new_usize(self.number);
                rustix::ioctl::ioctl(control.as_fd(), setter)
            };
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn running_kernels_wbt_defaults_equal_the_table() {
    let Some(f) = Fresh::new("writeback throttling by scheduler") else {
        return;
    };
    // A new loop device is not rotational.
    for name in f.offered() {
        f.write("scheduler", &name);
        assert_eq!(f.usec(), wbt::default_usec(&name, false), "{name}");
    }
    f.write("scheduler", "bfq");
    // The kernel ignores a write of the value that it remembers. It does not ignore that value plus
    // one.
    f.write("wbt_lat_usec", &wbt::FLASH_USEC.to_string());
    assert_eq!(f.usec(), 0);
    f.write(
        "wbt_lat_usec",
        &wbt::opposite_usec("bfq", false).to_string(),
    );
    assert_eq!(f.usec(), wbt::FLASH_USEC + 1);
    // A value that a user wrote is kept. For a rotational disk, the default is different.
    f.write("scheduler", "none");
    assert_eq!(f.usec(), wbt::FLASH_USEC + 1);
    f.write("rotational", "1");
    f.write("wbt_lat_usec", "-1");
    assert_eq!(f.usec(), wbt::default_usec("none", true));
}

#[test]
fn host_experiment_leaves_wbt_unchanged() {
    let Some(f) = Fresh::new("writeback throttling in an experiment") else {
        return;
    };
    f.write("scheduler", "none");
    let at = f.dir.join("mnt");
    fs::create_dir(&at).expect("made");
    let fs_made = Ext4::make(&f.node()).expect("mkfs");
    let mounted = fs_made.mount(&at).expect("mounted");
    let (seen, work) = (f.dir.join("seen"), at.join("work"));
    fs::create_dir(&work).expect("made");
    let look = format!(
        "cmd:cat {0}/scheduler {0}/wbt_lat_usec >> {1}",
        f.queue().display(),
        seen.display()
    );
    let name = format!("loop{}", f.number);
    let results = f.dir.join("results");
    let mut c = Command::new(env!("CARGO_BIN_EXE_seekwell"));
    c.args(["compare", "--host"]).arg(&work);
    c.args(["--confirm", &name, "--seeds", "2", "-q", "-w", &look]);
    c.args([
        "-s",
        "none,mq-deadline,bfq,none:wbt_lat_usec=0,bfq:wbt_lat_usec=2001",
    ]);
    c.arg("--results").arg(&results);
    c.env("SEEKWELL_RUN_DIR", f.dir.join("records"));
    c.env("SEEKWELL_STATE_DIR", f.dir.join("state"));
    let r = ran(c.output().expect("the binary runs"));
    let text = fs::read_to_string(&seen).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let mut all: Vec<(String, String)> = lines
        .chunks(2)
        .map(|pair| {
            let active = pair[0].split('[').nth(1).and_then(|t| t.split(']').next());
            (active.unwrap_or("?").to_owned(), pair[1].to_owned())
        })
        .collect();
    all.sort();
    all.dedup();
    let is = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(
        all,
        [
            is("bfq", "0"),
            is("bfq", "2001"),
            is("mq-deadline", "2000"),
            is("none", "0"),
            is("none", "2000"),
        ],
        "{}{}",
        r.out,
        r.err
    );
    let said = r.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains(
            "Writeback throttling (wbt_lat_usec): none, mq-deadline 2000; bfq, \
             none:wbt_lat_usec=0 off; bfq:wbt_lat_usec=2001 2001."
        ),
        "{said}{}",
        r.err
    );
    assert_eq!(f.usec(), 2000, "as before");
    drop(mounted);
}
