//! Sequences of different lengths in one batch.

use pullback::{Error, Result, Scalar, Tensor};

/// Stacks sequences `(L_i, ..)`, filled up with `value` to the longest: `(T, N, ..)`, or `(N, T, ..)` with `batch_first`.
///
/// # Errors
/// `RuntimeError` for an empty list, and for sequences that differ in more than their length.
pub fn pad_sequence(sequences: &[Tensor], batch_first: bool, value: f64) -> Result<Tensor> {
    let lengths: Vec<i64> = sequences.iter().map(length_of).collect::<Result<_>>()?;
    let Some(&longest) = lengths.iter().max() else {
        return Err(Error::runtime("received an empty list of sequences"));
    };
    let mut filled = Vec::new();
    for (sequence, length) in sequences.iter().zip(lengths) {
        filled.push(extended(sequence, longest - length, value)?);
    }
    Tensor::stack(&filled, i64::from(!batch_first))
}

fn length_of(sequence: &Tensor) -> Result<i64> {
    let length = sequence.shape().first().copied();
    length.ok_or_else(|| Error::runtime("a sequence has one dimension at least"))
}

/// The rows, followed by `count` rows of `value`.
fn extended(rows: &Tensor, count: i64, value: f64) -> Result<Tensor> {
    if count == 0 {
        return Ok(rows.clone());
    }
    let mut shape = rows.shape().to_vec();
    shape[0] = count;
    Tensor::cat(&[rows, &rows.new_full(&shape, Scalar::Float(value))?], 0)
}

/// Sequences without padding: the rows of step 0 of all of them, then those of step 1 of the ones that have it, and so on, the
/// longest sequence first. Recurrent layers run over it with `forward_packed`.
///
/// ```
/// use pullback_nn::prelude::*;
/// # fn main() -> Result<()> {
/// let lstm = LSTM::new(3, 4)?;
/// let sequences = [Tensor::randn([2, 3])?, Tensor::randn([5, 3])?];
/// let packed = PackedSequence::of(&sequences)?;
/// let (outputs, (h, _)) = lstm.forward_packed(&packed, None)?;
/// let (padded, lengths) = outputs.pad(false, 0.0)?;
/// assert_eq!((padded.shape(), lengths), (&[5, 2, 4][..], vec![2, 5]));
/// // The last state is that behind the last step of each sequence.
/// assert!(h.i((0, 0))?.equal(&padded.i((1, 0))?)?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PackedSequence {
    data: Tensor,
    batch_sizes: Vec<i64>,
    /// The position in the batch of each sequence of the sorted batch; `None` if the batch was
    /// sorted.
    sorted: Option<Tensor>,
    /// The position in the sorted batch of each sequence of the batch.
    unsorted: Option<Tensor>,
}

impl PackedSequence {
    /// Packs sequences `(L_i, ..)`.
    ///
    /// # Errors
    /// As for [`pad_sequence`] and [`PackedSequence::pack`].
    pub fn of(sequences: &[Tensor]) -> Result<Self> {
        let lengths: Vec<i64> = sequences.iter().map(length_of).collect::<Result<_>>()?;
        PackedSequence::pack(&pad_sequence(sequences, false, 0.0)?, &lengths, false)
    }

    /// Packs a padded batch, `(T, N, ..)` or `(N, T, ..)` with `batch_first`, of sequences of these lengths.
    ///
    /// # Errors
    /// `RuntimeError` unless there is a length from 1 to `T` for each sequence, and one sequence at least.
    pub fn pack(padded: &Tensor, lengths: &[i64], batch_first: bool) -> Result<Self> {
        let steps = if batch_first { padded.transpose(0, 1)? } else { padded.clone() };
        check(&steps, lengths)?;
        let mut order: Vec<usize> = (0..lengths.len()).collect();
        order.sort_by_key(|&at| -lengths[at]);
        let is_sorted = order.iter().enumerate().all(|(place, &at)| place == at);
        let (sorted, unsorted) = if is_sorted {
            (None, None)
        } else {
            let mut places = vec![0_i64; order.len()];
            for (place, &at) in order.iter().enumerate() {
                places[at] = place as i64;
            }
            let order: Vec<i64> = order.iter().map(|&at| at as i64).collect();
            let on_device = |list| Tensor::options().device(padded.device()).from(list);
            (Some(on_device(order)?), Some(on_device(places)?))
        };
        let steps = sorted.as_ref().map_or(Ok(steps.clone()), |by| steps.index_select(1, by))?;
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let count = |step: i64| lengths.iter().filter(|&&length| length > step).count() as i64;
        let batch_sizes: Vec<i64> = (0..longest).map(count).collect();
        let mut parts = Vec::new();
        for (step, &size) in batch_sizes.iter().enumerate() {
            parts.push(steps.select(0, step as i64)?.narrow(0, 0, size)?);
        }
        Ok(PackedSequence { data: Tensor::cat(&parts, 0)?, batch_sizes, sorted, unsorted })
    }

    /// The padded batch, and the lengths of its sequences.
    ///
    /// # Errors
    /// Out of memory.
    pub fn pad(&self, batch_first: bool, value: f64) -> Result<(Tensor, Vec<i64>)> {
        let all = self.batch_sizes[0];
        let (mut steps, mut start) = (Vec::new(), 0);
        for &size in &self.batch_sizes {
            steps.push(extended(&self.data.narrow(0, start, size)?, all - size, value)?);
            start += size;
        }
        let padded = Tensor::stack(&steps, i64::from(batch_first))?;
        let length = |place: i64| self.batch_sizes.iter().filter(|&&size| size > place).count();
        let lengths: Vec<i64> = (0..all).map(|place| length(place) as i64).collect();
        let Some(places) = &self.unsorted else { return Ok((padded, lengths)) };
        let order = places.to_vec::<i64>()?;
        let lengths = order.iter().map(|&place| lengths[place as usize]).collect();
        Ok((padded.index_select(i64::from(!batch_first), places)?, lengths))
    }

    /// The rows, step after step.
    pub fn data(&self) -> &Tensor {
        &self.data
    }
    /// The number of sequences that have each step.
    pub fn batch_sizes(&self) -> &[i64] {
        &self.batch_sizes
    }
    /// The same sequences with other rows.
    pub(super) fn with_data(&self, data: Tensor) -> PackedSequence {
        PackedSequence { data, ..self.clone() }
    }
    /// A state `(layers, N, ..)` in the order of the rows.
    pub(super) fn to_sorted(&self, state: &Tensor) -> Result<Tensor> {
        self.sorted.as_ref().map_or(Ok(state.clone()), |by| state.index_select(1, by))
    }
    /// A state in the order of the batch.
    pub(super) fn to_batch(&self, state: &Tensor) -> Result<Tensor> {
        self.unsorted.as_ref().map_or(Ok(state.clone()), |by| state.index_select(1, by))
    }
}

fn check(steps: &Tensor, lengths: &[i64]) -> Result<()> {
    let &[longest, count, ..] = steps.shape() else {
        let text = format!("a padded batch has two dimensions at least, got {}", steps.ndim());
        return Err(Error::runtime(text));
    };
    if steps.numel() == 0 || lengths.is_empty() {
        return Err(Error::runtime("Cannot pack empty tensors."));
    }
    if lengths.len() as i64 != count {
        return Err(Error::runtime(format!(
            "Expected `len(lengths)` to be equal to batch_size, but got {} (batch_size={count})",
            lengths.len()
        )));
    }
    if let Some(length) = lengths.iter().find(|length| !(1..=longest).contains(*length)) {
        return Err(Error::runtime(format!(
            "Length of all samples has to be greater than 0 and at most the number of steps, {longest}, but got {length}"
        )));
    }
    Ok(())
}
