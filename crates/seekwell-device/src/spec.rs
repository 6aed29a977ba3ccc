//! Texts that name devices, one inside another.
//!
//! `KIND:NAME,key=value,...`; a value that is itself a list or a device with options stands in
//! parentheses, and several members are joined by `+`:
//! `raid5:members=4,of=(hdd:hitachi-7k500,write_cache=off),chunk=64KiB`,
//! `raid1:of=hdd:hitachi-7k500+hdd:hitachi-7k200`.

/// The pieces of a text between a separator, parentheses left whole; blanks around them are cut.
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

/// Without the parentheses around it, if they enclose all of it.
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

/// Is every parenthesis closed, and none before it was opened?
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
    fn parentheses_hold_together() {
        assert_eq!(split("a,b=(c,d=(e,f)),g", ','), ["a", "b=(c,d=(e,f))", "g"]);
        assert_eq!(split("(a+b)+c", '+'), ["(a+b)", "c"]);
        assert_eq!(split("", ','), [""]);
        assert_eq!(bare("(a,(b))"), "a,(b)");
        assert_eq!(bare("(a)+(b)"), "(a)+(b)");
        assert_eq!(bare(" x "), "x");
        assert!(balanced("a(b(c))") && !balanced("a)b(") && !balanced("(("));
    }
}
