//! Element loops over closures: for ops that other crates define. One plain loop for each dtype, on several threads where it is
//! long; what has a loop for each instruction set is in the other files.

use crate::{Element, Error, Iter, Result, for_dtype};

/// The number of elements up to which one thread runs.
const GRAIN: usize = 1 << 14;

/// Computes each element of the one output as `f` of the elements of `N` inputs, all of type `T`.
///
/// # Errors
/// `RuntimeError` for other numbers of operands and other dtypes.
pub fn map<T: Element, const N: usize>(
    iter: &mut Iter,
    f: impl Fn([T; N]) -> T + Sync,
) -> Result<()> {
    if iter.outputs() != 1 || iter.operands() != N + 1 {
        return Err(Error::runtime(format!(
            "a function of {N} elements that gives one was asked to compute {} of {}",
            iter.outputs(),
            iter.operands() - iter.outputs()
        )));
    }
    if let Some(other) = (0..=N).map(|at| iter.dtype(at)).find(|&dtype| dtype != T::DTYPE) {
        return Err(Error::runtime(format!(
            "a function of elements of {} was given {}",
            T::DTYPE.scalar_name(),
            other.scalar_name()
        )));
    }
    iter.for_each(GRAIN, &|pointers, strides, count| {
        for index in 0..count {
            let at = |operand: usize| {
                let offset = index as isize * strides[operand];
                pointers[operand].wrapping_offset(offset).cast::<T>()
            };
            // SAFETY: the element lies inside its view, which has this dtype and its alignment; outputs are written by one
            // thread each, after the elements of the same index were read.
            unsafe { at(0).write(f(std::array::from_fn(|input| at(input + 1).read()))) };
        }
    });
    Ok(())
}

/// As [`map`] for real numbers of any floating dtype: `f` computes in doubles, `op` is what errors call it.
///
/// # Errors
/// `NotImplementedError` for other dtypes, and as [`map`].
pub fn map_real<const N: usize>(
    iter: &mut Iter,
    op: &str,
    f: impl Fn([f64; N]) -> f64 + Sync,
) -> Result<()> {
    let dtype = iter.input_dtype(0);
    for_dtype!(dtype, float, T => map::<T, N>(iter, |x| T::from_f64(f(x.map(T::to_f64)))),
               else Err(Error::not_implemented(op, dtype)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, StridedMut, StridedRef, f16};

    fn view<'a, T: Element>(data: &'a [T], shape: &'a [i64], strides: &'a [i64]) -> StridedRef<'a> {
        // SAFETY: the tests' sizes and strides stay inside of the data.
        unsafe { StridedRef::new(data.as_ptr().cast(), T::DTYPE, shape, strides) }
    }
    fn target<'a, T: Element>(
        data: &'a mut [T],
        shape: &'a [i64],
        strides: &'a [i64],
    ) -> StridedMut<'a> {
        // SAFETY: as above.
        unsafe { StridedMut::new(data.as_mut_ptr().cast(), T::DTYPE, shape, strides) }
    }

    #[test]
    fn strided_and_broadcast_inputs_are_those_of_a_loop() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [10.0, 20.0]);
        let mut out = [0.0_f64; 6];
        // `a` transposed, `b` along the rows.
        let inputs = [view(&a, &[2, 3], &[1, 2]), view(&b, &[2, 3], &[1, 0])];
        let mut iter = Iter::new(&[target(&mut out, &[2, 3], &[3, 1])], &inputs).unwrap();
        map::<f64, 2>(&mut iter, |[x, y]| x - y).unwrap();
        assert_eq!(out, [-9.0, -7.0, -5.0, -18.0, -16.0, -14.0]);
    }

    #[test]
    fn long_loops_on_several_threads_compute_every_element() {
        let n = 100_000;
        let data: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let mut out = vec![0.0_f32; n];
        let shape = [n as i64];
        let mut iter =
            Iter::new(&[target(&mut out, &shape, &[1])], &[view(&data, &shape, &[1])]).unwrap();
        map_real::<1>(&mut iter, "halved", |[x]| x / 2.0).unwrap();
        assert!(out.iter().enumerate().all(|(i, &x)| x == i as f32 / 2.0));
    }

    #[test]
    fn halves_are_computed_in_doubles_and_other_dtypes_are_refused() {
        let data = [f16::from_f32(3.0)];
        let mut out = [f16::ZERO];
        let mut iter =
            Iter::new(&[target(&mut out, &[1], &[1])], &[view(&data, &[1], &[1])]).unwrap();
        map_real::<1>(&mut iter, "root", |[x]| x.sqrt()).unwrap();
        assert_eq!(out[0], f16::from_f64(3.0_f64.sqrt()));
        let (data, mut out) = ([3_i64], [0_i64]);
        let mut iter =
            Iter::new(&[target(&mut out, &[1], &[1])], &[view(&data, &[1], &[1])]).unwrap();
        let error = map_real::<1>(&mut iter, "root", |[x]| x).unwrap_err();
        assert_eq!(error.message(), "\"root\" not implemented for 'Long'");
        assert!(map::<f32, 1>(&mut iter, |[x]| x).is_err());
        assert!(map::<i64, 2>(&mut iter, |[x, _]| x).is_err());
        assert_eq!(iter.dtype(0), DType::I64);
    }
}
