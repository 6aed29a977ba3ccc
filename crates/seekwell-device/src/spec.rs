//! The syntax of nested device specifications.
//!
//! The form is `KIND:NAME,key=value,...`. A value is in parentheses if it is a list, or a device
//! with options. Several members are joined by `+`. Examples:
//! `raid5:members=4,of=(hdd:hitachi-7k500,write_cache=off),chunk=64KiB`,
//! `raid1:of=hdd:hitachi-7k500+hdd:hitachi-7k200`.

/// Splits a text at each separator that is outside parentheses, and trims each piece.
pub fn split(text: &str, at: char) -> Vec<&str> {
    let (mut depth, mut from, mut out) = (0i32, 0, Vec::new());
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            c if c == at && depth == 0 => {
                out.push(text[from..i].trim());
                from = i + c.len_utf8();
            }
            _ => {}
        }
    }
    out.push(text[from..].trim());
    out
}

/// Removes the outer parentheses, if they enclose the whole text.
pub fn bare(text: &str) -> &str {
    let text = text.trim();
    let Some(inner) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) else {
        return text;
    };
    let mut depth = 0i32;
    for c in inner.chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if depth < 0 {
            return text;
        }
    }
    inner.trim()
}

/// Returns true if the parentheses of a text are balanced.
pub fn balanced(text: &str) -> bool {
    let mut depth = 0i32;
    for c in text.chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if depth < 0 {
            return false;
        }
    }
    depth == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specification_split_respects_parentheses() {
        assert_eq!(split("a,b=(c,d=(e,f)),g", ','), ["a", "b=(c,d=(e,f))", "g"]);
        assert_eq!(split("(a+b)+c", '+'), ["(a+b)", "c"]);
        assert_eq!(split("", ','), [""]);
        assert_eq!(bare("(a,(b))"), "a,(b)");
        assert_eq!(bare("(a)+(b)"), "(a)+(b)");
        assert_eq!(bare(" x "), "x");
        assert!(balanced("a(b(c))") && !balanced("a)b(") && !balanced("(("));
    }
}
