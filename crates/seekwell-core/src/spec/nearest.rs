//! The word that was probably meant.

/// Letters inserted, removed or replaced between two words.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let up = row[j + 1];
            row[j + 1] = (diagonal + usize::from(x != y)).min(up.min(row[j]) + 1);
            diagonal = up;
        }
    }
    row[b.len()]
}

/// The known word nearest to `word`, if one is near: a third of its letters may differ.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let best = known
        .into_iter()
        .map(|k| {
            (
                distance(&word.to_ascii_lowercase(), &k.to_ascii_lowercase()),
                k,
            )
        })
        .min_by_key(|d| d.0)?;
    let most = word.len().max(best.1.len()) / 3;
    (best.0 <= most.max(1)).then_some(best.1)
}
