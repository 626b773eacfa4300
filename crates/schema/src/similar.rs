//! Suggesting the name that was meant by an unknown one.
//!
//! Names are compared by slips: a letter too many, missing, another one, or two neighbours swapped, each once (the distance
//! of optimal string alignment). Invariant: what is too far away is not guessed.

/// The most slips for which a name is suggested: one in a short name, two or three in a long one.
fn allowance(name: &str) -> usize {
    match name.chars().count() {
        0 | 1 => 0,
        2..=5 => 1,
        6..=10 => 2,
        _ => 3,
    }
}

/// How many slips lead from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    // bounded: by the lengths of names.
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let mut least = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && y == a[i - 1] {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// The name that `given` is closest to, the first of several, if it is close enough; letter case and underscores do not count.
pub fn closest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |name: &str| name.to_lowercase().replace('_', "");
    let given = plain(given);
    if given.len() > 64 {
        return None;
    }
    let near = names.map(|name| (distance(&given, &plain(name)), name));
    let (slips, name) = near.min_by_key(|(slips, _)| *slips)?;
    (slips <= allowance(&given).min(allowance(name))).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted() {
        assert_eq!(distance("dim", "dmi"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("keepdim", "keep_dim"), 1);
        assert_eq!(distance("correction", "corection"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn only_what_is_close_is_suggested() {
        let names = ["input", "dim", "keepdim", "dtype", "out"];
        let find = |given| closest(given, names.iter().copied());
        assert_eq!(find("dmi"), Some("dim"));
        assert_eq!(find("dims"), Some("dim"));
        assert_eq!(find("keepDims"), Some("keepdim"));
        assert_eq!(find("keep_dim"), Some("keepdim"));
        assert_eq!(find("dtpe"), Some("dtype"));
        assert_eq!((find("foo"), find("axis"), find("x"), find("")), (None, None, None, None));
    }
}
