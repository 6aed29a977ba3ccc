//! Short forms in hand-written cases: one input row can stand for many bios, and one `dispatch` row
//! for many decisions. They are expanded before other code reads the rows.
//!
//! - `[t, "stream", id, pid, op, sector, n, {"count": c, "think": us}]`: c bios, whose ids start at
//!   `id`. Each bio starts at the sector after the previous bio, `think` us after its completion.
//! - `[t, "stream", id, pid, op, sector, n, {"count": c, "every": us, "step": sectors}]`: c bios,
//!   `every` us and `step` sectors apart, independent of completions.
//! - in `dispatch`, `[t, "run", first, last, us]`: the bios `first` to `last`, one request per bio,
//!   with `us` us between dispatches.

use serde::Deserialize;
use serde_json::{Value, json};

/// Largest accepted count in a row; a larger count is probably a mistake.
const COUNT_MAX: u64 = 1_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    count: u64,
    think: Option<f64>,
    every: Option<f64>,
    step: Option<u64>,
}

/// Returns whether a row is the short form with this word.
pub(super) fn is(row: &[Value], word: &str) -> bool {
    row.get(1).and_then(Value::as_str) == Some(word)
}

/// Expands a stream to input rows. The error contains the reason.
pub(super) fn bios(row: &[Value]) -> Result<Vec<Vec<Value>>, String> {
    let [t, _, id, pid, op, sector, n, shape] = row else {
        return Err(
            "a stream must be [t, \"stream\", id, pid, op, sector, n, {count, ...}]".to_owned(),
        );
    };
    let number = |v: &Value, what: &str| v.as_u64().ok_or(format!("{what} must be a whole number"));
    let (id, sector, n) = (
        number(id, "id")?,
        number(sector, "sector")?,
        number(n, "n")?,
    );
    let shape = Shape::deserialize(shape).map_err(|e| e.to_string())?;
    if !(1..=COUNT_MAX).contains(&shape.count) {
        return Err(format!("count must be 1..={COUNT_MAX}"));
    }
    if shape.think.is_some() == shape.every.is_some() {
        return Err("give either `think` or `every`".to_owned());
    }
    let step = shape.step.unwrap_or(n);
    let one = |i: u64| {
        let at = match (i, shape.think, shape.every) {
            (0, ..) => t.clone(),
            (_, Some(think), _) => json!(format!("@{}+{think}", id + i - 1)),
            (_, None, every) => {
                let from = t
                    .as_f64()
                    .ok_or("`every` needs a first time in microseconds")?;
                json!(from + every.unwrap_or(0.0) * i as f64)
            }
        };
        let sector = i
            .checked_mul(step)
            .and_then(|d| d.checked_add(sector))
            .ok_or("the last sector is beyond all devices")?;
        Ok(vec![
            at,
            json!(id + i),
            pid.clone(),
            op.clone(),
            json!(sector),
            json!(n),
        ])
    };
    (0..shape.count).map(one).collect()
}

/// Expands a run to `dispatch` rows. The error contains the reason.
pub(super) fn decisions(row: &[Value]) -> Result<Vec<Value>, String> {
    let parsed = match row {
        [t, _, first, last, us] => (t.as_f64(), first.as_u64(), last.as_u64(), us.as_f64()),
        _ => (None, None, None, None),
    };
    let (Some(t), Some(first), Some(last), Some(us)) = parsed else {
        return Err("a run must be [t, \"run\", first id, last id, us]".to_owned());
    };
    if first > last || last - first >= COUNT_MAX {
        return Err(format!("a run must have 1..={COUNT_MAX} ascending ids"));
    }
    let row = |i: u64| json!([t + us * (i - first) as f64, i]);
    Ok((first..=last).map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(v: Value) -> Result<Vec<Vec<Value>>, String> {
        bios(v.as_array().unwrap())
    }

    #[test]
    fn stream_row_is_expanded() {
        let got = rows(json!([5, "stream", 7, 1, "R", 1000, 16, {"count": 3, "think": 500}]));
        let want = json!([
            [5, 7, 1, "R", 1000, 16],
            ["@7+500", 8, 1, "R", 1016, 16],
            ["@8+500", 9, 1, "R", 1032, 16]
        ]);
        assert_eq!(json!(got.unwrap()), want);
        let got =
            rows(json!([5, "stream", 7, 1, "W", 1000, 8, {"count": 2, "every": 10, "step": 100}]));
        let want = json!([[5, 7, 1, "W", 1000, 8], [15.0, 8, 1, "W", 1100, 8]]);
        assert_eq!(json!(got.unwrap()), want);
    }

    #[test]
    fn run_row_is_expanded() {
        let got = decisions(json!([1.5, "run", 7, 9, 1000]).as_array().unwrap());
        assert_eq!(
            json!(got.unwrap()),
            json!([[1.5, 7], [1001.5, 8], [2001.5, 9]])
        );
    }

    #[test]
    fn invalid_stream_rows_are_rejected() {
        let stream = |shape| rows(json!([5, "stream", 7, 1, "R", 1000, 16, shape]));
        assert!(stream(json!({"count": 3})).is_err());
        assert!(stream(json!({"count": 0, "think": 1})).is_err());
        assert!(stream(json!({"count": 3, "think": 1, "every": 1})).is_err());
        assert!(stream(json!({"count": 3, "thinks": 1})).is_err());
        assert!(stream(json!({"count": 3, "every": 1, "step": u64::MAX})).is_err());
        assert!(rows(json!([5, "stream", 7])).is_err());
        let after = json!(["@1+2", "stream", 7, 1, "R", 0, 8, {"count": 2, "every": 1}]);
        assert!(rows(after).is_err());
        assert!(decisions(json!([0, "run", 9, 7, 1]).as_array().unwrap()).is_err());
        assert!(decisions(json!([0, "run", 0, u64::MAX, 1]).as_array().unwrap()).is_err());
    }
}
