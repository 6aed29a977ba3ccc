//! A switch of the scheduler while a run is in progress.

use super::{Kind, Queue, Setup, SetupError};
use seekwell_core::Instant;
use seekwell_core::spec::SpecErrors;
use seekwell_sched::WBT_LAT_USEC;

impl Queue {
    /// Starts a switch to the scheduler and the tunables of another setup. As in the kernel, the
    /// queue is drained first, and the tunables that the setup does not name get their defaults.
    ///
    /// # Errors
    /// The setup is invalid, its scheduler belongs to the other block layer, or the device is an
    /// array.
    pub fn switch(&mut self, now: Instant, to: &Setup) -> Result<(), SetupError> {
        // Building a queue checks the tunables, which are written when the switch ends.
        to.build()?;
        let (info, version, era) = to.info()?;
        let wrong = |why: &str| SpecErrors::single("scheduler", why);
        if to.tunables.iter().any(|t| t.0 == WBT_LAT_USEC.name) {
            let why = "wbt_lat_usec cannot be set for one scheduler of a simulated trial, because it \
                       also affects the later ones";
            return Err(wrong(why).into());
        }
        let hash = (info.hash)(version);
        match &mut self.kind {
            Kind::Array(_) => {
                return Err(wrong(
                    "an array has one scheduler per member, which cannot be switched during a run",
                )
                .into());
            }
            Kind::Mq(q) if era.is_mq() => q.switch(now, hash, move |cx| (info.make)(cx, version)),
            Kind::Legacy(q) if !era.is_mq() => {
                q.switch(now, hash, move |cx| (info.make)(cx, version));
            }
            _ => {
                let why = "a running queue cannot change between the single-queue layer and blk-mq";
                return Err(wrong(why).into());
            }
        }
        self.next = Some(Box::new(to.clone()));
        self.settle(now);
        Ok(())
    }

    /// Writes the tunables of the new scheduler, if the switch has ended.
    #[cold]
    pub(super) fn settle(&mut self, now: Instant) {
        let switching = match &self.kind {
            Kind::Mq(q) => q.switching(),
            Kind::Legacy(q) => q.switching(),
            Kind::Array(_) => false,
        };
        let Some(to) = self.next.take_if(|_| !switching) else {
            return;
        };
        if let Ok((info, ..)) = to.info() {
            self.charge(info);
        }
        // A switch of blk-mq resets the number of requests.
        if let (Some(n), Kind::Mq(q)) = (to.nr_requests, &mut self.kind) {
            let _ = q.set_nr_requests(now, n);
        }
        for (name, text) in &to.tunables {
            // The switch has built a queue with these tunables, so they are valid.
            let _ = self.store(now, name, text);
        }
    }
}
