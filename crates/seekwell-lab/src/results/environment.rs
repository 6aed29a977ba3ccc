//! When and where an experiment ran. Only this file of a results folder contains clock times and
//! data about the host.

use seekwell_core::result::{BUILD, Host};
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// The content of `environment.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Always [`super::RESULTS_VERSION`].
    pub schema: u32,
    /// The machines of real runs, in the order of their first run; empty for simulations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<Host>,
    /// The sessions of the experiment. A session begins when the experiment is started or resumed.
    #[serde(alias = "sittings")]
    pub sessions: Vec<Session>,
}

/// One session: an uninterrupted series of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Start of the session, in s since 1970.
    pub began_unix_s: u64,
    /// End of the session, in s since 1970. Absent if the session still runs or was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_unix_s: Option<u64>,
    /// Version of seekwell in this session.
    pub seekwell: String,
    /// Build of seekwell in this session.
    pub build: String,
    /// Number of runs that ended in this session.
    pub runs: u64,
}

/// Returns the time in s since 1970; 0 if the clock shows an earlier time.
fn now_unix_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| d.as_secs())
}

impl Environment {
    /// Adds a session that begins at the current time.
    pub(super) fn begin(&mut self) {
        self.schema = super::RESULTS_VERSION;
        self.sessions.push(Session {
            began_unix_s: now_unix_s(),
            ended_unix_s: None,
            seekwell: env!("CARGO_PKG_VERSION").to_owned(),
            build: BUILD.to_owned(),
            runs: 0,
        });
    }
    /// Sets the end of the last session to the current time.
    pub(super) fn end(&mut self) {
        if let Some(last) = self.sessions.last_mut() {
            last.ended_unix_s = Some(now_unix_s());
        }
    }
    /// Corrects the number of runs of a killed session, which has no end time. The session made all
    /// stored runs that no earlier session counted.
    pub(super) fn killed(&mut self, stored: u64) {
        if let Some((last, before)) = self.sessions.split_last_mut()
            && last.ended_unix_s.is_none()
        {
            last.runs = stored.saturating_sub(before.iter().map(|s| s.runs).sum());
        }
    }
    /// Counts a finished run. Returns true if the machine is not in the list yet.
    pub(super) fn ran(&mut self, host: Option<&Host>) -> bool {
        if let Some(last) = self.sessions.last_mut() {
            last.runs += 1;
        }
        let fresh = host.filter(|h| !self.hosts.contains(h));
        self.hosts.extend(fresh.cloned());
        fresh.is_some()
    }
    /// Returns the end of the last session, or its start if it has no end, as `YYYY-MM-DD hh:mm` in
    /// UTC.
    pub fn last(&self) -> Option<String> {
        let last = self.sessions.last()?;
        Some(date(last.ended_unix_s.unwrap_or(last.began_unix_s)))
    }
}

/// Formats a time in s since 1970 as `YYYY-MM-DD hh:mm` in UTC, in the Gregorian calendar. Times
/// after the year 9999 are printed as the last minute of that year.
pub(super) fn date(unix_s: u64) -> String {
    let unix_s = unix_s.min(253_402_300_799);
    let (days, s) = (unix_s / 86_400, unix_s % 86_400);
    // Years begin in March here, so that the leap day is the last day of a year. 719,468 is the
    // number of days from 0000-03-01 to 1970-01-01.
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
    use super::{Environment, date};

    #[test]
    fn dates_follow_the_calendar() {
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

    #[test]
    fn former_name_of_sessions_is_accepted() {
        let session = r#"{ "began_unix_s": 7, "seekwell": "0.1.0", "build": "", "runs": 2 }"#;
        let old = format!(r#"{{ "schema": 1, "sittings": [{session}] }}"#);
        let read: Environment = serde_json::from_str(&old).expect("an environment");
        assert_eq!(read.sessions[0].began_unix_s, 7);
        let written = serde_json::to_string(&read).expect("JSON");
        assert!(written.contains(r#""sessions":"#), "{written}");
    }
}
