//! The tunables in `iosched/`: their table, and functions to read and write them.

use super::context::ONE;
use super::{ASYNC, Anticipatory, SYNC};
use crate::cx::Cx;
use crate::tunable::{INT_MAX, Kind, StoreError, Tunable, legacy_int};

#[rustfmt::skip]
pub(super) const TUNABLES: &[Tunable] = &[
    Tunable::ms("read_expire", "125",
        "Time from the insertion of a sync request to its deadline, and the minimum time between \
         checks of the sync FIFO. It acts as the time slice of competing readers. Longer: more \
         throughput, less fairness."),
    Tunable::ms("write_expire", "250",
        "Time from the insertion of an async request to its deadline, and the minimum time between \
         checks of the async FIFO."),
    Tunable::ms("read_batch_expire", "500",
        "How long a sync batch continues when async requests compete."),
    Tunable::ms("write_batch_expire", "125",
        "Intended length of an async batch; the number of writes in it is adapted to this."),
    Tunable::ms("antic_expire", "6",
        "Longest wait for the next request of the process just served. 0: no waiting, so the \
         scheduler behaves much like deadline. At HZ 250 and 100 the default is one jiffy (4 and \
         10 ms)."),
    Tunable::new("est_time", Kind::ReadOnly, "text", "", (0, 0),
        "Learned statistics: how often new processes exit, with or without a cooperating process, \
         how long they think (in jiffies, although the text says ms), and how far they seek."),
];

impl Anticipatory {
    pub(super) fn show_tunable(&self, cx: &Cx, name: &str) -> Option<String> {
        let jiffies = match name {
            "read_expire" => self.expire_j[SYNC],
            "write_expire" => self.expire_j[ASYNC],
            "read_batch_expire" => self.batch_expire_j[SYNC],
            "write_batch_expire" => self.batch_expire_j[ASYNC],
            "antic_expire" => self.antic_expire_j,
            "est_time" => {
                let g = &self.all;
                return Some(format!(
                    "{} % exit probability\n{} % probability of exiting without a cooperating \
                     process submitting IO\n{} ms new thinktime\n{} sectors new seek distance",
                    100 * g.exit_prob / ONE,
                    100 * g.no_coop / ONE,
                    g.new_tt_mean,
                    g.new_seek_mean
                ));
            }
            _ => return None,
        };
        Some(cx.clock().to_ms(jiffies).to_string())
    }
    pub(super) fn store_tunable(
        &mut self,
        cx: &mut Cx,
        name: &str,
        text: &str,
    ) -> Result<(), StoreError> {
        let jiffies = cx.ms_to_jiffies(legacy_int(text).clamp(0, INT_MAX) as u64);
        *match name {
            "read_expire" => &mut self.expire_j[SYNC],
            "write_expire" => &mut self.expire_j[ASYNC],
            "read_batch_expire" => &mut self.batch_expire_j[SYNC],
            "write_batch_expire" => &mut self.batch_expire_j[ASYNC],
            "antic_expire" => &mut self.antic_expire_j,
            "est_time" => return Err(StoreError::read_only(name)),
            _ => return Err(StoreError::unknown(name)),
        } = jiffies;
        Ok(())
    }
}
