//! The arithmetic of one step, row by row: gates forward and backward.
//!
//! Every function takes whole rows, as many as its output has; `width` is the number of elements of a state.

use super::GateElement;
use crate::Result;
use crate::memory;

/// `x[i] = sigmoid(x[i] + bias[i])`.
#[inline(always)]
fn sigmoid_row<T: GateElement>(x: &mut [T], bias: &[T]) {
    for (x, &bias) in x.iter_mut().zip(bias) {
        *x = (*x + bias).sigmoid();
    }
}

/// `x[i] = tanh(x[i] + bias[i])`.
#[inline(always)]
fn tanh_row<T: GateElement>(x: &mut [T], bias: &[T]) {
    for (x, &bias) in x.iter_mut().zip(bias) {
        *x = (*x + bias).tanh();
    }
}

/// A row of `N * width` elements as `N` slices.
#[inline(always)]
fn parts<T, const N: usize>(row: &[T], width: usize) -> [&[T]; N] {
    std::array::from_fn(|i| &row[i * width..(i + 1) * width])
}

crate::multiversion! {
    /// LSTM: `gates` holds the products and becomes the gates `i, f, g, o`; with `previous` the old `c`,
    /// `c = f * previous + i * g` and `h = o * tanh(c)`.
    pub(super) fn lstm<T: GateElement>(gates: &mut [T], bias: &[T], previous: &[T], c: &mut [T], h: &mut [T], width: usize) {
        let each = width.max(1);
        for (row, gates) in gates.chunks_exact_mut(4 * each).enumerate() {
            let span = row * width..(row + 1) * width;
            let (previous, c, h) = (&previous[span.clone()], &mut c[span.clone()], &mut h[span]);
            sigmoid_row(&mut gates[..2 * width], &bias[..2 * width]);
            tanh_row(&mut gates[2 * width..3 * width], &bias[2 * width..3 * width]);
            sigmoid_row(&mut gates[3 * width..], &bias[3 * width..]);
            new_cells(gates, previous, c);
            let o = &gates[3 * width..4 * width];
            for k in 0..width {
                h[k] = o[k] * c[k].tanh();
            }
        }
    }
}

/// `c` of one step, from its gates and the `c` of the step before, for as many rows as both have.
pub(super) fn cells<T: GateElement>(gates: &[T], previous: &[T], width: usize) -> Result<Vec<T>> {
    let mut c = memory::filled(T::ZERO, previous.len())?;
    fill_cells(gates, previous, &mut c, width.max(1));
    Ok(c)
}

crate::multiversion! {
    fn fill_cells<T: GateElement>(gates: &[T], previous: &[T], c: &mut [T], width: usize) {
        let rows = gates.chunks_exact(4 * width).zip(previous.chunks_exact(width));
        for ((gates, previous), c) in rows.zip(c.chunks_exact_mut(width)) {
            new_cells(gates, previous, c);
        }
    }
}

/// `c = f * previous + i * g` of one row.
#[inline(always)]
fn new_cells<T: GateElement>(gates: &[T], previous: &[T], c: &mut [T]) {
    let [i, f, g] = parts::<T, 3>(gates, c.len());
    let previous = &previous[..c.len()];
    for k in 0..c.len() {
        c[k] = f[k].mul_add(previous[k], i[k] * g[k]);
    }
}

crate::multiversion! {
    /// The backward of [`lstm`]: `h` is the gradient of the step's `h`; `c` that of its `c`, and becomes that of
    /// the old `c`; `out` becomes the gradients of the products.
    pub(super) fn lstm_backward<T: GateElement>(
        out: &mut [T], gates: &[T], previous: &[T], new: &[T], h: &[T], c: &mut [T], width: usize
    ) {
        let each = width.max(1);
        for (row, out) in out.chunks_exact_mut(4 * each).enumerate() {
            let span = row * width..(row + 1) * width;
            let (previous, new, h) = (&previous[span.clone()], &new[span.clone()], &h[span.clone()]);
            let c = &mut c[span];
            let [i, f, g, o] = parts::<T, 4>(&gates[row * 4 * width..(row + 1) * 4 * width], width);
            let (by_i, rest) = out.split_at_mut(width);
            let (by_f, rest) = rest.split_at_mut(width);
            let (by_g, by_o) = rest.split_at_mut(width);
            let by_o = &mut by_o[..width];
            for k in 0..width {
                let t = new[k].tanh();
                by_o[k] = h[k] * t * o[k] * (T::ONE - o[k]);
                let by_c = c[k] + h[k] * o[k] * (T::ONE - t * t);
                by_i[k] = by_c * g[k] * i[k] * (T::ONE - i[k]);
                by_f[k] = by_c * previous[k] * f[k] * (T::ONE - f[k]);
                by_g[k] = by_c * i[k] * (T::ONE - g[k] * g[k]);
                c[k] = by_c * f[k];
            }
        }
    }
}

crate::multiversion! {
    /// GRU: `kept` holds the input's products in its first three quarters and becomes the gates `r, z`, the
    /// candidate `n = tanh(x_n + r * m)` and `m`, the hidden part of the candidate; `products` are the state's
    /// products; with `previous` the old `h`, `h = n + z * (previous - n)`.
    pub(super) fn gru<T: GateElement>(
        kept: &mut [T], products: &[T], biases: (&[T], &[T]), previous: &[T], h: &mut [T], width: usize
    ) {
        let each = width.max(1);
        let (bias_x, bias_h) = biases;
        for (row, kept) in kept.chunks_exact_mut(4 * each).enumerate() {
            let span = row * width..(row + 1) * width;
            let (previous, h) = (&previous[span.clone()], &mut h[span]);
            let products = &products[row * 3 * width..(row + 1) * 3 * width];
            for ((x, &p), &b) in kept[..2 * width].iter_mut().zip(products).zip(bias_h) {
                *x += p + b;
            }
            sigmoid_row(&mut kept[..2 * width], &bias_x[..2 * width]);
            let (gates, m) = kept.split_at_mut(3 * width);
            let (gates, n) = gates.split_at_mut(2 * width);
            let (r, z) = gates.split_at(width);
            let m = &mut m[..width];
            for k in 0..width {
                m[k] = products[2 * width + k] + bias_h[2 * width + k];
            }
            for k in 0..width {
                n[k] = r[k].mul_add(m[k], n[k] + bias_x[2 * width + k]).tanh();
            }
            for k in 0..width {
                h[k] = z[k].mul_add(previous[k] - n[k], n[k]);
            }
        }
    }
}

crate::multiversion! {
    /// The backward of [`gru`]: `h` is the gradient of the step's `h` and becomes what of it goes straight to the
    /// old one; `by_x` and `by_h` become the gradients of the input's and of the state's products.
    pub(super) fn gru_backward<T: GateElement>(
        by_x: &mut [T], by_h: &mut [T], kept: &[T], previous: &[T], h: &mut [T], width: usize
    ) {
        let each = width.max(1);
        let rows = by_x.chunks_exact_mut(3 * each).zip(by_h.chunks_exact_mut(3 * each));
        for (row, (by_x, by_h)) in rows.enumerate() {
            let span = row * width..(row + 1) * width;
            let (previous, h) = (&previous[span.clone()], &mut h[span]);
            let [r, z, n, m] = parts::<T, 4>(&kept[row * 4 * width..(row + 1) * 4 * width], width);
            let (by_r, rest) = by_x.split_at_mut(width);
            let (by_z, by_n) = rest.split_at_mut(width);
            let (by_n, by_m) = (&mut by_n[..width], &mut by_h[2 * width..3 * width]);
            for k in 0..width {
                let by_candidate = h[k] * (T::ONE - z[k]) * (T::ONE - n[k] * n[k]);
                by_n[k] = by_candidate;
                by_m[k] = by_candidate * r[k];
                by_r[k] = by_candidate * m[k] * r[k] * (T::ONE - r[k]);
                by_z[k] = h[k] * (previous[k] - n[k]) * z[k] * (T::ONE - z[k]);
                h[k] *= z[k];
            }
            by_h[..2 * width].copy_from_slice(&by_x[..2 * width]);
        }
    }
}

crate::multiversion! {
    /// Plain cells: `h` holds the products and becomes `tanh` or, if `relu`, `max(.., 0)` of them and the bias.
    pub(super) fn plain<T: GateElement>(h: &mut [T], bias: &[T], relu: bool) {
        for h in h.chunks_exact_mut(bias.len().max(1)) {
            if !relu {
                tanh_row(h, bias);
                continue;
            }
            for (h, &bias) in h.iter_mut().zip(bias) {
                let x = *h + bias;
                // Written so that NaN stays NaN.
                *h = if x < T::ZERO { T::ZERO } else { x };
            }
        }
    }
}

crate::multiversion! {
    /// The backward of [`plain`]: `out` becomes the gradient of the products, `h` being that of the result `y`.
    pub(super) fn plain_backward<T: GateElement>(out: &mut [T], y: &[T], h: &[T], relu: bool) {
        if relu {
            for ((out, &y), &h) in out.iter_mut().zip(y).zip(h) {
                *out = if y > T::ZERO { h } else { T::ZERO };
            }
        } else {
            for ((out, &y), &h) in out.iter_mut().zip(y).zip(h) {
                *out = h * (T::ONE - y * y);
            }
        }
    }
}
