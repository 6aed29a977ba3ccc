//! The scenes: a device, its queue, and tasks with their requests. All random numbers come from a
//! generator with a fixed seed, so that a scene is always the same.

use seekwell_core::{Class, Flags, IoPrio, Op, Policy};

/// A small random generator (xorshift with a multiplication).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n.max(1)
    }
    pub fn percent(&mut self, p: u64) -> bool {
        self.below(100) < p
    }
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// The place of the next bio of a task.
#[derive(Clone, Copy, Debug)]
pub enum Places {
    /// After the previous bio.
    Onward,
    /// Before the previous bio.
    Backward,
    /// `n` times the length after the previous bio: `n` such tasks read one file together.
    Strided(u64),
    /// Anywhere in this many sectors.
    Random(u64),
    /// At most this many sectors before or after the previous bio.
    Near(u64),
    /// Like `Strided`, but now and then the task works elsewhere for a while.
    Together(u64),
    /// Pairs with a gap between them, and then the bio that fills the gap.
    Gaps,
    /// At one of the distances that schedulers compare with, before or after the previous bio of the
    /// task or of any task.
    Grid,
}

/// The distances that schedulers compare with, in sectors, and some that are close to them.
const DISTANCES: &[u64] = &[
    0, 0, 8, 64, 100, 128, 400, 792, 800, 808, 1024, 2048, 4096, 8184, 8192, 8200, 16_384, 32_768,
    131_072, 131_080,
];

/// A task and the bios that it submits.
#[derive(Clone, Debug)]
pub struct Task {
    pub places: Places,
    pub position: u64,
    /// Percentages of reads and of discards. The rest are writes.
    pub reads: u64,
    pub discards: u64,
    pub flags: Flags,
    /// Percentage of bios that have the flags.
    pub flagged: u64,
    pub sizes: &'static [u32],
    /// Bios at once, and the largest number of bios that are not completed.
    pub burst: u64,
    pub outstanding: u64,
    /// Time between a completion and the next bio, us.
    pub think_us: &'static [u64],
    pub start_us: u64,
    pub bios: u64,
    pub prio: IoPrio,
    pub nice: i8,
    pub policy: Policy,
    pub cgroup: u32,
    pub cpu: u16,
    /// The task exits after its last bio.
    pub exits: bool,
    /// Uses the io context of this task.
    pub shares: Option<usize>,
    pub random: Random,
}

/// What a task is like.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    Reader,
    Seeker,
    Writer,
    Syncer,
    Logger,
    Thinker,
    Starter,
    Player,
    Cooperator(u64),
    Backward,
    Near,
    Trimmer,
    Prefetcher,
    Mixer,
    Wanderer(u64),
    Filler,
    Grid,
    GridWriter,
    GridSync,
    Returner,
    Steady,
}

/// An event that does not come from a task's bios.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    Prio(usize, IoPrio),
    Exit(usize),
    Move(usize, u32),
    Weight(u32, u32),
    Offline(u32),
    Requests(u32),
    Drain,
    /// Writes the default value of each tunable.
    Defaults,
}

/// Time of a request in the device, us.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    pub base_us: u64,
    /// The longest seek; 0: flash.
    pub seek_us: u64,
    pub ns_per_sector: u64,
    /// Requests served at the same time.
    pub channels: usize,
}

pub const DISK: Service = Service {
    base_us: 900,
    seek_us: 9000,
    ns_per_sector: 4000,
    channels: 1,
};
pub const SLOW: Service = Service {
    base_us: 20_000,
    seek_us: 90_000,
    ns_per_sector: 9000,
    channels: 1,
};
pub const FLASH: Service = Service {
    base_us: 80,
    seek_us: 0,
    ns_per_sector: 900,
    channels: 4,
};
pub const STEPS: Service = Service {
    base_us: 1000,
    seek_us: 4000,
    ns_per_sector: 0,
    channels: 1,
};
pub const CARD: Service = Service {
    base_us: 700,
    seek_us: 0,
    ns_per_sector: 25_000,
    channels: 1,
};

/// A scene.
#[derive(Clone, Debug)]
pub struct Scene {
    pub name: &'static str,
    pub seed: u64,
    pub rotational: bool,
    pub depth: u32,
    pub hz: u32,
    pub hctxs: u16,
    pub cpus: u16,
    pub requests: u32,
    pub max_sectors: u32,
    pub max_segments: u32,
    pub service: Service,
    pub roles: &'static [Role],
    /// Classes and levels of the tasks, in turn.
    pub prios: &'static [(Class, u8)],
    pub cgroups: u32,
    /// One request in this many is returned by the driver; 0: none.
    pub returned: u64,
    pub acts: &'static [(u64, Act)],
    /// Tasks collect the bios of a burst before they insert them.
    pub plugged: bool,
    /// Times are whole milliseconds, so that they are often equal to the limits of a scheduler.
    pub exact: bool,
    /// Number of dispatches after which the scene ends.
    pub dispatches: u64,
}

const NONE: &[(Class, u8)] = &[(Class::None, 0)];
const ALL: &[(Class, u8)] = &[
    (Class::Be, 4),
    (Class::Rt, 0),
    (Class::Be, 0),
    (Class::Idle, 7),
    (Class::Be, 7),
    (Class::Rt, 5),
    (Class::None, 0),
    (Class::Be, 2),
];
const fn prio(class: Class, level: u8) -> IoPrio {
    IoPrio { class, level }
}

use Role::*;

const BASE: Scene = Scene {
    name: "",
    seed: 1,
    rotational: true,
    depth: 1,
    hz: 1000,
    hctxs: 1,
    cpus: 1,
    requests: 128,
    max_sectors: 1024,
    max_segments: u32::MAX,
    service: DISK,
    roles: &[],
    prios: NONE,
    cgroups: 0,
    returned: 0,
    acts: &[],
    plugged: false,
    exact: false,
    dispatches: 500,
};

/// All scenes.
pub const SCENES: &[Scene] = &[
    Scene {
        name: "readers",
        roles: &[Reader, Reader, Seeker, Thinker, Reader, Near, Backward],
        ..BASE
    },
    Scene {
        name: "writers",
        seed: 2,
        roles: &[Writer, Writer, Reader, Seeker, Syncer, Logger],
        hz: 250,
        dispatches: 700,
        ..BASE
    },
    Scene {
        name: "priorities",
        seed: 3,
        prios: ALL,
        roles: &[
            Reader, Reader, Seeker, Reader, Mixer, Writer, Thinker, Logger, Reader,
        ],
        acts: &[
            (300_000, Act::Prio(0, prio(Class::Idle, 7))),
            (600_000, Act::Prio(3, prio(Class::Be, 6))),
            (700_000, Act::Prio(4, prio(Class::Rt, 2))),
            (1_000_000, Act::Prio(0, prio(Class::Be, 1))),
            (1_200_000, Act::Exit(2)),
            (1_500_000, Act::Prio(8, prio(Class::None, 0))),
        ],
        ..BASE
    },
    Scene {
        name: "ncq",
        seed: 4,
        depth: 32,
        hz: 300,
        roles: &[Seeker, Seeker, Reader, Reader, Mixer, Writer, Near, Thinker],
        dispatches: 700,
        ..BASE
    },
    Scene {
        name: "flash",
        seed: 5,
        rotational: false,
        depth: 32,
        service: FLASH,
        roles: &[
            Seeker, Seeker, Mixer, Reader, Writer, Logger, Syncer, Thinker, Starter,
        ],
        dispatches: 1000,
        ..BASE
    },
    Scene {
        name: "cgroups",
        seed: 6,
        depth: 4,
        cgroups: 3,
        prios: ALL,
        roles: &[
            Reader, Seeker, Reader, Mixer, Reader, Writer, Thinker, Reader, Seeker,
        ],
        acts: &[
            (400_000, Act::Weight(1, 800)),
            (700_000, Act::Move(0, 2)),
            (750_000, Act::Move(3, 1)),
            (800_000, Act::Weight(2, 37)),
            (950_000, Act::Exit(1)),
            (1_100_000, Act::Offline(3)),
        ],
        ..BASE
    },
    Scene {
        name: "merges",
        seed: 7,
        max_sectors: 96,
        max_segments: 9,
        plugged: true,
        roles: &[
            Cooperator(3),
            Cooperator(3),
            Cooperator(3),
            Backward,
            Backward,
            Writer,
            Prefetcher,
            Near,
        ],
        dispatches: 600,
        ..BASE
    },
    Scene {
        name: "pauses",
        seed: 8,
        roles: &[
            Thinker, Player, Starter, Starter, Player, Reader, Starter, Thinker,
        ],
        dispatches: 600,
        ..BASE
    },
    Scene {
        name: "flags",
        seed: 9,
        hz: 100,
        depth: 2,
        roles: &[Logger, Logger, Trimmer, Prefetcher, Mixer, Syncer, Reader],
        acts: &[(900_000, Act::Drain), (1_500_000, Act::Requests(40))],
        ..BASE
    },
    Scene {
        name: "returned",
        seed: 10,
        rotational: false,
        service: CARD,
        returned: 7,
        prios: ALL,
        roles: &[Reader, Writer, Mixer, Seeker, Thinker, Writer],
        dispatches: 600,
        ..BASE
    },
    Scene {
        name: "slow",
        seed: 11,
        hz: 250,
        service: SLOW,
        roles: &[
            Reader, Writer, Seeker, Mixer, Syncer, Thinker, Reader, Writer,
        ],
        ..BASE
    },
    Scene {
        name: "tags",
        seed: 12,
        rotational: false,
        depth: 8,
        hctxs: 2,
        cpus: 4,
        requests: 16,
        service: FLASH,
        plugged: true,
        roles: &[
            Writer, Reader, Seeker, Writer, Mixer, Logger, Trimmer, Reader,
        ],
        acts: &[
            (3000, Act::Requests(48)),
            (5000, Act::Drain),
            (8000, Act::Requests(6)),
            (12_000, Act::Drain),
            (15_000, Act::Requests(16)),
        ],
        dispatches: 900,
        ..BASE
    },
    Scene {
        name: "crowd",
        seed: 13,
        rotational: false,
        depth: 16,
        service: CARD,
        prios: ALL,
        cgroups: 2,
        roles: &[
            Reader,
            Writer,
            Seeker,
            Starter,
            Mixer,
            Player,
            Thinker,
            Starter,
            Syncer,
            Reader,
            Logger,
            Cooperator(2),
            Cooperator(2),
            Starter,
            Near,
            Writer,
        ],
        acts: &[
            (200_000, Act::Exit(0)),
            (300_000, Act::Move(2, 1)),
            (400_000, Act::Prio(4, prio(Class::Rt, 1))),
            (600_000, Act::Weight(1, 500)),
        ],
        dispatches: 1000,
        ..BASE
    },
    Scene {
        name: "pair",
        seed: 14,
        roles: &[Cooperator(2), Cooperator(2), Seeker],
        dispatches: 400,
        ..BASE
    },
    Scene {
        name: "one",
        seed: 15,
        depth: 32,
        roles: &[Thinker],
        dispatches: 200,
        ..BASE
    },
    Scene {
        name: "quick",
        seed: 16,
        rotational: false,
        service: Service {
            base_us: 15,
            seek_us: 0,
            ns_per_sector: 120,
            channels: 2,
        },
        roles: &[Reader, Reader, Seeker, Writer],
        dispatches: 900,
        ..BASE
    },
    Scene {
        name: "gaps",
        seed: 17,
        roles: &[
            Filler,
            Filler,
            Wanderer(3),
            Wanderer(3),
            Wanderer(3),
            Filler,
            Seeker,
        ],
        acts: &[(1_500_000, Act::Exit(3)), (1_900_000, Act::Exit(2))],
        dispatches: 900,
        ..BASE
    },
    Scene {
        name: "gaps-flash",
        seed: 18,
        rotational: false,
        depth: 4,
        service: CARD,
        roles: &[
            Filler,
            Wanderer(4),
            Wanderer(4),
            Wanderer(4),
            Wanderer(4),
            Filler,
            Writer,
        ],
        acts: &[(200_000, Act::Exit(2)), (300_000, Act::Exit(4))],
        ..BASE
    },
    Scene {
        name: "grid",
        seed: 19,
        exact: true,
        service: STEPS,
        roles: &[Grid, Grid, GridWriter, GridSync, Grid],
        dispatches: 700,
        ..BASE
    },
    Scene {
        name: "grid-250",
        seed: 20,
        hz: 250,
        exact: true,
        service: STEPS,
        prios: ALL,
        roles: &[Grid, Grid, Grid, GridSync, GridWriter, Grid],
        acts: &[
            (100_000, Act::Prio(1, prio(Class::Be, 3))),
            (200_000, Act::Prio(0, prio(Class::Rt, 3))),
            (400_000, Act::Prio(1, prio(Class::Idle, 7))),
            (500_000, Act::Defaults),
        ],
        dispatches: 600,
        ..BASE
    },
    Scene {
        name: "grid-ncq",
        seed: 21,
        exact: true,
        depth: 32,
        service: STEPS,
        roles: &[Grid, Grid, Grid, GridWriter, GridSync, Grid, Grid],
        dispatches: 700,
        ..BASE
    },
    Scene {
        name: "grid-flash",
        seed: 22,
        exact: true,
        rotational: false,
        depth: 6,
        service: Service {
            base_us: 1000,
            seek_us: 0,
            ns_per_sector: 0,
            channels: 3,
        },
        cgroups: 2,
        roles: &[Grid, Grid, GridWriter, GridSync, Grid, GridSync],
        acts: &[(100_000, Act::Offline(2)), (150_000, Act::Weight(1, 300))],
        dispatches: 700,
        ..BASE
    },
    Scene {
        name: "limits",
        seed: 25,
        exact: true,
        service: STEPS,
        roles: &[Returner, Returner, Returner],
        dispatches: 400,
        ..BASE
    },
    Scene {
        name: "limits-flash",
        seed: 26,
        exact: true,
        rotational: false,
        depth: 2,
        hz: 100,
        service: Service {
            base_us: 1000,
            seek_us: 0,
            ns_per_sector: 0,
            channels: 1,
        },
        roles: &[Returner, Returner, Returner, Returner],
        dispatches: 400,
        ..BASE
    },
    Scene {
        name: "steady",
        seed: 27,
        roles: &[Steady, Steady, Seeker],
        dispatches: 600,
        ..BASE
    },
    Scene {
        name: "steady-one",
        seed: 28,
        depth: 32,
        roles: &[Steady],
        dispatches: 250,
        ..BASE
    },
    Scene {
        name: "lone",
        seed: 23,
        exact: true,
        service: STEPS,
        roles: &[Grid, GridWriter],
        dispatches: 300,
        ..BASE
    },
    Scene {
        name: "groups",
        seed: 24,
        rotational: false,
        depth: 3,
        service: CARD,
        cgroups: 4,
        roles: &[
            Reader, Reader, Mixer, Seeker, Thinker, Reader, Writer, Seeker, Reader,
        ],
        acts: &[
            (50_000, Act::Weight(3, 90)),
            (100_000, Act::Offline(4)),
            (150_000, Act::Move(1, 3)),
            (200_000, Act::Offline(2)),
            (220_000, Act::Weight(3, 1)),
            (250_000, Act::Weight(1, 1000)),
            (300_000, Act::Defaults),
        ],
        dispatches: 600,
        ..BASE
    },
];

impl Scene {
    /// The tasks of the scene.
    pub fn tasks(&self) -> Vec<Task> {
        let mut random = Random::new(self.seed);
        let all = self.roles.iter().enumerate();
        all.map(|(i, role)| self.task(i, *role, &mut random))
            .collect()
    }
    fn task(&self, i: usize, role: Role, random: &mut Random) -> Task {
        let (class, level) = self.prios[i % self.prios.len()];
        let plain = class == Class::None && !self.prios.is_empty();
        let mut t = Task {
            places: Places::Onward,
            position: 8 * random.below(1 << 22),
            reads: 100,
            discards: 0,
            flags: Flags::empty(),
            flagged: 100,
            sizes: &[8, 8, 16, 64, 256],
            burst: 1 + random.below(2),
            outstanding: 2,
            think_us: &[0, 0, 100, 700, 2500],
            start_us: random.below(20_000),
            bios: 150 + random.below(100),
            prio: prio(class, level),
            nice: if plain {
                random.pick(&[0, 0, -20, 19, 5])
            } else {
                0
            },
            policy: Policy::Normal,
            cgroup: match self.cgroups {
                0 => 0,
                n => i as u32 % (n + 1),
            },
            cpu: i as u16 % self.cpus,
            exits: random.percent(40),
            shares: None,
            random: Random::new(self.seed * 100 + i as u64),
        };
        match role {
            Reader => t.exits = false,
            Seeker => {
                (t.places, t.outstanding, t.burst) = (Places::Random(1 << 25), 4, 3);
                t.sizes = &[8];
                t.think_us = &[0, 50, 5000];
            }
            Writer => {
                (t.reads, t.burst, t.outstanding) = (0, 24, 60);
                (t.flags, t.flagged) = (Flags::BACKGROUND, 50);
                t.places = random.pick(&[Places::Onward, Places::Random(1 << 24)]);
                (t.sizes, t.bios) = (&[8, 32, 128, 512], 400);
            }
            Syncer => (t.reads, t.flags, t.think_us) = (10, Flags::SYNC, &[0, 1000, 12_000]),
            Logger => {
                (t.reads, t.flags, t.flagged) = (20, Flags::SYNC | Flags::NOIDLE, 80);
                (t.think_us, t.sizes) = (&[0, 300, 9000, 40_000], &[8, 24]);
            }
            Thinker => {
                (t.think_us, t.outstanding) = (&[1000, 4000, 7000, 9000, 30_000], 1);
                (t.flags, t.flagged) = (Flags::META | Flags::PRIO, 30);
                (t.burst, t.bios) = (1, 400);
            }
            Starter => {
                t.start_us = 150_000 * i as u64 + random.below(100_000);
                (t.bios, t.exits) = (20 + random.below(60), true);
                t.places = random.pick(&[Places::Near(4000), Places::Random(1 << 22)]);
            }
            Player => {
                (t.think_us, t.burst, t.outstanding) = (&[120_000, 350_000, 1_500_000], 12, 12);
                (t.sizes, t.bios, t.exits) = (&[64], 400, false);
            }
            Cooperator(n) => {
                (t.places, t.sizes, t.think_us) = (Places::Strided(n), &[16], &[0, 0, 200, 900]);
                (t.position, t.start_us) = ((1 << 20) + (i as u64 % n) * 16, 100 * i as u64);
                (t.bios, t.burst, t.outstanding) = (400, 1, 1);
            }
            Role::Backward => (t.places, t.sizes, t.burst) = (Places::Backward, &[8, 16], 4),
            Role::Near => (t.places, t.sizes) = (Places::Near(20_000), &[8, 32]),
            Trimmer => (t.reads, t.discards, t.sizes) = (30, 50, &[8, 512]),
            Prefetcher => {
                (t.flags, t.flagged) = (Flags::RAHEAD | Flags::ASYNC_READ, 60);
                (t.burst, t.outstanding) = (6, 12);
            }
            Mixer => {
                (t.reads, t.discards, t.burst, t.outstanding) = (55, 3, 6, 10);
                (t.flags, t.flagged) = (Flags::SYNC, 40);
                t.places = Places::Random(1 << 23);
                t.policy = random.pick(&[Policy::Normal, Policy::RealTime, Policy::Idle]);
            }
            Wanderer(n) => {
                (t.places, t.sizes, t.think_us) = (Places::Together(n), &[16], &[0, 0, 200, 900]);
                (t.position, t.start_us) = ((1 << 20) + (i as u64 % n) * 16, 100 * i as u64);
                (t.bios, t.burst, t.outstanding) = (400, 1, 1);
            }
            Filler => {
                (t.places, t.sizes) = (Places::Gaps, &[8]);
                (t.burst, t.outstanding, t.bios) = (9, 12, 500);
                t.reads = random.pick(&[0, 100, 100]);
            }
            Steady => {
                (t.places, t.sizes, t.think_us) = (Places::Near(64), &[8, 8, 16], &[1000, 2000]);
                (t.burst, t.outstanding, t.bios) = (1, 1, 1000);
            }
            Returner => {
                t.places = random.pick(&[Places::Grid, Places::Onward]);
                (t.sizes, t.burst, t.outstanding, t.bios) = (&[8], 1, 1, 500);
                t.think_us = &[
                    0, 0, 1000, 2000, 3000, 6000, 8000, 20_000, 25_000, 40_000, 100_000, 125_000,
                    200_000, 300_000, 500_000, 1_987_000, 1_991_000, 1_992_000, 1_995_000,
                    1_999_000, 2_000_000, 2_001_000,
                ];
            }
            Role::Grid | GridWriter | GridSync => {
                (t.places, t.sizes, t.think_us) = (
                    Places::Grid,
                    &[8, 8, 32, 64],
                    &[0, 0, 0, 1000, 2000, 4000, 8000, 20_000],
                );
                (t.position, t.start_us, t.bios) = (8 * (i as u64 % 3), 1000 * i as u64, 500);
                match role {
                    GridWriter => (t.reads, t.burst, t.outstanding) = (0, 16, 32),
                    GridSync => (t.reads, t.flags, t.burst) = (20, Flags::SYNC, 3),
                    _ => {}
                }
            }
        }
        if i == 5 && self.seed.is_multiple_of(4) {
            t.shares = Some(1);
        }
        t
    }
}

impl Task {
    /// The operation, flags, first sector and length of the next bio. `others`: the end of the last
    /// bio of any task.
    pub fn next_bio(&mut self, others: u64) -> (Op, Flags, u64, u32) {
        let r = &mut self.random;
        let n = r.below(100);
        let op = if n < self.reads {
            Op::Read
        } else if n < self.reads + self.discards {
            r.pick(&[Op::Discard, Op::Discard, Op::WriteZeroes])
        } else {
            Op::Write
        };
        let mut flags = Flags::empty();
        if r.percent(self.flagged) {
            flags = self.flags;
        }
        if op != Op::Read {
            flags -= Flags::ASYNC_READ;
        }
        let len = u64::from(r.pick(self.sizes));
        let at = match self.places {
            Places::Onward => {
                if r.percent(3) {
                    self.position = 8 * r.below(1 << 22);
                }
                self.position
            }
            Places::Backward => {
                self.position = self.position.saturating_sub(len);
                self.position
            }
            Places::Strided(_) => self.position,
            Places::Together(_) if self.bios % 40 < 14 => 8 * r.below(1 << 21),
            Places::Together(_) => self.position,
            Places::Gaps if self.bios.is_multiple_of(27) => 8 * r.below(1 << 21),
            Places::Gaps => self.position + [0, 2, 1][self.bios as usize % 3] * len,
            Places::Grid => {
                let (far, near) = (r.pick(DISTANCES), r.pick(&[self.position, others]));
                if r.percent(50) {
                    near + far
                } else {
                    near.saturating_sub(far)
                }
            }
            Places::Random(n) => r.below(n / 8) * 8,
            Places::Near(n) => (self.position + r.below(2 * n / 8) * 8).saturating_sub(n),
        };
        self.position = match self.places {
            Places::Strided(n) => at + n * len,
            Places::Together(n) if self.bios % 40 >= 14 => at + n * len,
            Places::Together(_) => self.position,
            Places::Gaps if !self.bios.is_multiple_of(3) => self.position,
            Places::Gaps => self.position + 3 * len,
            Places::Backward => at,
            _ => at + len,
        };
        (op, flags, at, len as u32)
    }
    /// The time until the next burst, us.
    pub fn think(&mut self, exact: bool) -> u64 {
        let base = self.random.pick(self.think_us);
        if exact {
            return base;
        }
        base + self.random.below(base / 8 + 1)
    }
}
