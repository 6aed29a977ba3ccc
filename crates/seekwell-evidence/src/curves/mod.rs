//! Plots of device properties. They exist for every device specification, including arrays and
//! guests' disks, which contain queues.

use seekwell_core::{
    Accept, Bio, BioDone, BioId, BioSink, Command, Device, DeviceFacts, Done, Flags, Instant,
    TaskId,
};
use seekwell_device::read_preset;
use seekwell_sim::{Queue, Setup, SetupError};

mod device;

pub use device::{Axis, Curve, Plot};

/// Returns the plots of a device. The queues inside an array, and inside a guest's disk that names
/// no scheduler, have no scheduler.
pub fn pictures(spec: &str) -> Result<Vec<Plot>, SetupError> {
    if let Some(plots) = device::curves(spec)? {
        return Ok(plots);
    }
    let setup = Setup {
        device: spec.to_owned(),
        scheduler: "none".to_owned(),
        ..Setup::default()
    };
    if read_preset(spec)?.kind != "raid" {
        return Ok(device::measured(setup.open_device()?));
    }
    let queue = setup.build()?;
    Ok(device::measured(Array {
        facts: queue.device_facts().clone(),
        queue,
        done: Vec::new(),
        outstanding: 0,
    }))
}

/// An array as a device: each command is submitted as a bio.
struct Array {
    facts: DeviceFacts,
    queue: Queue,
    done: Vec<BioDone>,
    outstanding: u32,
}

impl Device for Array {
    fn accept(&mut self, now: Instant, c: Command) -> Accept {
        if self.outstanding >= self.facts.depth {
            return Accept::Busy;
        }
        self.outstanding += 1;
        let flags = if c.fua { Flags::FUA } else { Flags::SYNC };
        let bio = Bio::new(0, TaskId(1), c.op, flags, c.sector.0, c.sectors.0);
        let id = BioId(u64::from(c.id));
        self.queue.submit(now, Bio { id, ..bio });
        Accept::Accepted
    }
    fn next_event(&self) -> Option<Instant> {
        self.queue.next_event()
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
        self.queue.advance(to, &mut self.done);
        self.outstanding -= self.done.len() as u32;
        out.extend(self.done.drain(..).map(|d| Done {
            id: d.id.0 as u32,
            at: d.at,
            error: d.error,
        }));
    }
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every catalogue entry must have curves that rise above zero.
    #[test]
    fn everything_in_the_catalogue_has_a_picture() {
        for e in seekwell_device::catalogue() {
            let plots = pictures(&e.name).unwrap_or_else(|err| panic!("{}: {err}", e.name));
            assert!(!plots.is_empty());
            for c in plots.iter().flat_map(|p| &p.curves) {
                assert!(c.points.len() >= 2, "{}", e.name);
                let fine = |p: &(f64, f64)| p.0 > 0.0 && p.1 > 0.0 && p.1.is_finite();
                let from = usize::from(c.points[0].0 == 0.0);
                assert!(c.points[from..].iter().all(fine), "{}: {:?}", e.name, c);
            }
        }
    }

    #[test]
    fn an_array_reads_faster_than_its_member() {
        let iops = |spec: &str| {
            let plots = pictures(spec).unwrap();
            let read = &plots[1].curves[0].points;
            read.last().unwrap().1
        };
        let one = iops("constant:depth=32,service_us=1000");
        let four = iops("raid:plain,level=raid0,members=4,of=(constant:depth=32,service_us=1000)");
        assert!(four > 3.0 * one, "{four} against {one}");
    }
}
