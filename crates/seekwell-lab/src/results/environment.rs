//! When and where an experiment ran: the only file of a folder with clock times and host data.

use seekwell_core::result::{BUILD, Host};
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// `environment.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// [`super::RESULTS_VERSION`].
    pub schema: u32,
    /// Machines of real runs, in order of appearance; empty in simulation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<Host>,
    /// Sessions: from each start or resumption of the experiment to its end.
    pub sittings: Vec<Sitting>,
}

/// One uninterrupted series of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sitting {
    /// Start, in seconds since 1970.
    pub began_unix_s: u64,
    /// End; absent if the session was killed or still runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_unix_s: Option<u64>,
    /// Version of seekwell.
    pub seekwell: String,
    /// Build of seekwell.
    pub build: String,
    /// Runs that ended in this session.
    pub runs: u64,
}

/// Seconds since 1970; 0 if the clock shows an earlier time.
fn now_unix_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| d.as_secs())
}

impl Environment {
    /// Starts a session.
    pub(super) fn begin(&mut self) {
        self.schema = super::RESULTS_VERSION;
        self.sittings.push(Sitting {
            began_unix_s: now_unix_s(),
            ended_unix_s: None,
            seekwell: env!("CARGO_PKG_VERSION").to_owned(),
            build: BUILD.to_owned(),
            runs: 0,
        });
    }
    /// Ends the session.
    pub(super) fn end(&mut self) {
        if let Some(last) = self.sittings.last_mut() {
            last.ended_unix_s = Some(now_unix_s());
        }
    }
    /// If the last session has no end, it was killed: the runs not counted by other sessions are
    /// its own.
    pub(super) fn killed(&mut self, stored: u64) {
        if let Some((last, before)) = self.sittings.split_last_mut()
            && last.ended_unix_s.is_none()
        {
            last.runs = stored.saturating_sub(before.iter().map(|s| s.runs).sum());
        }
    }
    /// Counts a finished run; returns true if the machine is new.
    pub(super) fn ran(&mut self, host: Option<&Host>) -> bool {
        if let Some(last) = self.sittings.last_mut() {
            last.runs += 1;
        }
        let fresh = host.filter(|h| !self.hosts.contains(h));
        self.hosts.extend(fresh.cloned());
        fresh.is_some()
    }
    /// Start of the experiment, `YYYY-MM-DD hh:mm`, UTC.
    pub fn begun(&self) -> Option<String> {
        let first = self.sittings.first()?;
        Some(date(first.began_unix_s))
    }
    /// End of the last session, or its start if it has not ended, `YYYY-MM-DD hh:mm`, UTC.
    pub fn last(&self) -> Option<String> {
        let last = self.sittings.last()?;
        Some(date(last.ended_unix_s.unwrap_or(last.began_unix_s)))
    }
}

/// Formats seconds since 1970 as `YYYY-MM-DD hh:mm`, UTC, in the Gregorian calendar. Times after
/// the year 9999 give its last minute.
pub(super) fn date(unix_s: u64) -> String {
    let unix_s = unix_s.min(253_402_300_799);
    let (days, s) = (unix_s / 86_400, unix_s % 86_400);
    // Years start in March, so the leap day is last. 719,468 days lie before 1970-01-01.
    let z = days + 719_468;
    let (era, of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    let (h, m) = (s / 3600, s / 60 % 60);
    format!("{year:04}-{month:02}-{day:02} {h:02}:{m:02}")
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (s, text) in [
            (0, "1970-01-01 00:00"),
            (951_782_399, "2000-02-28 23:59"),
            (951_782_400, "2000-02-29 00:00"),
            (951_868_800, "2000-03-01 00:00"),
            (1_735_689_599, "2024-12-31 23:59"),
            (4_107_542_400, "2100-03-01 00:00"),
            (u64::MAX, "9999-12-31 23:59"),
        ] {
            assert_eq!(date(s), text);
        }
    }
}
