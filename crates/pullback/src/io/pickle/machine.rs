//! The stack machine.

use super::read::{Constant, Fault, Opcode, PickleReader};
use std::collections::HashMap;

/// The builder of objects: it makes objects of a pickle's operations. The machine calls nothing
/// else.
pub trait Build {
    /// An object, or a handle of one: a clone is the same object.
    type Object: Clone;
    /// The type of errors.
    type Error: From<Broken>;

    /// An object whose value is in its operation.
    fn constant(&mut self, constant: Constant<'_>) -> Result<Self::Object, Self::Error>;
    /// A tuple.
    fn tuple(&mut self, items: Vec<Self::Object>) -> Result<Self::Object, Self::Error>;
    /// A new list.
    fn list(&mut self, items: Vec<Self::Object>) -> Result<Self::Object, Self::Error>;
    /// A new, empty dictionary.
    fn dict(&mut self) -> Result<Self::Object, Self::Error>;
    /// A new set, frozen or not.
    fn set(
        &mut self,
        items: Vec<Self::Object>,
        is_frozen: bool,
    ) -> Result<Self::Object, Self::Error>;
    /// Appends to a list.
    fn append(&mut self, list: &Self::Object, items: Vec<Self::Object>) -> Result<(), Self::Error>;
    /// Sets items of a dictionary: keys and values alternate, an even number of them.
    fn set_items(
        &mut self,
        dict: &Self::Object,
        items: Vec<Self::Object>,
    ) -> Result<(), Self::Error>;
    /// Adds to a set.
    fn add(&mut self, set: &Self::Object, items: Vec<Self::Object>) -> Result<(), Self::Error>;
    /// The object that a name in a module stands for.
    fn global(&mut self, module: &str, name: &str) -> Result<Self::Object, Self::Error>;
    /// The text of an object that is a string.
    fn text(&self, object: &Self::Object) -> Option<String>;
    /// Calls an object with a tuple of arguments.
    fn reduce(
        &mut self,
        callable: Self::Object,
        arguments: Self::Object,
    ) -> Result<Self::Object, Self::Error>;
    /// An object of a class, made by its `__new__`.
    fn new_object(
        &mut self,
        class: Self::Object,
        arguments: Self::Object,
        keywords: Option<Self::Object>,
    ) -> Result<Self::Object, Self::Error>;
    /// Gives an object its state.
    fn build(&mut self, instance: &Self::Object, state: Self::Object) -> Result<(), Self::Error>;
    /// The object outside of the pickle that this name stands for.
    fn persistent(&mut self, id: Self::Object) -> Result<Self::Object, Self::Error>;
    /// Called with the protocol that the pickle says it follows.
    fn protocol(&mut self, protocol: u8) -> Result<(), Self::Error>;
}

/// A pickle that is malformed, as an error of the builder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken(pub Fault);

/// The limits of what a pickle may contain.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The depth to which tuples may be nested: hashes and comparisons recurse into them.
    pub tuple_depth: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { tuple_depth: 1000 }
    }
}

/// The highest protocol there is.
const HIGHEST: u8 = 5;

/// An object on the stack, the depth of its nested tuples, and the number of objects that a walk
/// through it meets: an object that occurs twice is met twice.
#[derive(Clone)]
struct StackEntry<O> {
    object: O,
    depth: u32,
    size: u64,
}

struct Machine<'a, 'b, B: Build> {
    reader: PickleReader<'a>,
    builder: &'b mut B,
    limits: Limits,
    /// How many objects a walk through a tuple may meet. Each level may double them, and a hash walks through all.
    largest: u64,
    stack: Vec<StackEntry<B::Object>>,
    /// The positions of the marks: heights of the stack.
    marks: Vec<usize>,
    memo: HashMap<u32, StackEntry<B::Object>>,
}

/// Runs the pickle that begins at byte `at`, and returns the byte at which the next object begins.
///
/// # Errors
/// Those of the builder, and faults of the pickle.
pub fn run<B: Build>(
    bytes: &[u8],
    at: usize,
    limits: Limits,
    builder: &mut B,
) -> Result<(B::Object, usize), B::Error> {
    let reader = PickleReader::new(bytes, at);
    let (stack, marks, memo) = (Vec::new(), Vec::new(), HashMap::new());
    let largest = (bytes.len() as u64).saturating_mul(16).saturating_add(4096);
    let mut machine = Machine { reader, builder, limits, largest, stack, marks, memo };
    loop {
        let op = machine.reader.next().map_err(Broken)?;
        if op == Opcode::Stop {
            let result = machine.pop()?;
            return Ok((result.object, machine.reader.position()));
        }
        machine.step(op)?;
    }
}

impl<B: Build> Machine<'_, '_, B> {
    fn fault<T>(&self, text: impl Into<String>) -> Result<T, B::Error> {
        Err(B::Error::from(Broken(self.reader.fault(text))))
    }
    /// Items above the last mark may be taken, those below it may not.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }
    fn pop(&mut self) -> Result<StackEntry<B::Object>, B::Error> {
        if self.stack.len() <= self.floor() {
            return self.fault("the stack is empty");
        }
        match self.stack.pop() {
            Some(entry) => Ok(entry),
            None => self.fault("the stack is empty"),
        }
    }
    fn top(&self) -> Result<&StackEntry<B::Object>, B::Error> {
        match self.stack.last() {
            Some(top) if self.stack.len() > self.floor() => Ok(top),
            _ => self.fault("the stack is empty"),
        }
    }
    fn push(&mut self, object: B::Object) {
        self.stack.push(StackEntry { object, depth: 0, size: 1 });
    }
    /// The items above the last mark, which is removed.
    fn pop_mark(&mut self) -> Result<Vec<StackEntry<B::Object>>, B::Error> {
        let Some(height) = self.marks.pop() else { return self.fault("there is no mark") };
        Ok(self.stack.split_off(height))
    }
    fn objects(&mut self) -> Result<Vec<B::Object>, B::Error> {
        Ok(self.pop_mark()?.into_iter().map(|entry| entry.object).collect())
    }
    /// Keys and values above the last mark.
    fn pairs(&mut self) -> Result<Vec<B::Object>, B::Error> {
        let items = self.objects()?;
        if items.len() % 2 == 1 { self.fault("a key has no value") } else { Ok(items) }
    }
    fn measure(&self, items: &[StackEntry<B::Object>]) -> Result<(u32, u64), B::Error> {
        let depth = 1 + items.iter().map(|item| item.depth).max().unwrap_or(0);
        if depth > self.limits.tuple_depth {
            return self
                .fault(format!("tuples are nested deeper than {}", self.limits.tuple_depth));
        }
        let size = items.iter().fold(1_u64, |sum, item| sum.saturating_add(item.size));
        if size > self.largest {
            return self
                .fault(format!("a tuple unfolds to {size} objects: more than {}", self.largest));
        }
        Ok((depth, size))
    }
    fn tuple(&mut self, items: Vec<StackEntry<B::Object>>) -> Result<(), B::Error> {
        let (depth, size) = self.measure(&items)?;
        let objects = items.into_iter().map(|item| item.object).collect();
        let object = self.builder.tuple(objects)?;
        self.stack.push(StackEntry { object, depth, size });
        Ok(())
    }
    fn tuple_of(&mut self, count: usize) -> Result<(), B::Error> {
        let Some(height) = self.stack.len().checked_sub(count).filter(|&h| h >= self.floor())
        else {
            return self.fault("the stack is empty");
        };
        let items = self.stack.split_off(height);
        self.tuple(items)
    }
    fn remember(&mut self, key: u32) -> Result<(), B::Error> {
        let top = self.top()?.clone();
        self.memo.insert(key, top);
        Ok(())
    }

    fn step(&mut self, op: Opcode<'_>) -> Result<(), B::Error> {
        match op {
            Opcode::Constant(constant) => {
                let object = self.builder.constant(constant)?;
                self.push(object);
            }
            Opcode::Mark => self.marks.push(self.stack.len()),
            Opcode::Pop => {
                // (CPython's pickler removes marks with this operation too.)
                if self.stack.len() == self.floor() && self.marks.pop().is_some() {
                    return Ok(());
                }
                self.pop()?;
            }
            Opcode::PopMark => drop(self.pop_mark()?),
            Opcode::Dup => {
                let top = self.top()?.clone();
                self.stack.push(top);
            }
            Opcode::Get(key) => match self.memo.get(&key) {
                Some(entry) => self.stack.push(entry.clone()),
                None => return self.fault(format!("Memo value not found at index {key}")),
            },
            Opcode::Put(key) => self.remember(key)?,
            Opcode::Memoize => self.remember(self.memo.len() as u32)?,
            Opcode::Protocol(protocol) if protocol > HIGHEST => {
                return self.fault(format!("unsupported pickle protocol: {protocol}"));
            }
            Opcode::Protocol(protocol) => self.builder.protocol(protocol)?,
            Opcode::Frame | Opcode::Stop => {}
            other => return self.step_container(other),
        }
        Ok(())
    }

    fn step_container(&mut self, op: Opcode<'_>) -> Result<(), B::Error> {
        let object = match op {
            Opcode::EmptyList => self.builder.list(Vec::new())?,
            Opcode::EmptyDict => self.builder.dict()?,
            Opcode::EmptySet => self.builder.set(Vec::new(), false)?,
            Opcode::EmptyTuple => return self.tuple(Vec::new()),
            Opcode::TupleOf(count) => return self.tuple_of(count),
            Opcode::Tuple => {
                let items = self.pop_mark()?;
                return self.tuple(items);
            }
            Opcode::List => {
                let items = self.objects()?;
                self.builder.list(items)?
            }
            Opcode::Dict => {
                let items = self.pairs()?;
                let dict = self.builder.dict()?;
                self.builder.set_items(&dict, items)?;
                dict
            }
            Opcode::FrozenSet => {
                let items = self.pop_mark()?;
                let (depth, size) = self.measure(&items)?;
                let objects = items.into_iter().map(|item| item.object).collect();
                let object = self.builder.set(objects, true)?;
                self.stack.push(StackEntry { object, depth, size });
                return Ok(());
            }
            Opcode::Append => {
                let item = self.pop()?.object;
                let list = self.top()?.object.clone();
                return self.builder.append(&list, vec![item]);
            }
            Opcode::Appends => {
                let items = self.objects()?;
                let list = self.top()?.object.clone();
                return self.builder.append(&list, items);
            }
            Opcode::SetItem => {
                let value = self.pop()?.object;
                let key = self.pop()?.object;
                let dict = self.top()?.object.clone();
                return self.builder.set_items(&dict, vec![key, value]);
            }
            Opcode::SetItems => {
                let items = self.pairs()?;
                let dict = self.top()?.object.clone();
                return self.builder.set_items(&dict, items);
            }
            Opcode::AddItems => {
                let items = self.objects()?;
                let set = self.top()?.object.clone();
                return self.builder.add(&set, items);
            }
            other => return self.step_call(other),
        };
        self.push(object);
        Ok(())
    }

    fn step_call(&mut self, op: Opcode<'_>) -> Result<(), B::Error> {
        let object = match op {
            Opcode::Global(module, name) => self.builder.global(module, name)?,
            Opcode::StackGlobal => {
                let (name, module) = (self.pop()?.object, self.pop()?.object);
                let names = (self.builder.text(&module), self.builder.text(&name));
                let (Some(module), Some(name)) = names else {
                    return self.fault("STACK_GLOBAL requires str");
                };
                self.builder.global(&module, &name)?
            }
            Opcode::Instance(module, name) => {
                let items = self.objects()?;
                let class = self.builder.global(module, name)?;
                let arguments = self.builder.tuple(items)?;
                self.builder.reduce(class, arguments)?
            }
            Opcode::Object => {
                let mut items = self.objects()?;
                if items.is_empty() {
                    return self.fault("an object has no class");
                }
                let class = items.remove(0);
                let arguments = self.builder.tuple(items)?;
                self.builder.reduce(class, arguments)?
            }
            Opcode::Reduce => {
                let arguments = self.pop()?.object;
                let callable = self.pop()?.object;
                self.builder.reduce(callable, arguments)?
            }
            Opcode::NewObject => {
                let arguments = self.pop()?.object;
                let class = self.pop()?.object;
                self.builder.new_object(class, arguments, None)?
            }
            Opcode::NewObjectWithKeywords => {
                let keywords = self.pop()?.object;
                let arguments = self.pop()?.object;
                let class = self.pop()?.object;
                self.builder.new_object(class, arguments, Some(keywords))?
            }
            Opcode::Build => {
                let state = self.pop()?.object;
                let instance = self.top()?.object.clone();
                return self.builder.build(&instance, state);
            }
            Opcode::PersistentText(id) => {
                let id = self.builder.constant(Constant::Text(id.as_bytes().into()))?;
                self.builder.persistent(id)?
            }
            Opcode::Persistent => {
                let id = self.pop()?.object;
                self.builder.persistent(id)?
            }
            other => return self.fault(format!("{other:?} is no operation on objects")),
        };
        self.push(object);
        Ok(())
    }
}
