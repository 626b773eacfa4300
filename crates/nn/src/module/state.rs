//! State dicts: the tensors of a model by name.

use super::walk::{Path, Walk};
use pullback::io::FileValue;
use pullback::{Error, Result, Tensor, no_grad};
use std::collections::{HashMap, HashSet};

/// Tensors by name, in the order of the model.
#[derive(Clone, Debug, Default)]
pub struct StateDict {
    entries: Vec<(String, Tensor)>,
}

/// The names that only one side had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Incompatible {
    /// The names of the model that the state dict lacks.
    pub missing: Vec<String>,
    /// The names of the state dict that the model lacks.
    pub unexpected: Vec<String>,
}

impl StateDict {
    pub(super) fn of(walk: &Walk<'_>) -> Result<StateDict> {
        let mut entries = Vec::new();
        for (name, tensor) in tensors(walk) {
            entries.push((name, tensor.detach()?));
        }
        Ok(StateDict { entries })
    }

    /// How many tensors there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// The tensor of this name.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.entries.iter().find(|(own, _)| own == name).map(|(_, tensor)| tensor)
    }
    /// Puts a tensor under a name, in place of the previous one.
    pub fn insert(&mut self, name: impl Into<String>, tensor: Tensor) {
        let name = name.into();
        match self.entries.iter_mut().find(|(own, _)| *own == name) {
            Some((_, old)) => *old = tensor,
            None => self.entries.push((name, tensor)),
        }
    }
    /// Names and tensors.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.entries.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// The state dict as an object of a checkpoint, in the form of `model.state_dict()` in Python.
    pub fn to_value(&self) -> FileValue {
        FileValue::state_dict(self.iter().map(|(name, tensor)| (name, tensor.clone())))
    }
    /// The tensors of a dictionary of a checkpoint.
    ///
    /// # Errors
    /// `TypeError` if it is no dictionary of names and tensors.
    pub fn from_value(value: &FileValue) -> Result<StateDict> {
        let items =
            value.items().ok_or_else(|| Error::type_error("a state dict is a dictionary"))?;
        let entries = items.iter().map(|(key, value)| match (key.as_str(), value.as_tensor()) {
            (Some(name), Some(tensor)) => Ok((name.to_owned(), tensor.clone())),
            (name, _) => Err(Error::type_error(format!(
                "a state dict has names and tensors, but {} is something else",
                name.unwrap_or("a key")
            ))),
        });
        Ok(StateDict { entries: entries.collect::<Result<_>>()? })
    }

    pub(super) fn load_into(&self, walk: &Walk<'_>) -> Result<()> {
        let comparison = self.compared(walk);
        if comparison.is_exact() {
            return comparison.copy();
        }
        Err(Error::runtime(comparison.text()))
    }

    pub(super) fn load_matching(&self, walk: &Walk<'_>) -> Result<Incompatible> {
        let comparison = self.compared(walk);
        if !comparison.shapes.is_empty() {
            return Err(Error::runtime(comparison.text()));
        }
        comparison.copy()?;
        Ok(comparison.names)
    }

    fn compared(&self, walk: &Walk<'_>) -> Comparison {
        let given: HashMap<&str, &Tensor> = self.iter().collect();
        let mut comparison = Comparison::default();
        let mut known = HashSet::new();
        for (name, own) in tensors(walk) {
            match given.get(name.as_str()) {
                None => comparison.names.missing.push(name.clone()),
                Some(other) if other.shape() != own.shape() => comparison.shapes.push(format!(
                    "size mismatch for {name}: copying a param with shape {:?} from checkpoint, the shape in current model is {:?}.",
                    other.shape(),
                    own.shape()
                )),
                Some(other) => comparison.pairs.push((own, (*other).clone())),
            }
            known.insert(name);
        }
        let unknown = self.iter().map(|(name, _)| name).filter(|name| !known.contains(*name));
        comparison.names.unexpected.extend(unknown.map(str::to_owned));
        comparison
    }
}

impl<N: Into<String>> FromIterator<(N, Tensor)> for StateDict {
    fn from_iter<I: IntoIterator<Item = (N, Tensor)>>(items: I) -> Self {
        StateDict { entries: items.into_iter().map(|(name, t)| (name.into(), t)).collect() }
    }
}

/// All tensors, those of several names under each.
fn tensors(walk: &Walk<'_>) -> Vec<(String, Tensor)> {
    let mut found = Vec::new();
    walk(&Path::root(), &mut |path, _, tensor| found.push((path.to_string(), tensor.clone())));
    found
}

/// A comparison of a model with a state dict.
#[derive(Default)]
struct Comparison {
    pairs: Vec<(Tensor, Tensor)>,
    names: Incompatible,
    shapes: Vec<String>,
}

impl Comparison {
    fn is_exact(&self) -> bool {
        self.names == Incompatible::default() && self.shapes.is_empty()
    }
    fn copy(&self) -> Result<()> {
        let _off = no_grad();
        self.pairs.iter().try_for_each(|(own, given)| own.copy_(given, false).map(drop))
    }
    /// The error's text, with PyTorch's phrases.
    fn text(&self) -> String {
        let list = |what: &str, names: &[String]| {
            let is_some = !names.is_empty();
            is_some.then(|| format!("{what} key(s) in state_dict: \"{}\".", names.join("\", \"")))
        };
        let (missing, unexpected) = (&self.names.missing, &self.names.unexpected);
        let lines = [list("Missing", missing), list("Unexpected", unexpected)];
        let lines = lines.into_iter().flatten().chain(self.shapes.iter().cloned());
        let mut all = vec!["Error(s) in loading state_dict:".to_owned()];
        all.extend(lines);
        all.join("\n\t")
    }
}
