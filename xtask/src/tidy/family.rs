//! The ops that one item stands for: the rows of the lists `each(Name { KEY: value, .. }, ..)` behind its signature.
//!
//! Every combination of rows is an op, with the rows' names joined (`crates/macros/src/family.rs` expands them).

use super::source::Source;

/// One op of a family.
#[derive(Clone, Debug, Default)]
pub(super) struct Member {
    /// The name of its type.
    pub(super) name: String,
    /// The value of each key, without quotes.
    values: Vec<(String, String)>,
}

impl Member {
    /// A text of the item with the values in the place of their keys.
    pub(super) fn fill(&self, text: &str) -> String {
        self.values
            .iter()
            .fold(text.to_owned(), |text, (key, value)| text.replace(&format!("{{{key}}}"), value))
    }
}

/// The members of the family whose lists begin behind a position and before the next item; none if there is no list.
pub(super) fn members(source: &Source, from: usize) -> Vec<Member> {
    let code = &source.code[from..];
    let next_item = ["impl ", "\n#[op("].iter().filter_map(|next| code.find(next)).min();
    let end = from + next_item.unwrap_or(code.len());
    let mut members: Vec<Member> = Vec::new();
    let mut at = from;
    while let Some(list) = source.code[at..end].find("each(").map(|found| at + found + 4) {
        at = list + 1;
        if source.code[..list - 4].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        at = closing(&source.code, list);
        let rows = rows(source, list + 1, at);
        let before = if members.is_empty() { vec![Member::default()] } else { members };
        members =
            before.iter().flat_map(|first| rows.iter().map(|row| first.joined(row))).collect();
    }
    members
}

impl Member {
    fn joined(&self, row: &Member) -> Member {
        let name = if row.name == "_" { "" } else { &row.name };
        Member {
            name: self.name.clone() + name,
            values: [self.values.clone(), row.values.clone()].concat(),
        }
    }
}

/// The rows between two positions.
fn rows(source: &Source, from: usize, to: usize) -> Vec<Member> {
    let mut rows = Vec::new();
    let mut at = from;
    while let Some(open) = source.code[at..to].find('{').map(|found| at + found) {
        let name = source.code[at..open].rsplit([',', ' ', '\n']).find(|word| !word.is_empty());
        let close = closing(&source.code, open);
        let values = parts(&source.code, open + 1, close).into_iter().filter_map(|(start, end)| {
            let (key, value) = source.text[start..end].split_once(':')?;
            Some((key.trim().to_owned(), value.trim().trim_matches('"').to_owned()))
        });
        rows.push(Member { name: name.unwrap_or_default().to_owned(), values: values.collect() });
        at = close + 1;
    }
    rows
}

/// Where the bracket at `open` closes.
fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, byte) in code.as_bytes()[open..].iter().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth <= 1 => return open + offset,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

/// The parts between the commas that stand in no bracket.
fn parts(code: &str, from: usize, to: usize) -> Vec<(usize, usize)> {
    let (mut depth, mut start, mut found) = (0_usize, from, Vec::new());
    for (offset, byte) in code.as_bytes()[from..to].iter().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                found.push((start, from + offset));
                start = from + offset + 1;
            }
            _ => {}
        }
    }
    found.push((start, to));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_give_every_combination() {
        let text = "#[op(\"conv{N}d{FORM}(Tensor x) -> Tensor\", out,\n\
                    each(Conv1d { N: 1, SHAPES: [&[2, 5]] }, Conv2d { N: 2, SHAPES: [] }),\n\
                    each(_ { FORM: \"\" }, Padding { FORM: \".padding\" }))]\nimpl Conv {}";
        let source = Source::new("crates/pullback/src/ops/conv.rs", text);
        let found = members(&source, 0);
        let found: Vec<_> =
            found.iter().map(|m| (m.name.as_str(), m.fill("conv{N}d{FORM}"))).collect();
        let expected = [
            ("Conv1d", "conv1d".to_owned()),
            ("Conv1dPadding", "conv1d.padding".to_owned()),
            ("Conv2d", "conv2d".to_owned()),
            ("Conv2dPadding", "conv2d.padding".to_owned()),
        ];
        assert_eq!(found, expected);
    }
}
