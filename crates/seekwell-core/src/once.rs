//! Names that may be given only once, in any notation of pairs. If a name is given twice, an error
//! shows both texts. Otherwise one of the two would be ignored silently.

use std::collections::BTreeMap;

/// The names that were given, each with its text.
#[derive(Clone, Debug, Default)]
pub struct Once(BTreeMap<String, String>);

impl Once {
    /// Records that `name` was given in `text`, as the user typed it.
    ///
    /// # Errors
    /// A message, if the name was given before.
    pub fn take(&mut self, name: &str, text: &str) -> Result<(), String> {
        match self.0.insert(name.to_owned(), text.trim().to_owned()) {
            None => Ok(()),
            Some(before) => Err(twice(name, &before, text)),
        }
    }
}

/// Returns the message for a name that was given in `first` and again in `second`.
pub fn twice(name: &str, first: &str, second: &str) -> String {
    let second = second.trim();
    format!("\"{name}\" is given twice, as \"{first}\" and as \"{second}\": leave one out")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_name_is_reported_with_both_texts() {
        let mut once = Once::default();
        assert_eq!(once.take("rpm", "rpm=7200"), Ok(()));
        assert_eq!(once.take("t_o", " t_o=1ms"), Ok(()));
        let said = "\"rpm\" is given twice, as \"rpm=7200\" and as \"rpm = 5400\": leave one out";
        assert_eq!(once.take("rpm", "rpm = 5400 "), Err(said.to_owned()));
    }
}
