//! The number of writes allowed in the device: the step, and the three limits that depend on it.

/// Number of writes at step 0, if the device has at least this depth.
const DEPTH: u32 = 16;

/// The step and the limits (`rq_depth`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Depth of the queue.
    depth: u32,
    /// Above 0: fewer writes than by default. Below 0: more.
    pub step: i32,
    /// Whether the limit has reached its maximum.
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
    /// Returns the largest number of writes at this step, and whether this is the maximum
    /// (`rq_depth_calc_max_depth`). If the depth of the device is below 22, the maximum is below
    /// the value of step 0.
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
    /// Returns the limits: maximum, normal, background (`calc_wb_limits`).
    pub fn depths(&self) -> [u32; 3] {
        match self.max {
            0..=2 => [self.max, self.max, 1],
            max => [max, max.div_ceil(2), max.div_ceil(4)],
        }
    }
    /// Allows more writes (`rq_depth_scale_up`). Returns false at the maximum.
    pub fn scale_up(&mut self) -> bool {
        if self.at_max {
            return false;
        }
        self.step -= 1;
        (self.max, self.at_max) = self.of_step();
        true
    }
    /// Allows fewer writes (`rq_depth_scale_down`). With `hard`, at most as many as at step 0.
    /// Returns false if the minimum of one write was already reached.
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
