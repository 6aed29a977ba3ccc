//! A device behaves the same at any time: the same commands take the same times whenever they
//! arrive.

use seekwell_core::{Device, Instant, NSEC_PER_SEC, Nanos, Op};
use seekwell_device::probe::command;
use seekwell_device::{HddParams, hdd::ClosedForms, open, read_preset};

const DEVICES: [&str; 11] = [
    "hdd:hitachi-7k200",
    "hdd:hitachi-7k500,settle_sigma=0.1,p_err=0.01",
    "hdd:exos-x18",
    "hdd:exos-x18,write_cache=no,policy=asptf",
    "hdd:hitachi-7k200,model=fast",
    "ssd:sata3-256-2011",
    "ssd:sata3-256-2011,variant=detailed,state=steady,scale=64",
    "ssd:sata-tlc-1t",
    "emmc:motog-sandisk8",
    "sd:samsung-evoplus32",
    "cloud:aws-gp2-100",
];

/// Returns a time in ns in which a disk makes exactly a whole number of revolutions. Such a time
/// exists because a revolution is a whole number of 1/1024 ns. Other devices have no revolution, so
/// any number will do.
fn whole_turns(spec: &str) -> u64 {
    let preset = match read_preset(spec) {
        Ok(p) if p.kind == "hdd" => p,
        _ => read_preset("hdd:hitachi-7k500").expect("a preset"),
    };
    let p = HddParams::from_preset(&preset).expect("a disk");
    ClosedForms::new(&p).expect("a disk").geometry().turn()
}

/// Ids and latencies of commands in three bursts: at `start`, after `gap`, and after another `gap`.
fn run(spec: &str, start: u64, gap: u64) -> Vec<(u32, u64)> {
    let mut d = open(spec, 7).expect(spec);
    let capacity = d.facts().capacity.0;
    let mut out = Vec::new();
    let mut told = Vec::new();
    let mut id = 0;
    let first = Instant::at_ns(start);
    for burst in 0..3 {
        let from = first + Nanos(burst * gap);
        for k in 0..24u64 {
            let now = from + Nanos(k * 700_000);
            d.advance(now, &mut out);
            let op = if k % 3 == 2 { Op::Write } else { Op::Read };
            let at = (k * k * 7_919 * 8 + burst * 8) % (capacity - 64) / 8 * 8;
            if d.accept(now, command_of(id, op, at)) == seekwell_core::Accept::Accepted {
                id += 1;
            }
        }
        while let Some(t) = d.next_event().filter(|t| t.since(from).0 < gap / 2) {
            d.advance(t, &mut out);
        }
        told.extend(out.drain(..).map(|o| (o.id, o.at.since(from).0)));
    }
    told
}

fn command_of(id: u32, op: Op, lba: u64) -> seekwell_core::Command {
    seekwell_core::Command {
        id,
        ..command(op, lba, 8)
    }
}

#[test]
fn service_times_are_independent_of_the_absolute_time() {
    for spec in DEVICES {
        let turn = whole_turns(spec);
        let gap = 2_000 * turn; // five hours
        let near = run(spec, 0, gap);
        assert!(near.len() > 10, "{spec}: {}", near.len());
        // 2003, 2023, and near the end of the range of signed nanoseconds.
        for at in [
            1 << 53,
            1_700_000_000 * NSEC_PER_SEC,
            8_999_000_000_000_000_000,
        ] {
            let start = at / turn * turn;
            assert_eq!(run(spec, start, gap), near, "{spec} at {start}");
        }
    }
}

#[test]
fn pause_of_years_has_the_effect_of_a_pause_of_hours() {
    for spec in DEVICES {
        let turn = whole_turns(spec);
        let hours = run(spec, 0, 2_000 * turn);
        for years in [1u64 << 53, 4_000_000_000_000_000_000] {
            let gap = years / turn * turn;
            assert_eq!(run(spec, 0, gap), hours, "{spec}: a rest of {gap} ns");
        }
    }
}
