//! The computation that is requested of a library: an op with its arguments, and the transforms
//! applied to it.
//!
//! Invariant: what [`Program::bytes`] writes, [`Program::read`] reads, and other bytes are an error.

use pullback::{Error, Result};

/// An op with its arguments, and the transforms that are applied to it, the first one first.
///
/// It is a function of the tensors among the arguments, in their order, and then of the tensors
/// that the steps add.
#[derive(Clone, PartialEq, Debug)]
pub struct Program {
    /// The number of the op in its library.
    pub op: u32,
    /// The arguments, one for each of the signature.
    pub arguments: Vec<Given>,
    /// The transforms that are applied, the first one first.
    pub steps: Vec<Step>,
}

/// An argument.
#[derive(Clone, PartialEq, Debug)]
pub enum Given {
    /// Nothing.
    None,
    /// The next input.
    Tensor,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A real number.
    Float(f64),
    /// A complex number.
    Complex(f64, f64),
    /// Text; dtypes and devices by their names.
    Text(String),
    /// A list.
    List(Vec<Given>),
}

/// A transform of a function of tensors that gives tensors.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// Takes the inputs and then a vector for each differentiable result, and gives the gradients of the inputs that are marked.
    Vjp(Vec<bool>),
    /// Takes the inputs and then a tangent for each one that is marked, and gives the tangents of the differentiable results.
    Jvp(Vec<bool>),
    /// Takes batches: for each input the dimension that counts examples. The first one of each result does.
    Vmap(Vec<Option<i64>>),
}

impl Program {
    /// The program with one more step.
    #[must_use]
    pub fn then(&self, step: Step) -> Program {
        let mut program = self.clone();
        program.steps.push(step);
        program
    }

    /// The program as bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut to = Vec::new();
        to.extend(self.op.to_le_bytes());
        write_all(&mut to, &self.arguments, write_given);
        write_all(&mut to, &self.steps, write_step);
        to
    }

    /// Reads what [`Program::bytes`] wrote.
    ///
    /// # Errors
    /// `ValueError` for other bytes.
    pub fn read(bytes: &[u8]) -> Result<Program> {
        let mut from = Reader(bytes);
        let op = u32::from_le_bytes(from.take()?);
        let arguments = from.all(|from| from.given(0))?;
        let steps = from.all(Reader::step)?;
        if from.0.is_empty() { Ok(Program { op, arguments, steps }) } else { Err(broken()) }
    }
}

fn broken() -> Error {
    Error::value("a program for an extension has other bytes than this version of pullback writes")
}

fn write_all<T>(to: &mut Vec<u8>, items: &[T], write: fn(&mut Vec<u8>, &T)) {
    to.extend((items.len() as u32).to_le_bytes());
    for item in items {
        write(to, item);
    }
}

fn write_given(to: &mut Vec<u8>, given: &Given) {
    match given {
        Given::None => to.push(0),
        Given::Tensor => to.push(1),
        Given::Bool(value) => to.extend([2, u8::from(*value)]),
        Given::Int(value) => {
            to.push(3);
            to.extend(value.to_le_bytes());
        }
        Given::Float(value) => {
            to.push(4);
            to.extend(value.to_le_bytes());
        }
        Given::Complex(re, im) => {
            to.push(5);
            to.extend(re.to_le_bytes());
            to.extend(im.to_le_bytes());
        }
        Given::Text(text) => {
            to.push(6);
            write_all(to, text.as_bytes(), |to, byte| to.push(*byte));
        }
        Given::List(items) => {
            to.push(7);
            write_all(to, items, write_given);
        }
    }
}

fn write_step(to: &mut Vec<u8>, step: &Step) {
    let mark = |to: &mut Vec<u8>, mark: &bool| to.push(u8::from(*mark));
    match step {
        Step::Vjp(marks) => {
            to.push(0);
            write_all(to, marks, mark);
        }
        Step::Jvp(marks) => {
            to.push(1);
            write_all(to, marks, mark);
        }
        Step::Vmap(dims) => {
            to.push(2);
            // (No tensor has a dimension of this number.)
            write_all(to, dims, |to, dim| to.extend(dim.unwrap_or(i64::MIN).to_le_bytes()));
        }
    }
}

/// The bytes that are left.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk().ok_or_else(broken)?;
        self.0 = rest;
        Ok(*head)
    }
    fn all<T>(&mut self, mut read: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let count = u32::from_le_bytes(self.take()?) as usize;
        // (Each item has a byte at least.)
        if count > self.0.len() {
            return Err(broken());
        }
        (0..count).map(|_| read(self)).collect()
    }
    fn number(&mut self) -> Result<f64> {
        Ok(f64::from_le_bytes(self.take()?))
    }
    fn truth(&mut self) -> Result<bool> {
        match self.take()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [_] => Err(broken()),
        }
    }
    fn given(&mut self, depth: usize) -> Result<Given> {
        let [kind] = self.take()?;
        Ok(match kind {
            0 => Given::None,
            1 => Given::Tensor,
            2 => Given::Bool(self.truth()?),
            3 => Given::Int(i64::from_le_bytes(self.take()?)),
            4 => Given::Float(self.number()?),
            5 => Given::Complex(self.number()?, self.number()?),
            6 => {
                let bytes = self.all(|from| Ok(from.take::<1>()?[0]))?;
                Given::Text(String::from_utf8(bytes).map_err(|_| broken())?)
            }
            // (No argument is a list of lists.)
            7 if depth == 0 => Given::List(self.all(|from| from.given(1))?),
            _ => return Err(broken()),
        })
    }
    fn step(&mut self) -> Result<Step> {
        let [kind] = self.take()?;
        Ok(match kind {
            0 => Step::Vjp(self.all(Self::truth)?),
            1 => Step::Jvp(self.all(Self::truth)?),
            2 => Step::Vmap(self.all(|from| {
                let dim = i64::from_le_bytes(from.take()?);
                Ok((dim != i64::MIN).then_some(dim))
            })?),
            _ => return Err(broken()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_shorter_or_longer_is() -> Result<()> {
        let list = Given::List(vec![Given::Int(-3), Given::None, Given::Tensor]);
        let numbers = [Given::Float(0.5), Given::Complex(1.0, -2.0), Given::Bool(true)];
        let mut arguments = vec![Given::None, list, Given::Text("ä".into())];
        arguments.extend(numbers);
        let program = Program { op: 7, arguments, steps: Vec::new() }
            .then(Step::Vjp(vec![true, false]))
            .then(Step::Vmap(vec![None, Some(-1)]))
            .then(Step::Jvp(vec![false]));
        let bytes = program.bytes();
        assert_eq!(Program::read(&bytes)?, program);
        for length in 0..bytes.len() {
            assert!(Program::read(&bytes[..length]).is_err(), "{length}");
        }
        assert!(Program::read(&[&bytes[..], &[0]].concat()).is_err());
        Ok(())
    }
}
