//! Names that may be given once, in any notation of pairs. A duplicate is reported with both texts;
//! otherwise the first or the last would win silently.

use std::collections::BTreeMap;

/// The names given so far, each with its text.
#[derive(Clone, Debug, Default)]
pub struct Once(BTreeMap<String, String>);

impl Once {
    /// Records that `text`, as typed, gave `name`.
    ///
    /// # Errors
    /// The message if the name was given before.
    pub fn take(&mut self, name: &str, text: &str) -> Result<(), String> {
        match self.0.insert(name.to_owned(), text.trim().to_owned()) {
            None => Ok(()),
            Some(before) => Err(twice(name, &before, text)),
        }
    }
}

/// The message for a name that was given by `first` and again by `second`.
pub fn twice(name: &str, first: &str, second: &str) -> String {
    let second = second.trim();
    format!("`{name}` is given twice, as `{first}` and as `{second}`: leave one out")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_again_is_told_with_both_places() {
        let mut once = Once::default();
        assert_eq!(once.take("rpm", "rpm=7200"), Ok(()));
        assert_eq!(once.take("t_o", " t_o=1ms"), Ok(()));
        let said = "`rpm` is given twice, as `rpm=7200` and as `rpm = 5400`: leave one out";
        assert_eq!(once.take("rpm", "rpm = 5400 "), Err(said.to_owned()));
    }
}
