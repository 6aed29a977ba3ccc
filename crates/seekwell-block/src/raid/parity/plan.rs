//! Plans the write of a row of 4 KiB pages. A plan is computed from sets of members only.

/// A set of members of one row. Each member has one bit.
pub type Set = u64;

/// The state of a row.
#[derive(Clone, Copy, Debug, Default)]
pub struct Row {
    /// Members that hold data.
    pub data: Set,
    /// Members that hold parity.
    pub parity: Set,
    /// Failed members.
    pub failed: Set,
    /// Pages whose present content is in the cache.
    pub fresh: Set,
    /// Data pages with new data to be written.
    pub dirty: Set,
    /// Data pages that are overwritten completely.
    pub full: Set,
}

/// The method by which the new parity is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Parity is computed from the old data, the old parity and the new data.
    ReadModifyWrite,
    /// Parity is computed from all data of the row.
    Reconstruct,
    /// Only data are written, because no working member holds parity of this row.
    DataOnly,
    /// A lost page must first be computed from all remaining pages. Then the row is planned again.
    RecoverFirst,
}

/// A plan for writing a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The method by which the new parity is computed.
    pub how: How,
    /// The pages that must be read before the write.
    pub reads: Set,
}

impl Row {
    /// Returns the pages that must be read to compute the lost data pages. These are all remaining
    /// data pages, and one parity page per lost data page, P before Q. `p` is the member with P.
    pub fn recovery(&self, p: Set) -> Set {
        let lost = (self.data & self.failed & !self.fresh).count_ones();
        let mut need = self.data & !self.failed;
        let mut left = lost;
        for parity in [p & self.parity, self.parity & !p] {
            if left > 0 && parity & !self.failed != 0 {
                need |= parity;
                left -= 1;
            }
        }
        need & !self.fresh
    }

    /// Returns the method that needs fewer reads to write the dirty pages. Both methods need the
    /// same writes. If the reads are equal, `modify_on_tie` selects read-modify-write.
    pub fn plan(&self, p: Set, modify_on_tie: bool) -> Plan {
        let alive = !self.failed;
        let parity = self.parity & alive;
        // Both methods need the old content of a page that is only partly overwritten.
        let old = self.dirty & !self.full & !self.fresh;
        let modify = (self.dirty | parity) & !self.fresh;
        let rebuild = self.data & !self.full & !self.fresh;
        let possible = |reads: Set| reads & self.failed == 0;
        let ways = if parity == 0 {
            [Some((How::DataOnly, old)), None]
        } else {
            let m = Some((How::ReadModifyWrite, modify));
            let r = Some((How::Reconstruct, rebuild));
            let first = modify.count_ones() < rebuild.count_ones()
                || (modify.count_ones() == rebuild.count_ones() && modify_on_tie);
            if first { [m, r] } else { [r, m] }
        };
        for (how, reads) in ways.into_iter().flatten() {
            if possible(reads) {
                return Plan { how, reads };
            }
        }
        Plan {
            how: How::RecoverFirst,
            reads: self.recovery(p),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(n: u32, parity: Set) -> Row {
        Row {
            data: ((1 << n) - 1) & !parity,
            parity,
            ..Row::default()
        }
    }
    fn operations(r: Row, p: Set) -> u32 {
        let plan = r.plan(p, true);
        let writes = (r.dirty | r.parity) & !r.failed;
        plan.reads.count_ones() + writes.count_ones()
    }

    /// A small write costs four operations on RAID 5 and six on RAID 6. On arrays with the fewest
    /// members, reconstruction is cheaper. A full stripe needs no reads.
    #[test]
    fn write_plans_cost_the_expected_number_of_operations() {
        let small = |n, parity| Row {
            dirty: 1,
            full: 1,
            ..row(n, parity)
        };
        for n in 4..20 {
            assert_eq!(
                operations(small(n, 1 << (n - 1)), 1 << (n - 1)),
                4,
                "RAID 5 of {n}"
            );
        }
        assert_eq!(operations(small(3, 4), 4), 3);
        for n in 6..20 {
            let (p, q) = (1 << (n - 2), 1 << (n - 1));
            assert_eq!(operations(small(n, p | q), p), 6, "RAID 6 of {n}");
        }
        assert_eq!(operations(small(5, 24), 8), 5);
        let full = Row {
            dirty: 7,
            full: 7,
            ..row(4, 8)
        };
        assert_eq!(
            full.plan(8, true),
            Plan {
                how: How::Reconstruct,
                reads: 0
            }
        );
        // Pages in the cache are not read again.
        let cached = Row {
            fresh: 9,
            ..small(4, 8)
        };
        assert_eq!(
            cached.plan(8, false),
            Plan {
                how: How::ReadModifyWrite,
                reads: 0
            }
        );
    }

    #[test]
    fn equal_plan_costs_are_decided_by_the_preferred_method() {
        let tie = Row {
            dirty: 1,
            full: 1,
            ..row(4, 8)
        };
        assert_eq!(
            tie.plan(8, true),
            Plan {
                how: How::ReadModifyWrite,
                reads: 9
            }
        );
        assert_eq!(
            tie.plan(8, false),
            Plan {
                how: How::Reconstruct,
                reads: 6
            }
        );
    }

    /// Checks for every state of a row that a plan does not read failed or cached pages, and that
    /// its reads are sufficient for its method.
    #[test]
    fn plans_read_only_valid_pages_and_enough_of_them() {
        for (n, p, q) in [(3, 4, 0), (5, 16, 0), (5, 1, 2), (6, 32, 1)] {
            let parity: Set = p | q;
            let all: Set = (1 << n) - 1;
            for bits in 0..1u64 << (3 * n) {
                let (failed, fresh, dirty) = (bits & all, bits >> n & all, bits >> (2 * n) & all);
                let mut r = Row {
                    failed,
                    fresh,
                    dirty,
                    ..row(n, parity)
                };
                let lost = (failed & !fresh).count_ones();
                if dirty == 0 || dirty & parity != 0 || lost > parity.count_ones() {
                    continue;
                }
                if failed.count_ones() > parity.count_ones() || fresh & failed & parity != 0 {
                    continue;
                }
                // Half of the dirty pages are overwritten completely.
                r.full = dirty & 0b10_1010;
                let plan = r.plan(p, bits % 2 == 0);
                assert_eq!(plan.reads & (failed | fresh), 0, "{r:?} {plan:?}");
                let known = fresh | plan.reads;
                match plan.how {
                    How::DataOnly => assert_eq!(parity & !failed, 0),
                    How::ReadModifyWrite => {
                        assert_eq!((dirty | (parity & !failed)) & !known, 0, "{r:?}")
                    }
                    How::Reconstruct => assert_eq!(r.data & !r.full & !known, 0, "{r:?}"),
                    How::RecoverFirst => {
                        let lost = (r.data & failed & !fresh).count_ones();
                        assert!(lost > 0, "{r:?}");
                        assert!(
                            (known & parity & !failed).count_ones() >= lost,
                            "{r:?} {plan:?}"
                        );
                        assert_eq!(r.data & !failed & !known, 0, "{r:?}");
                    }
                }
            }
        }
    }
}
