//! The metric of a program: a number in its output, or its run time.

use regex_lite::Regex;
use seekwell_core::result::Metric;
use serde::Deserialize;

/// Whether a higher or a lower value is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// A higher value is better.
    #[default]
    Higher,
    /// A lower value is better.
    Lower,
}

/// Definition of a metric of a program.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricOf {
    /// Name of the metric.
    pub name: String,
    /// Unit of the metric.
    #[serde(default)]
    pub unit: String,
    /// Whether a higher or a lower value is better.
    #[serde(default)]
    pub better: Better,
    /// Regular expression that finds the number. The number is the first group of the last match.
    /// Without an expression, the metric is the run time in seconds.
    #[serde(default)]
    pub regex: Option<String>,
    /// Factor by which the number is multiplied to convert it to the unit.
    #[serde(default)]
    pub factor: Option<f64>,
}

impl MetricOf {
    /// Returns the metric for the run time of a program, in seconds.
    pub fn duration() -> Self {
        MetricOf {
            name: "duration".to_owned(),
            unit: "s".to_owned(),
            better: Better::Lower,
            regex: None,
            factor: None,
        }
    }

    /// Checks the regular expression.
    ///
    /// # Errors
    /// Returns the error in the expression.
    pub fn check(&self) -> Result<(), String> {
        let Some(regex) = &self.regex else {
            return Ok(());
        };
        let parsed = Regex::new(regex).map_err(|e| format!("\"{regex}\": {e}"))?;
        match parsed.captures_len() {
            1 => Err(format!(
                "\"{regex}\" has no group: put the number into parentheses, ([0-9.]+)"
            )),
            _ => Ok(()),
        }
    }

    /// Returns the number in the output, or `None` if there is none.
    pub fn find(&self, printed: &str, took_s: f64) -> Option<f64> {
        let value = match &self.regex {
            None => took_s,
            Some(regex) => {
                let regex = Regex::new(&format!("(?m){regex}")).ok()?;
                let last = regex.captures_iter(printed).last()?;
                number(last.get(1)?.as_str())?
            }
        };
        Some(value * self.factor.unwrap_or(1.0)).filter(|v| v.is_finite())
    }

    /// Returns the metric with a value, in the form of the record.
    pub fn metric(&self, value: f64) -> Metric {
        Metric {
            name: self.name.clone(),
            unit: self.unit.clone(),
            value,
            higher_is_better: self.better == Better::Higher,
            ..Metric::default()
        }
    }
}

/// Parses a number such as `1,234.5`, `32.7k` or `1e3`.
fn number(text: &str) -> Option<f64> {
    let text = text.replace(',', "");
    let (digits, times) = match text.chars().last()? {
        'k' | 'K' => (&text[..text.len() - 1], "e3"),
        'M' => (&text[..text.len() - 1], "e6"),
        _ => (text.as_str(), ""),
    };
    // The suffix becomes an exponent, so that 32.7k is exactly 32700.
    format!("{digits}{times}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric_of(regex: &str) -> MetricOf {
        MetricOf {
            regex: Some(regex.to_owned()),
            ..MetricOf::duration()
        }
    }

    #[test]
    fn metric_uses_the_last_match_and_ignores_thousands_separators() {
        let m = metric_of("^tps = ([0-9.,k]+)");
        assert_eq!(
            m.find("tps = 1\ntps = 1,234.5 (x)\n tps = 9", 0.0),
            Some(1234.5)
        );
        assert_eq!(m.find("tps = 32.7k", 0.0), Some(32_700.0));
        assert_eq!(m.find("tps: 3", 0.0), None);
        assert_eq!(MetricOf::duration().find("", 2.5), Some(2.5));
    }

    #[test]
    fn metric_pattern_without_group_or_invalid_is_rejected() {
        assert!(
            metric_of("tps = [0-9]+")
                .check()
                .expect_err("no group")
                .contains("parentheses")
        );
        assert!(metric_of("(").check().is_err());
        assert!(metric_of("([0-9]+)").check().is_ok());
    }
}
