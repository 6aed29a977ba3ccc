//! Priorities of single calls (cmdprio).
//!
//! A call has the I/O priority of the task that submits it. So a helper task for each priority
//! submits the calls that have a priority of their own.

use super::job::Dir;
use super::places::Call;
use super::values::Reading;
use crate::fail::{Context, Outcome};
use crate::machine::{Aio, AioRequest, Channel, How, Join, Machine};
use crate::scripts::common::Shared;
use rand::Rng;
use seekwell_core::{IoPrio, Nanos};

/// The priority of a share of the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallPriority {
    /// Length of the calls in bytes; `None`: of any length.
    pub len: Option<u32>,
    /// Percentage of the calls of this length.
    pub percent: u32,
    /// Class and level; `None`: those of the options cmdprio_class and cmdprio.
    pub own: Option<(u8, u8)>,
}

/// The priorities of single calls of a job, for reads and writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Priorities {
    /// The shares of the calls with a priority of their own.
    pub shares: [Vec<CallPriority>; 2],
    /// Option cmdprio_class.
    pub class: [u8; 2],
    /// Option cmdprio.
    pub level: [u8; 2],
}

impl Default for Priorities {
    /// Returns the defaults of fio: no call has a priority of its own; if one has, it is real-time.
    fn default() -> Self {
        Priorities {
            shares: [Vec::new(), Vec::new()],
            class: [1; 2],
            level: [0; 2],
        }
    }
}

impl Priorities {
    /// Sets one of the options cmdprio_percentage, cmdprio_bssplit, cmdprio_class and cmdprio.
    pub(super) fn set(&mut self, key: &str, text: &str, reading: Reading) -> Result<(), String> {
        let bad = || format!("{key}={text}: not valid; see the manual of fio for its form");
        let parts: Vec<&str> = text.split(',').collect();
        if parts.len() > 2 {
            return Err(bad());
        }
        for dir in 0..2 {
            let part = parts.get(dir).or(parts.last()).map_or("", |p| p.trim());
            let number = |most: u32| {
                part.parse::<u32>()
                    .ok()
                    .filter(|n| *n <= most)
                    .ok_or_else(bad)
            };
            match key {
                "cmdprio_class" => self.class[dir] = number(3)? as u8,
                "cmdprio" => self.level[dir] = number(7)? as u8,
                "cmdprio_percentage" => {
                    self.shares[dir] = vec![CallPriority {
                        len: None,
                        percent: number(100)?,
                        own: None,
                    }];
                }
                _ => {
                    let all = part.split(':').map(|p| share(p, reading).ok_or_else(bad));
                    self.shares[dir] = all.collect::<Result<_, _>>()?;
                }
            }
        }
        Ok(())
    }

    /// Returns all priorities of single calls, each once.
    fn all(&self) -> Vec<IoPrio> {
        let mut all = Vec::new();
        for (dir, shares) in self.shares.iter().enumerate() {
            for share in shares.iter().filter(|s| s.percent > 0) {
                let prio = self.of(dir, share);
                if !all.contains(&prio) {
                    all.push(prio);
                }
            }
        }
        all
    }

    fn of(&self, dir: usize, share: &CallPriority) -> IoPrio {
        let (class, level) = share.own.unwrap_or((self.class[dir], self.level[dir]));
        IoPrio::from_numbers(class.into(), level.into()).unwrap_or(IoPrio::NONE)
    }

    /// Returns the priority of the next call, or `None` if it has that of the job.
    fn pick<M: Machine>(&self, m: &mut M, call: &Call) -> Option<IoPrio> {
        let dir = match call.dir {
            Dir::Read => 0,
            Dir::Write => 1,
            Dir::Trim => return None,
        };
        let shares = self.shares[dir].iter();
        let mut shares = shares
            .filter(|s| s.len.is_none_or(|len| len == call.len))
            .peekable();
        shares.peek()?;
        let mut left = m.rng().random_range(0..100u32);
        for share in shares {
            if left < share.percent {
                return Some(self.of(dir, share));
            }
            left -= share.percent;
        }
        None
    }
}

/// Parses "64k/25/1/3": length, percentage, and optionally class, level and hint.
fn share(text: &str, reading: Reading) -> Option<CallPriority> {
    let mut parts = text.split('/');
    let len = reading.bytes(parts.next()?)?;
    let percent = parts
        .next()
        .unwrap_or("100")
        .parse()
        .ok()
        .filter(|n| *n <= 100)?;
    let own = match (parts.next(), parts.next()) {
        (None, _) => None,
        (Some(class), level) => {
            let class = class.parse().ok().filter(|n| *n <= 3)?;
            let level = level?.parse().ok().filter(|n| *n <= 7)?;
            Some((class, level))
        }
    };
    Some(CallPriority {
        len: Some(u32::try_from(len).ok()?),
        percent,
        own,
    })
}

/// A helper task that submits calls with its own priority.
struct Helper {
    prio: IoPrio,
    /// Wakes the helper task, and then the job.
    asked: Channel,
    answered: Channel,
    task: Join,
}

/// The helper tasks of a job.
pub(super) struct Helpers {
    rules: Option<Priorities>,
    helpers: Vec<Helper>,
    request: Shared<Option<AioRequest>>,
}

impl Helpers {
    /// Starts a helper task for each priority.
    pub(super) async fn start<M: Machine>(
        m: &mut M,
        rules: Option<Priorities>,
        aio: Aio,
    ) -> Outcome<Self> {
        let mut all = Helpers {
            helpers: Vec::new(),
            request: Shared::new(None),
            rules,
        };
        let prios = all.rules.as_ref().map_or(Vec::new(), Priorities::all);
        for (n, prio) in prios.into_iter().enumerate() {
            let (asked, answered) = (m.channel(1), m.channel(1));
            let request = all.request.clone();
            let how = How {
                ioprio: prio,
                ..How::named(format!("priority{n}"))
            };
            let script = move |mut m: M| async move {
                while m.recv(asked).await.doing(|| "cmdprio")?.is_some() {
                    if let Some(r) = request.with(Option::take) {
                        m.aio_submit(aio, &[r]).await.doing(|| "submit")?;
                    }
                    m.send(answered, 0).await.doing(|| "cmdprio")?;
                }
                Ok(())
            };
            let task = m
                .spawn(how, script)
                .await
                .doing(|| "start a task for cmdprio")?;
            all.helpers.push(Helper {
                prio,
                asked,
                answered,
                task,
            });
        }
        Ok(all)
    }

    /// Returns the helper that must submit the call, or `None` if the job itself submits the call.
    pub(super) fn pick<M: Machine>(&self, m: &mut M, call: &Call) -> Option<usize> {
        let prio = self.rules.as_ref()?.pick(m, call)?;
        self.helpers.iter().position(|h| h.prio == prio)
    }

    /// Submits a call by a helper, and waits until it is submitted.
    pub(super) async fn submit<M: Machine>(
        &self,
        m: &mut M,
        helper: usize,
        request: AioRequest,
    ) -> Outcome {
        let helper = &self.helpers[helper];
        self.request.with(|r| *r = Some(request));
        m.send(helper.asked, 0).await.doing(|| "cmdprio")?;
        m.recv(helper.answered).await.doing(|| "cmdprio")?;
        Ok(())
    }

    /// Ends the helper tasks.
    pub(super) async fn end<M: Machine>(self, m: &mut M) -> Outcome {
        for helper in self.helpers {
            m.end_channel(helper.asked);
            m.join(helper.task).await?;
        }
        // A task that ends lets others run first.
        m.sleep(Nanos::ZERO).await.doing(|| "cmdprio")
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{none, trial};
    use super::*;

    /// From the manual of fio: the first form uses the default priority, the second its own.
    #[test]
    fn shares_have_the_default_or_their_own_priority() {
        let mut p = Priorities::default();
        let r = Reading::default();
        let text = "64k/25/1/1:64k/75/3/2:1024k/0,1024k/0";
        p.set("cmdprio_bssplit", text, r).expect("valid");
        let one = |percent, own| CallPriority {
            len: Some(65536),
            percent,
            own,
        };
        assert_eq!(
            p.shares[0][..2],
            [one(25, Some((1, 1))), one(75, Some((3, 2)))]
        );
        assert_eq!(p.all().len(), 2);
        p.set("cmdprio_percentage", "20", r).expect("valid");
        p.set("cmdprio_class", "2,3", r).expect("valid");
        assert_eq!(p.all().len(), 2, "one for reads, one for writes");
        for (key, bad) in [
            ("cmdprio_percentage", "101"),
            ("cmdprio_class", "4"),
            ("cmdprio", "x"),
            ("cmdprio_bssplit", "64k/10/1"),
            ("cmdprio_percentage", "1,2,3"),
        ] {
            assert!(p.set(key, bad, r).is_err(), "{key}={bad}");
        }
    }

    #[test]
    fn a_share_of_the_calls_is_submitted_with_the_other_priority() {
        let t = trial(
            "[r]\nrw=randread\nsize=8m\nioengine=libaio\niodepth=4\ndirect=1\n\
             cmdprio_percentage=25\n",
        );
        assert_eq!(t.ops("read"), 2048);
        let mut by = std::collections::BTreeMap::new();
        for c in t.world.log().iter().filter(|c| c.name == "aio_submit") {
            *by.entry(c.task).or_insert(0u32) += 1;
        }
        let counts: Vec<u32> = by.into_values().collect();
        assert_eq!(counts.len(), 2, "{counts:?}");
        let helper = *counts.iter().min().expect("two");
        assert!((430..600).contains(&helper), "{counts:?}");
        let plain = super::super::parse("x.fio", "[r]\nsize=1m\ncmdprio=1\n", &none);
        assert!(plain.is_ok_and(|f| f.jobs[0].priorities.is_some()));
    }
}
