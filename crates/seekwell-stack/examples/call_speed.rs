//! Simulated operations per second of the kernel model alone, on one core.

use seekwell_core::{
    Bio, BioDone, BioSink, Control, Era, Instant, Nanos, OpenFlags, Sector, TaskId,
};
use seekwell_stack::{Call, Config, Fd, Kernel, Ret, TaskConfig};
use std::collections::VecDeque;

/// A sink on which every bio takes 50 us, any number in parallel.
#[derive(Default)]
struct Constant(VecDeque<BioDone>);

impl BioSink for Constant {
    fn submit(&mut self, now: Instant, bio: Bio) {
        self.0.push_back(BioDone {
            id: bio.id,
            at: now + Nanos(50_000),
            error: false,
        });
    }
    fn next_event(&self) -> Option<Instant> {
        self.0.front().map(|d| d.at)
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<BioDone>) {
        while let Some(d) = self.0.front().filter(|d| d.at <= to) {
            out.push(*d);
            self.0.pop_front();
        }
    }
    fn control(&mut self, _: Instant, _: Control) {}
    fn capacity(&self) -> Sector {
        Sector(100 << 21)
    }
}

fn one(k: &mut Kernel, t: TaskId, c: Call, out: &mut Vec<(TaskId, Ret)>) -> Ret {
    k.call(k.now(), t, c);
    while out.is_empty() {
        let at = k.next_event().expect("the call ends");
        k.advance(at, out);
    }
    out.pop().expect("just seen").1
}

/// CPU time of this thread, which does not depend on other load.
fn cpu_secs() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|n| n.parse::<f64>().ok());
    ns.expect("schedstat begins with nanoseconds") / 1e9
}

fn measure(name: &str, n: u64, mut op: impl FnMut(u64)) {
    let begun = cpu_secs();
    (0..n).for_each(&mut op);
    let secs = (cpu_secs() - begun).max(1e-9);
    println!("{name:32} {:8.2} M operations/s", n as f64 / secs / 1e6);
}

fn main() {
    for era in [Era::K3_4, Era::Mq6_18] {
        println!("{}", era.name());
        let mut k = Kernel::new(Config::new(era), Box::<Constant>::default());
        let t = k.task_new(k.now(), TaskConfig::default());
        let mut out = Vec::new();
        let open = Call::Open {
            path: "/f".into(),
            flags: OpenFlags::CREATE,
        };
        let fd = Fd(one(&mut k, t, open, &mut out).expect("opens") as u32);
        let write = |off, len| Call::Write { fd, off, len };
        one(&mut k, t, write(0, 64 << 20), &mut out).expect("writes");
        measure("cached reads of 4 KiB", 3_000_000, |i| {
            let off = (i * 7919 % 16_384) * 4096;
            one(&mut k, t, Call::Read { fd, off, len: 4096 }, &mut out).expect("reads");
        });
        measure("cached overwrites of 8 KiB", 2_000_000, |i| {
            let off = (i * 7919 % 8_000) * 8192;
            one(&mut k, t, write(off, 8192), &mut out).expect("writes");
        });
        measure("compute", 3_000_000, |_| {
            one(&mut k, t, Call::Compute(Nanos(1000)), &mut out).expect("computes");
        });
        measure("write 8 KiB and fdatasync", 200_000, |i| {
            one(&mut k, t, write(i % 1000 * 8192, 8192), &mut out).expect("writes");
            one(&mut k, t, Call::Fdatasync { fd }, &mut out).expect("syncs");
        });
        measure("direct reads of 4 KiB", 500_000, |i| {
            let off = (i * 7919 % 16_384) * 4096;
            let read = Call::RawRead {
                off,
                len: 4096,
                direct: true,
            };
            one(&mut k, t, read, &mut out).expect("reads");
        });
        measure("create, write 4 KiB, close", 100_000, |i| {
            let open = Call::Open {
                path: format!("/g{i}").into(),
                flags: OpenFlags::CREATE,
            };
            let fd = Fd(one(&mut k, t, open, &mut out).expect("opens") as u32);
            let write = Call::Write {
                fd,
                off: 0,
                len: 4096,
            };
            one(&mut k, t, write, &mut out).expect("writes");
            one(&mut k, t, Call::Close { fd }, &mut out).expect("closes");
        });
        println!("simulated {:.1} s", k.now().since_start() as f64 / 1e9);
    }
}
