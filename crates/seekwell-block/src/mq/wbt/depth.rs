//! The number of writes allowed in the device: the step, and the three limits that follow from it.

/// Number of writes at step 0, if the device takes as many.
const DEPTH: u32 = 16;

/// Step and limits (`rq_depth`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Depth of the queue.
    depth: u32,
    /// Above 0: fewer writes than usual; below 0: more.
    pub step: i32,
    /// The maximum was reached.
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
    /// `rq_depth_calc_max_depth`: the largest number of writes at this step, and whether that is
    /// the maximum. For a device depth below 22 the maximum is below the value of step 0.
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
    /// The limits: maximum, normal, background (`calc_wb_limits`).
    pub fn depths(&self) -> [u32; 3] {
        match self.max {
            0..=2 => [self.max, self.max, 1],
            max => [max, max.div_ceil(2), max.div_ceil(4)],
        }
    }
    /// Allows more writes (`rq_depth_scale_up`). False at the maximum.
    pub fn scale_up(&mut self) -> bool {
        if self.at_max {
            return false;
        }
        self.step -= 1;
        (self.max, self.at_max) = self.of_step();
        true
    }
    /// Allows fewer writes (`rq_depth_scale_down`); with `hard`, at most as many as at step 0.
    /// False at the minimum of one.
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
