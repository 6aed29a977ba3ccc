//! Makes specifications: devices, schedulers, workloads, machines and modes with extreme values and
//! typing errors.

use crate::Dice;
use crate::inputs::mutate;
use seekwell_device::{catalogue, read_preset};
use seekwell_sched::registry;
use seekwell_workload::workloads;

/// A trace that fits every device.
pub const TRACE: &str = "t_ns,op,flags,sector,sectors,pid\n0,R,,400,8,1\n1000,W,sync,800,16,2\n\
    2000,R,,0,64,1\n9000000,F,,0,0,2\n9000100,W,fua,96,8,1\n50000000,R,,1016,8,3\n";

const VALUES: [&str; 24] = [
    "0",
    "1",
    "2",
    "3",
    "7",
    "64",
    "4096",
    "1000000",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "99999999999999999999",
    "-1",
    "1e12",
    "1e308",
    "0.0001",
    "nan",
    "",
    "yes",
    "1GiB",
    "x",
];

fn device(d: &mut Dice, depth: usize) -> String {
    if depth < 3 && d.once_in(4) {
        let inner = device(d, depth + 1);
        let n = d.of(&VALUES);
        let kind = d.of(&[
            "raid0", "raid1", "raid5", "raid6", "raid10", "linear", "remap",
        ]);
        return match d.below(3) {
            0 => format!("virtual:over=({inner}),cache=writeback"),
            1 => format!("controller:of=({inner}),members={n}"),
            _ => format!("{kind}:of=({inner}),members={n}"),
        };
    }
    let all = catalogue();
    let one = &all[d.below(all.len())];
    let mut text = one.name.clone();
    let Ok(preset) = read_preset(&text) else {
        return text;
    };
    for _ in 0..d.below(4) {
        let key = preset.params[d.below(preset.params.len())].def.key;
        let value = d.of(&VALUES);
        text += &format!(",{key}={value}");
    }
    text
}

fn scheduler(d: &mut Dice) -> String {
    let all = registry();
    let one = &all[d.below(all.len())];
    let mut text = one.name.to_owned();
    let Some((info, version, _)) = seekwell_sched::find(one.name) else {
        return text;
    };
    let tunables = (info.tunables)(version);
    for _ in 0..d.below(4) {
        if tunables.is_empty() {
            break;
        }
        let name = tunables[d.below(tunables.len())].name;
        let value = d.of(&VALUES);
        text += &format!(":{name}={value}");
    }
    text
}

fn workload(d: &mut Dice) -> Vec<String> {
    let all = workloads();
    let one = all[d.below(all.len())];
    let mut args = vec![one.name.to_owned()];
    for _ in 0..d.below(3) {
        if one.params.is_empty() {
            break;
        }
        let name = one.params[d.below(one.params.len())].name;
        let value = d.of(&VALUES);
        args.extend(["--param".to_owned(), format!("{name}={value}")]);
    }
    args
}

fn machine(d: &mut Dice) -> String {
    let mut text = String::new();
    for _ in 0..d.below(4) {
        let name = d.of(&[
            "memory", "cache", "cores", "fs", "barriers", "aged", "without", "limit",
        ]);
        let value = match d.below(3) {
            0 => d.of(&[
                "ext3",
                "ext4",
                "no",
                "16M",
                "4096G",
                "readahead",
                "32768",
                "1024",
            ]),
            _ => d.of(&VALUES),
        };
        text += &format!("{name}={value},");
    }
    // Limits the run time.
    text + "limit=1"
}

/// Sometimes changes random letters.
fn mutate_letters(text: String, d: &mut Dice) -> String {
    if !d.once_in(4) {
        return text;
    }
    let mut bytes = text.into_bytes();
    mutate(&mut bytes, d);
    // An argument cannot contain a zero byte, and must not start an option here.
    let text = String::from_utf8_lossy(&bytes).replace('\0', "");
    text.trim_start_matches('-').to_owned()
}

/// Returns the arguments of a command.
pub fn args(d: &mut Dice, trace: &str) -> Vec<String> {
    let device = device(d, 0);
    let device = mutate_letters(device, d);
    let scheduler = scheduler(d);
    let scheduler = mutate_letters(scheduler, d);
    let mut all: Vec<String> = Vec::new();
    match d.below(5) {
        0 => {
            all.extend(["run".to_owned()]);
            all.extend(workload(d));
            let machine = machine(d);
            all.extend(["--machine".to_owned(), machine]);
        }
        1 => {
            all.extend(["devices".to_owned(), device]);
            return all;
        }
        _ => {
            all.extend(["replay".to_owned(), trace.to_owned()]);
            let value = d.of(&VALUES);
            let mode = match d.below(4) {
                0 => "timed".to_owned(),
                1 => format!("scaled:{value}"),
                2 => format!("depth:{value}"),
                _ => mutate_letters("scaled:1/3".to_owned(), d),
            };
            all.push(format!("--mode={mode}"));
        }
    }
    all.extend([
        format!("--device={device}"),
        format!("--schedulers={scheduler}"),
    ]);
    if d.once_in(4) {
        let option = d.of(&[
            "nr-requests",
            "depth",
            "max-sectors-kb",
            "hz",
            "nomerges",
            "seed",
        ]);
        let value = d.of(&VALUES);
        all.push(format!("--{option}={value}"));
    }
    all.extend(["--threads".to_owned(), "1".to_owned()]);
    all
}
