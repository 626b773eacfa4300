//! Numbers that are not finite, in convolutions with padding.
//!
//! By the definition a sum has no products with what lies outside of an image. The ways of computing it multiply by zeros there,
//! which makes NaN of an infinite factor. So factors that are not finite, where they are few, are taken for zero first, and their
//! products with what lies inside are added afterwards. Where they are many (a training that has diverged), results are NaN at the
//! borders, too.

use super::ConvElement;
use super::geometry::ConvGeometry;
use crate::{Result, memory};
use std::ops::Range;

/// The reciprocal of the share of elements that may be infinite or NaN to be set aside; a few may
/// always be.
const ONE_OF: usize = 16;

/// A copy of the elements with zeros for those that are not finite, and the indices of these; `None` if there are none, or many.
pub(super) fn set_aside<T: ConvElement>(values: &[T]) -> Result<Option<(Vec<T>, Vec<usize>)>> {
    let zero = T::default();
    if sum_of_zeros(values) == zero {
        return Ok(None);
    }
    let is_infinite = |value: &T| value.mul_add_to(zero, zero) != zero;
    let count = values.iter().filter(|value| is_infinite(value)).count();
    if count > ONE_OF.max(values.len() / ONE_OF) {
        return Ok(None);
    }
    let mut finite = memory::copied(values)?;
    let mut indices = memory::with_capacity(count)?;
    for (at, value) in finite.iter_mut().enumerate().filter(|(_, value)| is_infinite(value)) {
        *value = zero;
        indices.push(at);
    }
    Ok(Some((finite, indices)))
}

crate::multiversion! {
    /// The sum of all elements times zero: zero, if all are finite.
    fn sum_of_zeros<T: ConvElement>(values: &[T]) -> T {
        crate::row::reduce(values, T::default(), T::plus, |value| value.mul_add_to(T::default(), T::default()))
    }
}

/// Calls `add(image, input, output)` for each product of kernel element `k`, with the product's
/// positions in a channel of the input and of the output.
fn for_products(g: &ConvGeometry, k: usize, mut add: impl FnMut(usize, usize, usize)) {
    let at = [k / (g.kernel[1] * g.kernel[2]), k / g.kernel[2] % g.kernel[1], k % g.kernel[2]];
    let [depth, height, width]: [(Range<usize>, isize); 3] =
        std::array::from_fn(|d| g.inside(d, at[d]));
    let input = |d: usize, (_, first): &(Range<usize>, isize), o: usize| {
        (first + (o * g.stride[d]) as isize) as usize
    };
    for n in 0..g.batch {
        for d in depth.0.clone() {
            for h in height.0.clone() {
                let from = (input(0, &depth, d) * g.input[1] + input(1, &height, h)) * g.input[2];
                let to = (d * g.output[1] + h) * g.output[2];
                for w in width.0.clone() {
                    add(n, from + input(2, &width, w), to + w);
                }
            }
        }
    }
}

/// The group, the output channel, the input channel and the kernel element of a weight's index.
fn weight_at(g: &ConvGeometry, at: usize) -> (usize, usize, usize, usize) {
    let (pair, k) = (at / g.kernel_size(), at % g.kernel_size());
    let (o, c) = (pair / g.in_channels, pair % g.in_channels);
    (o / g.out_channels, o % g.out_channels, c, k)
}

/// Where a channel of a group of an image begins.
fn channel(
    g: &ConvGeometry,
    (n, group, c): (usize, usize, usize),
    channels: usize,
    size: usize,
) -> usize {
    ((n * g.groups + group) * channels + c) * size
}

/// What the products of weights are added to.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// The output; the other factors are elements of the input.
    Output,
    /// The input's gradient; the other factors are elements of the output's gradient.
    Input,
}

/// Adds the products of the weights at `indices` and elements of `from` to `to`.
pub(super) fn add_products<T: ConvElement>(
    (target, to): (Target, &mut [T]),
    from: &[T],
    w: &[T],
    indices: &[usize],
    g: &ConvGeometry,
) {
    for &index in indices {
        let (group, o, c, k) = weight_at(g, index);
        for_products(g, k, |n, input, output| {
            let input = channel(g, (n, group, c), g.in_channels, g.input_size()) + input;
            let output = channel(g, (n, group, o), g.out_channels, g.output_size()) + output;
            let (source, sum) = match target {
                Target::Output => (input, output),
                Target::Input => (output, input),
            };
            to[sum] = from[source].mul_add_to(w[index], to[sum]);
        });
    }
}

/// Adds the products of the elements at `indices` of the output's gradient and of the input to the weight's gradient.
pub(super) fn add_to_weight<T: ConvElement>(
    out: &mut [T],
    grad: &[T],
    x: &[T],
    indices: &[usize],
    g: &ConvGeometry,
) {
    let (kernel, outputs) = (g.kernel_size(), g.output_size());
    for &index in indices {
        let (all, position) = (index / outputs, index % outputs);
        let (image, o) = (all / g.out_channels, all % g.out_channels);
        let (n, group) = (image / g.groups, image % g.groups);
        for k in 0..kernel {
            let Some(input) = input_of(g, position, k) else { continue };
            for c in 0..g.in_channels {
                let x = x[channel(g, (n, group, c), g.in_channels, g.input_size()) + input];
                let at = ((group * g.out_channels + o) * g.in_channels + c) * kernel + k;
                out[at] = x.mul_add_to(grad[index], out[at]);
            }
        }
    }
}

/// The input's position that kernel element `k` meets at a position of the output, if it lies inside.
fn input_of(g: &ConvGeometry, position: usize, k: usize) -> Option<usize> {
    let [_, height, width] = g.output;
    let at = [position / (height * width), position / width % height, position % width];
    let k = [k / (g.kernel[1] * g.kernel[2]), k / g.kernel[2] % g.kernel[1], k % g.kernel[2]];
    let mut input = 0;
    for d in 0..3 {
        let inside = (at[d] * g.stride[d] + k[d] * g.dilation[d]).checked_sub(g.padding[d])?;
        if inside >= g.input[d] {
            return None;
        }
        input = input * g.input[d] + inside;
    }
    Some(input)
}
