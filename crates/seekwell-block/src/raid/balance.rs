//! The selection of the copy that serves a read.

use seekwell_device::raid::Spot;

/// The rule by which a read selects one of the working copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPolicy {
    /// The rule of md. A sequential stream continues on its member. Otherwise, if any member is
    /// non-rotational, the member with the fewest pending requests is used. Otherwise the member
    /// with the nearest head is used.
    Md,
    /// The copies are used in turn.
    RoundRobin,
    /// The copy with the fewest pending requests, or the first of several such copies.
    FewestPending,
    /// Each member serves its own range of addresses, so that its head moves over short distances.
    Region,
    /// This copy is always used while it works.
    Fixed(usize),
}

/// State for the selection: the last access to each member.
#[derive(Debug)]
pub(super) struct Balance {
    policy: ReadPolicy,
    /// Whether all members are rotational.
    rotating: bool,
    /// Sectors of a member.
    size: u64,
    head: Vec<u64>,
    pending: Vec<u32>,
    turn: usize,
}

impl Balance {
    pub(super) fn new(policy: ReadPolicy, rotating: bool, members: usize, size: u64) -> Self {
        Balance {
            policy,
            rotating,
            size,
            head: vec![0; members],
            pending: vec![0; members],
            turn: 0,
        }
    }
    /// Returns an index into `spots`, which must not be empty.
    pub(super) fn choose(&mut self, spots: &[Spot]) -> usize {
        let all = || spots.iter().enumerate();
        let fewest = |pending: &[u32]| {
            let least = all().min_by_key(|(_, s)| pending[s.member]);
            least.map_or(0, |x| x.0)
        };
        match self.policy {
            ReadPolicy::Md => {
                if let Some((i, _)) = all().find(|(_, s)| self.head[s.member] == s.sector) {
                    return i;
                }
                if !self.rotating {
                    return fewest(&self.pending);
                }
                let near = all().min_by_key(|(_, s)| s.sector.abs_diff(self.head[s.member]));
                near.map_or(0, |x| x.0)
            }
            ReadPolicy::RoundRobin => {
                self.turn = self.turn.wrapping_add(1);
                self.turn % spots.len()
            }
            ReadPolicy::FewestPending => fewest(&self.pending),
            ReadPolicy::Region => {
                let n = spots.len() as u128;
                let part = u128::from(spots[0].sector) * n / u128::from(self.size.max(1));
                (part as usize).min(spots.len() - 1)
            }
            ReadPolicy::Fixed(k) => k.min(spots.len() - 1),
        }
    }
    pub(super) fn sent(&mut self, spot: Spot, sectors: u64) {
        self.head[spot.member] = spot.sector + sectors;
        self.pending[spot.member] += 1;
    }
    pub(super) fn returned(&mut self, member: usize) {
        self.pending[member] -= 1;
    }
}
