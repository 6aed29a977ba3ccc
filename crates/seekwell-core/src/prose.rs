//! Names of schedulers in sentences. The scheduler `none` is quoted in a sentence, because readers
//! could take its name for the word "none": "undefeated: `none`". Tables and data contain the plain
//! name.

/// Returns a scheduler's name or label for use in a sentence. A label that begins with the word
/// none (`none`, `none:wbt_lat_usec=0`, `none-6.1`) is put in backticks. Other labels are returned
/// unchanged.
pub fn in_prose(label: &str) -> String {
    let word = label.split(|c: char| !c.is_alphanumeric()).next();
    match word.is_some_and(|w| w.eq_ignore_ascii_case("none")) {
        true => format!("`{label}`"),
        false => label.to_owned(),
    }
}

/// Returns [`in_prose`] of each label.
pub fn all_in_prose<S: AsRef<str>>(labels: &[S]) -> Vec<String> {
    labels.iter().map(|l| in_prose(l.as_ref())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_scheduler_named_none_is_quoted() {
        for (label, said) in [
            ("none", "`none`"),
            ("None", "`None`"),
            ("none:wbt_lat_usec=0", "`none:wbt_lat_usec=0`"),
            ("none-6.1", "`none-6.1`"),
            ("none, ext4", "`none, ext4`"),
            ("noop", "noop"),
            ("mq-deadline", "mq-deadline"),
            ("nonesuch", "nonesuch"),
            ("", ""),
        ] {
            assert_eq!(in_prose(label), said);
        }
        assert_eq!(all_in_prose(&["none", "bfq"]), ["`none`", "bfq"]);
    }
}
