//! How many writes may be with the device: the step, and the three limits that follow from it.

/// Writes at step 0, of a device that takes as many.
const DEPTH: u32 = 16;

/// Step and limits (`rq_depth`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Depth of the queue.
    depth: u32,
    /// Above 0: fewer than usual; below: more.
    pub step: i32,
    /// The top was reached.
    pub at_max: bool,
    max: u32,
}

impl Limits {
    pub fn new(depth: u32) -> Self {
        let mut l = Limits {
            depth: depth.max(1),
            step: 0,
            at_max: false,
            max: 0,
        };
        l.max = l.of_step().0;
        l
    }
    pub fn set(&mut self, step: i32, at_max: bool) {
        (self.step, self.at_max) = (step, at_max);
        self.max = self.of_step().0;
    }
    /// `rq_depth_calc_max_depth`: most writes at this step, and whether more are not to be had. A
    /// device of fewer than 22 has a top that lies below step 0.
    fn of_step(&self) -> (u32, bool) {
        if self.depth == 1 {
            return match self.step {
                1.. => (1, false),
                _ => (2, true),
            };
        }
        let more = self.depth.min(DEPTH) - 1;
        let shift = self.step.unsigned_abs().min(31);
        match self.step {
            0.. => (1 + (more >> shift), false),
            _ => {
                let top = 3 * self.depth / 4;
                let wanted = 1 + (u64::from(more) << shift);
                match wanted > u64::from(top) {
                    true => (top, true),
                    false => (wanted as u32, false),
                }
            }
        }
    }
    /// At most, normal, background (`calc_wb_limits`).
    pub fn depths(&self) -> [u32; 3] {
        match self.max {
            0..=2 => [self.max, self.max, 1],
            max => [max, max.div_ceil(2), max.div_ceil(4)],
        }
    }
    /// More may pass (`rq_depth_scale_up`). False: no more than now.
    pub fn scale_up(&mut self) -> bool {
        if self.at_max {
            return false;
        }
        self.step -= 1;
        (self.max, self.at_max) = self.of_step();
        true
    }
    /// Fewer may pass (`rq_depth_scale_down`), `hard`: no more than at step 0. False: one is the
    /// least.
    pub fn scale_down(&mut self, hard: bool) -> bool {
        if self.max == 1 {
            return false;
        }
        if self.step < 0 && hard {
            self.step = 0;
        } else {
            self.step += 1;
        }
        self.at_max = false;
        self.max = self.of_step().0;
        true
    }
}
