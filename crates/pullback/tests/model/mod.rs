//! A naive n-d array: buffers of numbers and, for each array, the explicit list of the places its elements are at.
//!
//! A view is another list over the same buffer. Each number carries its derivatives with respect to the leaf's
//! elements, so a program run here gives the gradients too. Slow, obvious, and with nothing in common with the
//! library.

pub(crate) mod change;

/// Elements of the one leaf.
pub(crate) const LEAF: usize = 6;

/// A number and its derivatives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Dual {
    pub(crate) value: f64,
    pub(crate) slope: [f64; LEAF],
}

impl Dual {
    pub(crate) fn constant(value: f64) -> Dual {
        Dual { value, slope: [0.0; LEAF] }
    }
    pub(crate) fn leaf(value: f64, nr: usize) -> Dual {
        let mut dual = Dual::constant(value);
        dual.slope[nr] = 1.0;
        dual
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
}

impl Binary {
    fn apply(self, a: Dual, b: Dual) -> Dual {
        let (value, da, db) = match self {
            Binary::Add => (a.value + b.value, 1.0, 1.0),
            Binary::Sub => (a.value - b.value, 1.0, -1.0),
            Binary::Mul => (a.value * b.value, b.value, a.value),
        };
        let slope = std::array::from_fn(|i| da * a.slope[i] + db * b.slope[i]);
        Dual { value, slope }
    }
}

/// An array: which buffer, and where in it the elements are, row by row.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) buffer: usize,
    pub(crate) shape: Vec<usize>,
    pub(crate) places: Vec<usize>,
}

impl Array {
    pub(crate) fn has_twins(&self) -> bool {
        let mut sorted = self.places.clone();
        sorted.sort_unstable();
        sorted.windows(2).any(|w| w[0] == w[1])
    }
    /// The same buffer seen through `source_of`, which maps an index of the new shape to one of this array.
    pub(crate) fn seen(
        &self,
        shape: &[usize],
        source_of: impl Fn(&[usize]) -> Vec<usize>,
    ) -> Array {
        let places = each_index(shape).map(|at| self.places[flat(&self.shape, &source_of(&at))]);
        Array { buffer: self.buffer, shape: shape.to_vec(), places: places.collect() }
    }
    pub(crate) fn broadcast(&self, shape: &[usize]) -> Option<Array> {
        let skip = shape.len().checked_sub(self.shape.len())?;
        let fits = self.shape.iter().zip(&shape[skip..]).all(|(&a, &b)| a == b || a == 1);
        fits.then(|| {
            self.seen(shape, |at| {
                self.shape
                    .iter()
                    .zip(&at[skip..])
                    .map(|(&n, &i)| if n == 1 { 0 } else { i })
                    .collect()
            })
        })
    }
}

/// All indices of `shape`, row by row.
pub(crate) fn each_index(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let shape = shape.to_vec();
    (0..shape.iter().product()).map(move |mut nr: usize| {
        let mut at = vec![0; shape.len()];
        for (place, &size) in at.iter_mut().zip(&shape).rev() {
            *place = nr % size;
            nr /= size;
        }
        at
    })
}

fn flat(shape: &[usize], at: &[usize]) -> usize {
    shape.iter().zip(at).fold(0, |sum, (&size, &i)| sum * size + i)
}

/// The common shape of two, if there is one.
pub(crate) fn common(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let ndim = a.len().max(b.len());
    let size = |s: &[usize], d: usize| (d + s.len()).checked_sub(ndim).map_or(1, |i| s[i]);
    (0..ndim)
        .map(|d| match (size(a, d), size(b, d)) {
            (x, y) if x == y || y == 1 => Some(x),
            (1, y) => Some(y),
            _ => None,
        })
        .collect()
}

/// What an index does to the dimensions, in their order.
#[derive(Clone, Debug)]
pub(crate) enum Slot {
    /// One position; the dimension goes.
    Fixed(usize),
    /// These positions, in order.
    Keep(Vec<usize>),
    /// A new dimension.
    New,
    /// These positions, together with the other tensors' (all of one length, or of length 1).
    Tensor(Vec<usize>),
}

/// `array[slots]`: the places, and whether it is a copy.
pub(crate) fn index(array: &Array, slots: &[Slot]) -> (Array, bool) {
    let kept: Vec<&Slot> = slots.iter().filter(|s| !matches!(s, Slot::Fixed(_))).collect();
    let is_tensor: Vec<bool> = kept.iter().map(|s| matches!(s, Slot::Tensor(_))).collect();
    let first = is_tensor.iter().position(|&t| t);
    let last = is_tensor.iter().rposition(|&t| t);
    let adjacent = first.zip(last).is_none_or(|(f, l)| is_tensor[f..=l].iter().all(|&t| t));
    let lengths =
        slots.iter().filter_map(|s| if let Slot::Tensor(p) = s { Some(p.len()) } else { None });
    let length = lengths.clone().find(|&n| n != 1).or(lengths.clone().next());
    // Where the tensors' common dimension goes in the result.
    let place = first.map(|f| if adjacent { f } else { 0 });
    let mut shape: Vec<usize> = Vec::new();
    for slot in &kept {
        match slot {
            Slot::Keep(positions) => shape.push(positions.len()),
            Slot::New => shape.push(1),
            _ => {}
        }
    }
    if let (Some(place), Some(length)) = (place, length) {
        shape.insert(place, length);
    }
    let result = array.seen(&shape, |at| {
        let mut own = at.to_vec();
        let shared = place.map_or(0, |p| own.remove(p));
        let mut own = own.into_iter();
        let mut source = Vec::new();
        for slot in slots {
            match slot {
                Slot::Fixed(i) => source.push(*i),
                Slot::Keep(positions) => source.push(positions[own.next().unwrap()]),
                Slot::New => drop(own.next()),
                Slot::Tensor(p) => source.push(p[if p.len() == 1 { 0 } else { shared }]),
            }
        }
        source
    });
    (result, first.is_some())
}

/// The buffers.
#[derive(Default)]
pub(crate) struct Memory(Vec<Vec<Dual>>);

impl Memory {
    pub(crate) fn make(&mut self, shape: &[usize], values: Vec<Dual>) -> Array {
        self.0.push(values);
        let places = (0..shape.iter().product()).collect();
        Array { buffer: self.0.len() - 1, shape: shape.to_vec(), places }
    }
    pub(crate) fn read(&self, array: &Array) -> Vec<Dual> {
        array.places.iter().map(|&p| self.0[array.buffer][p]).collect()
    }
    pub(crate) fn copy(&mut self, array: &Array) -> Array {
        let values = self.read(array);
        self.make(&array.shape, values)
    }
    pub(crate) fn write(&mut self, array: &Array, values: &[Dual]) {
        for (&place, &value) in array.places.iter().zip(values) {
            self.0[array.buffer][place] = value;
        }
    }
    /// Element by element; both have one shape.
    pub(crate) fn compute(&self, op: Binary, a: &Array, b: &Array) -> Vec<Dual> {
        self.read(a).into_iter().zip(self.read(b)).map(|(a, b)| op.apply(a, b)).collect()
    }
}
