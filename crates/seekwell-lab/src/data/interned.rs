//! Stores each metric only once in memory. All runs of an experiment have the same dozen metrics.
//! Their names would take nine tenths of the memory of a run.

use super::{MetricInfo, Run};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The metrics that are stored so far.
#[derive(Debug, Default)]
pub struct Interned {
    by_name: BTreeMap<String, Vec<Arc<MetricInfo>>>,
}

impl Interned {
    /// Returns the shared copy of a metric, and adds it if it is new.
    pub fn metric(
        &mut self,
        name: &str,
        unit: &str,
        higher_is_better: bool,
        step: Option<f64>,
    ) -> Arc<MetricInfo> {
        let alike = |m: &&Arc<MetricInfo>| {
            let same_step = m.step.map(f64::to_bits) == step.map(f64::to_bits);
            m.unit == unit && m.higher_is_better == higher_is_better && same_step
        };
        let known = self.by_name.get(name);
        if let Some(known) = known.and_then(|all| all.iter().find(alike)) {
            return Arc::clone(known);
        }
        let new = Arc::new(MetricInfo {
            name: name.to_owned(),
            unit: unit.to_owned(),
            higher_is_better,
            step,
        });
        let all = self.by_name.entry(name.to_owned()).or_default();
        all.push(Arc::clone(&new));
        new
    }

    /// Replaces the metrics of a run's values with shared copies, and frees spare capacity.
    pub fn share(&mut self, run: &mut Run) {
        for value in &mut run.values {
            let m = &value.metric;
            value.metric = self.metric(&m.name, &m.unit, m.higher_is_better, m.step);
        }
        run.values.shrink_to_fit();
    }
}

/// Serialises a shared metric like an owned metric.
pub(super) mod one {
    use super::{Arc, MetricInfo};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(metric: &Arc<MetricInfo>, to: S) -> Result<S::Ok, S::Error> {
        metric.as_ref().serialize(to)
    }
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<MetricInfo>, D::Error> {
        MetricInfo::deserialize(from).map(Arc::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Value;

    #[test]
    fn equal_metrics_are_shared_and_different_ones_are_not() {
        let run = || Run {
            values: vec![Value::default(); 2],
            ..Run::default()
        };
        let (mut all, mut one, mut two) = (Interned::default(), run(), run());
        all.share(&mut one);
        all.share(&mut two);
        assert!(Arc::ptr_eq(&one.values[1].metric, &two.values[0].metric));
        assert_eq!(one, run(), "its values are what they were");
        let first = all.metric("speed", "MB/s", true, None);
        for other in [
            all.metric("speed", "kB/s", true, None),
            all.metric("speed", "MB/s", false, None),
            all.metric("speed", "MB/s", true, Some(0.1)),
        ] {
            assert!(!Arc::ptr_eq(&first, &other) && first != other);
        }
        assert!(Arc::ptr_eq(
            &first,
            &all.metric("speed", "MB/s", true, None)
        ));
    }
}
