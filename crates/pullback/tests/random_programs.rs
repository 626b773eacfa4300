//! Random programs of views, indexing, broadcasting, in-place writes and in-place changes of shape, run by the library and
//! by a naive model.
//!
//! After each step every array must hold the same numbers, and the same tangents if there are any; at the end so must the
//! gradient of the sum of all arrays. Numbers are small integers, so everything is exact. Steps are numbers that are read modulo what is
//! there (how many arrays, dimensions, sizes): every list of steps is a program, and proptest can drop and shrink
//! them freely. A failure prints the program as text.

mod model;

use model::change::{Change, KINDS};
use model::{Array, Binary, Dual, LEAF, Memory, Slot, common, index as model_index};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use pullback::autograd::forward::{DualLevel, dual_level, make_dual};
use pullback::autograd::mode::set_view_replay_enabled;
use pullback::index::{self, Index};
use pullback::{Bool, Tensor, no_grad};

/// One part of a random index.
#[derive(Clone, Copy, Debug)]
enum Part {
    Int(u8),
    Slice(u8, u8, u8),
    NewAxis,
    Ellipsis,
    Positions(u8, u8),
    Mask(u8),
}

/// One step; numbers name arrays, dimensions and positions modulo what is there.
#[derive(Clone, Debug)]
enum Step {
    Get(u8, Vec<Part>),
    Set(u8, Vec<Part>, u8),
    Transpose(u8, u8, u8),
    Expand(u8, u8),
    Reshape(u8),
    Binary(Binary, u8, u8),
    /// With a copy of the other array, or with the array itself.
    Inplace(Binary, u8, u8, bool),
    /// A change of shape in place; the last number counts dimensions from the end, and leaves a view's change unrecorded.
    Change(u8, u8, u8, u8, u8),
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        3 => any::<u8>().prop_map(Part::Int),
        4 => any::<(u8, u8, u8)>().prop_map(|(a, b, c)| Part::Slice(a, b, c)),
        1 => Just(Part::NewAxis),
        1 => Just(Part::Ellipsis),
        2 => any::<(u8, u8)>().prop_map(|(a, b)| Part::Positions(a, b)),
        1 => any::<u8>().prop_map(Part::Mask),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let parts = || prop::collection::vec(part(), 0..4);
    let binary = || prop_oneof![Just(Binary::Add), Just(Binary::Sub), Just(Binary::Mul)];
    prop_oneof![
        4 => (any::<u8>(), parts()).prop_map(|(a, p)| Step::Get(a, p)),
        3 => (any::<u8>(), parts(), any::<u8>()).prop_map(|(a, p, v)| Step::Set(a, p, v)),
        1 => any::<(u8, u8, u8)>().prop_map(|(a, b, c)| Step::Transpose(a, b, c)),
        1 => any::<(u8, u8)>().prop_map(|(a, b)| Step::Expand(a, b)),
        1 => any::<u8>().prop_map(Step::Reshape),
        2 => (binary(), any::<u8>(), any::<u8>()).prop_map(|(o, a, b)| Step::Binary(o, a, b)),
        3 => (binary(), any::<u8>(), any::<u8>(), any::<bool>())
            .prop_map(|(o, a, b, c)| Step::Inplace(o, a, b, c)),
        3 => any::<(u8, u8, u8, u8, u8)>().prop_map(|(a, k, p, q, how)| Step::Change(a, k, p, q, how)),
    ]
}

/// Both worlds: array `i` of the one is array `i` of the other.
struct Run {
    tensors: Vec<Tensor>,
    arrays: Vec<Array>,
    memory: Memory,
    text: Vec<String>,
    /// Whether a tensor that views may show more of was cut.
    is_cut: bool,
    /// Whether one was made to show its elements twice.
    is_doubled: bool,
    way: Way,
    _level: Option<DualLevel>,
}

/// Which of the library's ways the program takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Backward,
    /// Views keep the ops that made them.
    Replay,
    /// The leaf has a tangent too.
    Forward,
}

const WAYS: [Way; 3] = [Way::Backward, Way::Replay, Way::Forward];

/// The leaf's tangent.
const DIRECTION: [f64; LEAF] = [1.0, -2.0, 3.0, 0.0, 5.0, -1.0];

/// One at a time: a level of forward mode is the process's.
fn in_turn() -> std::sync::MutexGuard<'static, ()> {
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

type Check = Result<(), String>;

fn sizes(shape: &[usize]) -> Vec<i64> {
    shape.iter().map(|&n| n as i64).collect()
}

impl Run {
    fn start(way: Way) -> (Run, Tensor) {
        set_view_replay_enabled(way == Way::Replay);
        let level = (way == Way::Forward).then(|| dual_level().unwrap());
        let numbers: Vec<f64> = (0..LEAF).map(|i| i as f64 - 2.0).collect();
        let leaf = Tensor::from_slice(&numbers, &[2, 3]).unwrap().with_grad().unwrap();
        let start = match way {
            Way::Forward => {
                make_dual(&leaf, &Tensor::from_slice(&DIRECTION, &[2, 3]).unwrap()).unwrap()
            }
            _ => leaf.clone(),
        };
        let mut run = Run {
            tensors: vec![],
            arrays: vec![],
            memory: Memory::default(),
            text: vec![format!("{way:?}")],
            is_cut: false,
            is_doubled: false,
            way,
            _level: level,
        };
        let duals = numbers.iter().enumerate().map(|(i, &v)| Dual::leaf(v, i)).collect();
        let array = run.memory.make(&[2, 3], duals);
        run.push("leaf * 1".into(), (&start * 1.0).get().unwrap(), array);
        for shape in [vec![3, 2, 2], vec![3], vec![]] {
            let count: usize = shape.iter().product();
            let numbers: Vec<f64> = (0..count).map(|i| (i % 5) as f64 - 1.0).collect();
            let array =
                run.memory.make(&shape, numbers.iter().copied().map(Dual::constant).collect());
            let tensor = Tensor::from_slice(&numbers, &sizes(&shape)).unwrap();
            run.push(format!("numbers of shape {shape:?}"), tensor, array);
        }
        (run, leaf)
    }

    fn push(&mut self, text: String, tensor: Tensor, array: Array) {
        self.text.push(format!("x{} = {text}", self.tensors.len()));
        self.tensors.push(tensor);
        self.arrays.push(array);
    }

    fn pick(&self, number: u8) -> usize {
        number as usize % self.tensors.len()
    }

    /// The parts as the library and the model take them.
    fn resolve(&self, at: usize, parts: &[Part]) -> (Vec<Index>, Vec<Slot>) {
        let shape = &self.arrays[at].shape;
        let takes = |p: &Part| !matches!(p, Part::NewAxis | Part::Ellipsis);
        let parts = fitting(parts, shape.len());
        let taken = parts.iter().filter(|p| takes(p)).count();
        let tensors =
            parts.iter().filter(|p| matches!(p, Part::Positions(..) | Part::Mask(_))).count();
        let (mut indices, mut slots, mut dim) = (vec![], vec![], 0);
        for part in parts {
            let size = shape.get(dim).copied().unwrap_or(1);
            dim += usize::from(takes(&part));
            let (index, slot) = match part {
                Part::NewAxis => (Index::NewAxis, Slot::New),
                Part::Ellipsis => {
                    indices.push(Index::Ellipsis);
                    slots.extend(
                        shape[dim..][..shape.len() - taken]
                            .iter()
                            .map(|&n| Slot::Keep((0..n).collect())),
                    );
                    dim += shape.len() - taken;
                    continue;
                }
                Part::Int(i) if size > 0 => {
                    let i = i as usize % (2 * size);
                    (Index::Int(i as i64 - size as i64), Slot::Fixed(i % size))
                }
                Part::Positions(a, b) if size > 0 && tensors == 1 => {
                    let mut chosen = vec![a as usize % size];
                    if b % 2 != 0 {
                        chosen.push((a as usize + 1 + b as usize / 2) % size);
                    }
                    positions(chosen)
                }
                Part::Positions(a, _) if size > 0 => {
                    positions(vec![a as usize % size, (a as usize / 7) % size])
                }
                Part::Mask(bits) if tensors == 1 => {
                    let chosen: Vec<bool> = (0..size).map(|i| bits >> (i % 8) & 1 == 1).collect();
                    let bools: Vec<Bool> = chosen.iter().map(|&b| Bool::new(b)).collect();
                    let mask = Tensor::from_slice(&bools, &[size as i64]).unwrap();
                    (Index::Tensor(mask), Slot::Tensor((0..size).filter(|&i| chosen[i]).collect()))
                }
                Part::Slice(a, b, c) => slice(size, a, b, c),
                _ => slice(size, 0, 255, 0),
            };
            indices.push(index);
            slots.push(slot);
        }
        slots.extend(shape[dim..].iter().map(|&n| Slot::Keep((0..n).collect())));
        (indices, slots)
    }

    fn all(&mut self, steps: &[Step], leaf: &Tensor) -> Check {
        for step in steps {
            self.step(step)?;
            self.compare()?;
            if !self.is_exact() {
                return Ok(());
            }
        }
        self.compare_gradients(leaf)
    }

    fn step(&mut self, step: &Step) -> Check {
        match step {
            Step::Get(a, parts) => self.get(self.pick(*a), parts),
            Step::Set(a, parts, v) => self.set(self.pick(*a), parts, self.pick(*v)),
            Step::Transpose(a, d0, d1) => {
                let a = self.pick(*a);
                let array = &self.arrays[a];
                let n = array.shape.len().max(1);
                let (d0, d1) = (*d0 as usize % n, *d1 as usize % n);
                let mut shape = array.shape.clone();
                if !shape.is_empty() {
                    shape.swap(d0, d1);
                }
                let seen = array.seen(&shape, |at| {
                    let mut at = at.to_vec();
                    if !at.is_empty() {
                        at.swap(d0, d1);
                    }
                    at
                });
                let tensor =
                    self.tensors[a].transpose(d0 as i64, d1 as i64).map_err(|e| e.to_string())?;
                self.push(format!("x{a}.transpose({d0}, {d1})"), tensor, seen);
                Ok(())
            }
            Step::Expand(a, n) => {
                let a = self.pick(*a);
                let mut shape = self.arrays[a].shape.clone();
                shape.insert(0, *n as usize % 3 + 1);
                let seen = self.arrays[a].broadcast(&shape).unwrap();
                let tensor =
                    self.tensors[a].expand(&sizes(&shape), false).map_err(|e| e.to_string())?;
                self.push(format!("x{a}.expand({shape:?})"), tensor, seen);
                Ok(())
            }
            Step::Reshape(a) => {
                // To a copy first: whether a reshape copies is the library's business.
                let a = self.pick(*a);
                let mut flat = self.memory.copy(&self.arrays[a]);
                flat.shape = vec![flat.places.len()];
                let tensor = self.tensors[a]
                    .clone_tensor(None)
                    .and_then(|t| t.reshape(&[flat.places.len() as i64]));
                self.push(
                    format!("x{a}.clone().flatten()"),
                    tensor.map_err(|e| e.to_string())?,
                    flat,
                );
                Ok(())
            }
            Step::Binary(op, a, b) => self.binary(*op, self.pick(*a), self.pick(*b)),
            Step::Inplace(op, a, b, copies) => {
                // A product saves the other factor, which must not be written to later.
                let copies = *copies || matches!(op, Binary::Mul);
                self.inplace(*op, self.pick(*a), self.pick(*b), copies)
            }
            Step::Change(a, kind, p, q, how) => self.change(self.pick(*a), (*kind, *p, *q), *how),
        }
    }

    fn change(&mut self, a: usize, (kind, p, q): (u8, u8, u8), how: u8) -> Check {
        let change = Change::of(kind, p, q, self.arrays[a].shape.len());
        let tensor = &self.tensors[a];
        let is_unrecorded = how & 2 != 0 && tensor.is_view();
        let guard = is_unrecorded.then(no_grad);
        let note = if is_unrecorded { " without recording" } else { "" };
        self.text.push(format!("x{a}.{change:?}{note}"));
        change.apply(tensor, how & 1 != 0).map_err(|e| e.to_string())?;
        drop(guard);
        self.is_cut |= matches!(change, Change::EverySecond(..)) && !tensor.is_view();
        self.is_doubled |= matches!(change, Change::Twice) && !tensor.is_view();
        self.arrays[a] = change.model(&self.arrays[a]);
        Ok(())
    }

    fn get(&mut self, a: usize, parts: &[Part]) -> Check {
        let (indices, slots) = self.resolve(a, parts);
        let (mut seen, is_copy) = model_index(&self.arrays[a], &slots);
        if is_copy {
            seen = self.memory.copy(&seen);
        }
        let tensor = index::get(&self.tensors[a], &indices)
            .map_err(|e| format!("{e} at x{a}[{indices:?}]"))?;
        self.push(format!("x{a}[{indices:?}]"), tensor, seen);
        Ok(())
    }

    fn set(&mut self, a: usize, parts: &[Part], v: usize) -> Check {
        let (indices, slots) = self.resolve(a, parts);
        let (target, _) = model_index(&self.arrays[a], &slots);
        // Two values for one place: which one stays is not specified.
        if target.has_twins() || self.arrays[a].has_twins() {
            return Ok(());
        }
        self.text.push(format!("x{a}[{indices:?}] = x{v}.clone()"));
        let value = self.tensors[v].clone_tensor(None).map_err(|e| e.to_string())?;
        let mut source = self.arrays[v].clone();
        while source.shape.first() == Some(&1) && source.shape.len() > target.shape.len() {
            source.shape.remove(0);
        }
        let source = source.broadcast(&target.shape);
        match (index::set(&self.tensors[a], &indices, &value), source) {
            (Ok(()), Some(source)) => {
                let values = self.memory.read(&source);
                self.memory.write(&target, &values);
                Ok(())
            }
            (Err(_), None) => Ok(()),
            (Err(error), Some(_)) => Err(format!("refused: {error}")),
            (Ok(()), None) => Err("a value that does not broadcast was taken".into()),
        }
    }

    fn binary(&mut self, op: Binary, a: usize, b: usize) -> Check {
        let (x, y) = (self.saved(a)?, self.saved(b)?);
        let result = match op {
            Binary::Add => x.add(&y),
            Binary::Sub => x.sub(&y),
            Binary::Mul => x.mul(&y),
        };
        match (result, common(&self.arrays[a].shape, &self.arrays[b].shape)) {
            (Ok(tensor), Some(shape)) => {
                let (a_, b_) = (self.arrays[a].broadcast(&shape), self.arrays[b].broadcast(&shape));
                let values = self.memory.compute(op, &a_.unwrap(), &b_.unwrap());
                let array = self.memory.make(&shape, values);
                self.push(format!("{op:?}(x{a}, x{b})"), tensor, array);
                Ok(())
            }
            (Err(_), None) => Ok(()),
            (Err(error), Some(_)) => Err(format!("{op:?}(x{a}, x{b}) was refused: {error}")),
            (Ok(_), None) => Err(format!("{op:?}(x{a}, x{b}) does not broadcast")),
        }
    }

    /// A copy to compute with: what a product saves must not be written to later.
    fn saved(&self, a: usize) -> Result<Tensor, String> {
        self.tensors[a].clone_tensor(None).map_err(|e| e.to_string())
    }

    fn inplace(&mut self, op: Binary, a: usize, b: usize, copies: bool) -> Check {
        let note = if copies { ".clone()" } else { "" };
        self.text.push(format!("x{a}.{op:?}_(x{b}{note})"));
        let y = if copies { self.saved(b)? } else { self.tensors[b].clone() };
        let x = &self.tensors[a];
        let result = match op {
            Binary::Add => x.add_(&y),
            Binary::Sub => x.sub_(&y),
            Binary::Mul => x.mul_(&y),
        };
        let target = self.arrays[a].clone();
        let other = self.arrays[b].broadcast(&target.shape);
        match (result, other) {
            (Ok(_), Some(other)) if !target.has_twins() => {
                let values = self.memory.compute(op, &target, &other);
                self.memory.write(&target, &values);
                Ok(())
            }
            (Err(_), None) => Ok(()),
            (Err(_), _) if target.has_twins() => Ok(()),
            (Err(error), _) if !copies && error.message().contains("single memory location") => {
                self.text.pop();
                Ok(())
            }
            (Err(error), _) => Err(format!("refused: {error}")),
            (Ok(_), _) => Err("a write that had to be refused was made".into()),
        }
    }

    fn compare(&self) -> Check {
        for (nr, (tensor, array)) in self.tensors.iter().zip(&self.arrays).enumerate() {
            if tensor.shape() != sizes(&array.shape) {
                return Err(format!("x{nr} has shape {:?}, not {:?}", tensor.shape(), array.shape));
            }
            let values: Vec<f64> = self.memory.read(array).iter().map(|d| d.value).collect();
            let found = tensor.to_vec::<f64>().map_err(|e| e.to_string())?;
            if found != values {
                return Err(format!("x{nr} is\n{found:?}, not\n{values:?}"));
            }
            if self.way == Way::Forward {
                self.compare_tangent(nr)?;
            }
        }
        Ok(())
    }

    fn compare_tangent(&self, nr: usize) -> Check {
        let along = |d: Dual| d.slope.iter().zip(&DIRECTION).map(|(s, d)| s * d).sum::<f64>();
        let expected: Vec<f64> =
            self.memory.read(&self.arrays[nr]).into_iter().map(along).collect();
        let tangent = self.tensors[nr].tangent().map_err(|e| e.to_string())?;
        let Some(tangent) = tangent else {
            let is_constant = expected.iter().all(|&t| t == 0.0);
            return is_constant.then_some(()).ok_or(format!("x{nr} has lost its tangent"));
        };
        let found = tangent.to_vec::<f64>().map_err(|e| e.to_string())?;
        if tangent.shape() == self.tensors[nr].shape() && found == expected {
            return Ok(());
        }
        Err(format!("x{nr} has the tangent\n{found:?}, not\n{expected:?}"))
    }

    fn compare_gradients(&self, leaf: &Tensor) -> Check {
        let mut expected = [0.0; LEAF];
        let mut total = Tensor::scalar_of(0.0, pullback::DType::F64).unwrap();
        for (tensor, array) in self.tensors.iter().zip(&self.arrays) {
            total = tensor.sum().and_then(|s| total.add(&s)).map_err(|e| e.to_string())?;
            for dual in self.memory.read(array) {
                (0..LEAF).for_each(|i| expected[i] += dual.slope[i]);
            }
        }
        let found = if total.requires_grad() {
            total.backward().map_err(|e| format!("backward: {e}"))?;
            leaf.grad().map_or(vec![0.0; LEAF], |g| g.to_vec::<f64>().unwrap())
        } else {
            vec![0.0; LEAF]
        };
        if found == expected {
            Ok(())
        } else {
            Err(format!("gradient {found:?}, not {expected:?}"))
        }
    }

    /// Beyond this, sums of integers in doubles may round.
    fn is_exact(&self) -> bool {
        let small = |x: f64| x.abs() < 1e10;
        self.arrays.iter().all(|array| {
            self.memory
                .read(array)
                .iter()
                .all(|d| small(d.value) && d.slope.iter().all(|&s| small(s)))
        })
    }
}

/// As many parts as there are dimensions for, and one `...`.
fn fitting(parts: &[Part], rank: usize) -> Vec<Part> {
    let (mut seen, mut ellipsis) = (0, false);
    let is_kept = |p: &Part| {
        let takes = !matches!(p, Part::NewAxis | Part::Ellipsis);
        seen += usize::from(takes);
        let again = matches!(p, Part::Ellipsis) && std::mem::replace(&mut ellipsis, true);
        (!takes || seen <= rank) && !again
    };
    parts.iter().copied().filter(is_kept).collect()
}

fn positions(positions: Vec<usize>) -> (Index, Slot) {
    let data = sizes(&positions);
    let tensor = Tensor::from_slice(&data, &[data.len() as i64]).unwrap();
    (Index::Tensor(tensor), Slot::Tensor(positions))
}

/// A slice that may start and stop before, in and behind the dimension.
fn slice(size: usize, a: u8, b: u8, c: u8) -> (Index, Slot) {
    let bound = |v: u8| match v {
        255 => None,
        v => Some(i64::from(v) % (2 * size as i64 + 3) - size as i64 - 1),
    };
    let (start, stop, step) = (bound(a), bound(b), i64::from(c % 3) + 1);
    let size = size as i64;
    let clip = |v: Option<i64>, absent: i64| {
        let v = v.unwrap_or(absent);
        if v < 0 { (v + size).max(0) } else { v.min(size) }
    };
    let positions = (clip(start, 0)..clip(stop, size)).step_by(step as usize).map(|i| i as usize);
    (Index::slice(start, stop, step), Slot::Keep(positions.collect()))
}

/// So many random programs, always the same ones: both can be set by proptest's environment variables.
fn from_environment(cases: u32) -> ProptestConfig {
    let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(1);
    }
    config
}

proptest! {
    #![proptest_config(from_environment(2000))]

    #[test]
    fn library_and_model_agree(way in 0..WAYS.len(), steps in prop::collection::vec(step(), 1..14)) {
        let _turn = in_turn();
        let checked = run(WAYS[way], &steps);
        prop_assert!(checked.is_ok(), "{}", checked.unwrap_err());
    }
}

/// Runs the program in both worlds; the error is its text and what was wrong.
fn run(way: Way, steps: &[Step]) -> Check {
    let (mut run, leaf) = Run::start(way);
    let checked = run.all(steps, &leaf);
    match checked {
        // Elements that a view shows but its base does not any more have no gradient: that is said.
        Err(error) if run.is_cut && error.contains("does not show any more") => Ok(()),
        // Writes through views of a base that shows elements twice are refused.
        Err(error) if run.is_doubled && error.contains("shows elements more than once") => Ok(()),
        checked => checked.map_err(|error| format!("{}\n=> {error}", run.text.join("\n"))),
    }
}

/// Arrays that every program has: `x0` is made of the leaf, `x2` and `x3` are numbers that broadcast; `x4` is the first
/// view, `x5` the second.
const BASE: u8 = 0;
const NUMBERS: u8 = 2;
const NUMBER: u8 = 3;
const VIEW: u8 = 4;
const OTHER: u8 = 5;

/// Two views of the base that share elements with each other: the starts of all short programs.
fn starts() -> Vec<[Step; 2]> {
    let views = || {
        vec![
            Step::Get(BASE, vec![Part::Ellipsis]),
            Step::Get(BASE, vec![Part::Slice(4, 255, 0)]),
            Step::Get(BASE, vec![Part::Int(1)]),
            Step::Get(BASE, vec![Part::NewAxis, Part::Ellipsis, Part::Slice(255, 255, 1)]),
            Step::Transpose(BASE, 0, 1),
            Step::Expand(BASE, 0),
        ]
    };
    let second = |view: &Step| match view.clone() {
        Step::Get(_, parts) if parts.len() == 1 => Step::Transpose(BASE, 0, 1),
        _ => Step::Get(VIEW, vec![Part::Ellipsis]),
    };
    views().into_iter().map(|view| [view.clone(), second(&view)]).collect()
}

/// The steps that short programs are made of.
fn moves() -> Vec<Step> {
    let mut steps: Vec<Step> = (0..KINDS).map(|kind| Step::Change(VIEW, kind, 0, 1, 0)).collect();
    steps.extend([
        Step::Change(VIEW, 0, 0, 1, 2),
        Step::Change(BASE, 1, 0, 1, 0),
        Step::Change(OTHER, 5, 1, 0, 1),
        Step::Inplace(Binary::Mul, VIEW, NUMBER, true),
        Step::Inplace(Binary::Add, VIEW, VIEW, false),
        Step::Inplace(Binary::Mul, BASE, NUMBERS, true),
        Step::Inplace(Binary::Mul, OTHER, OTHER, true),
        Step::Inplace(Binary::Add, OTHER, BASE, false),
        Step::Set(VIEW, vec![Part::Int(0)], NUMBER),
        Step::Get(VIEW, vec![Part::Int(0)]),
    ]);
    steps
}

#[test]
fn all_short_programs_agree() {
    let _turn = in_turn();
    let (moves, mut failures) = (moves(), Vec::new());
    for start in starts() {
        for way in WAYS {
            // Programs of two moves are the beginnings of those of three.
            for (first, second, third) in triples(moves.len()) {
                let mut steps = start.to_vec();
                steps.extend([first, second, third].map(|at| moves[at].clone()));
                failures.extend(run(way, &steps).err());
            }
        }
    }
    let first = failures.first().map_or("", String::as_str);
    assert!(failures.is_empty(), "{} programs fail, among them\n{first}", failures.len());
}

fn triples(count: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..count.pow(3)).map(move |n| (n / count / count, n / count % count, n % count))
}
