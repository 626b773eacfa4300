//! Pointwise ops: promotion, broadcasting and the walk, prepared once for every kernel.
//!
//! The kernel sees inputs of one (compute) dtype and outputs of the spec's dtype. Inputs of another
//! dtype are converted first. The contiguous same-shape case takes a short way through all this.

use super::out::write_direct;
use super::{Arg, ArgKind, OpDef, Traits, check_cast};
use crate::error::ensure;
use crate::tensor::shape::{broadcast_strides, list};
use crate::tensor::{Cpu, Dims, Flag, Geometry, TensorSpec, shares_storage};
use crate::{DType, Result, Scalar, Tensor};
use pullback_kernels::{Iter, StridedMut, StridedRef};
use smallvec::SmallVec;

type PointwiseKernel = fn(&mut Iter, &[Arg<'_>]) -> Result<()>;
type PointwiseInputs<'a> = SmallVec<[&'a Tensor; 4]>;

/// The numbers among the inputs, as tensors.
fn number_inputs(def: &OpDef, args: &[Arg<'_>]) -> Result<SmallVec<[Tensor; 1]>> {
    let mut numbers = SmallVec::new();
    for (arg, info) in args.iter().zip(def.args) {
        if let (Arg::Scalar(number), ArgKind::Number) = (arg, info.kind) {
            numbers.push(Tensor::wrapped(*number)?);
        }
    }
    Ok(numbers)
}

/// What the kernel reads: the tensors, and `numbers` in the places of those that [`number_inputs`] found.
fn inputs<'a>(def: &OpDef, args: &[Arg<'a>], numbers: &'a [Tensor]) -> PointwiseInputs<'a> {
    let mut numbers = numbers.iter();
    let input = |(arg, info): (&Arg<'a>, &super::ArgDef)| match arg {
        Arg::Tensor(t) => Some(*t),
        _ if info.kind == ArgKind::Number => numbers.next(),
        _ => None,
    };
    args.iter().zip(def.args).filter_map(input).collect()
}

/// The dtype of the result, according to a `meta` word, when all tensors have one real dtype and no
/// number requires another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultKind {
    /// The inputs' dtype.
    Same,
    /// The inputs' dtype if it is a floating one; for others only `meta` knows it.
    Float,
    /// Bool.
    Bool,
    /// A dtype that only `meta` knows.
    Custom,
}

/// The operands of the short way: room for the output, then tensors and numbers in their order.
struct FlatOperands {
    operands: [(*mut u8, DType, isize); 4],
    count: usize,
    numbers: [u64; 3],
}

/// The inputs of a call in which all tensors are row-major, of `g`'s shape (or of one element
/// without dimensions) and dtype, floating or `int64`, and everything else is a number; `None` for
/// other calls.
#[inline]
fn flat_inputs(def: &OpDef, args: &[Arg<'_>], g: &Geometry, flat: &mut FlatOperands) -> Option<()> {
    let dtype = g.dtype;
    let is_known = match dtype {
        DType::F32 | DType::F64 => def.result != ResultKind::Custom,
        DType::I64 => matches!(def.result, ResultKind::Same | ResultKind::Bool),
        _ => false,
    };
    if !is_known || !g.is_contiguous {
        return None;
    }
    for (arg, info) in args.iter().zip(def.args) {
        let number = match arg {
            Arg::Tensor(t) => {
                let o = t.geometry();
                let is_single = o.shape.is_empty() && !g.shape.is_empty();
                let is_number = t.has_flag(Flag::WRAPPED_NUMBER);
                if !is_number
                    && o.dtype == dtype
                    && o.is_contiguous
                    && (is_single || o.shape == g.shape)
                {
                    // The one element of such a tensor is read again and again.
                    let step = if is_single { 0 } else { dtype.size() as isize };
                    *flat.operands.get_mut(flat.count)? = (o.data_ptr().cast_mut(), dtype, step);
                    flat.count += 1;
                    continue;
                }
                // (A number beside tensors without dimensions is an operand like them.)
                if !(is_number && o.shape.is_empty()) {
                    return None;
                }
                t.element().ok()?
            }
            Arg::Scalar(number) if matches!(info.kind, ArgKind::Tensor | ArgKind::Number) => {
                *number
            }
            // Only `meta` knows the result's dtype for this factor of real inputs, or of whole
            // ones.
            Arg::Scalar(Scalar::Complex(..)) => return None,
            Arg::Scalar(factor) if dtype == DType::I64 && !matches!(factor, Scalar::Int(_)) => {
                return None;
            }
            _ => continue,
        };
        let number_slot = flat.numbers.get_mut(flat.count - 1)?;
        // Only `meta` knows what other numbers mean, or whether they are refused.
        *number_slot = match (dtype, number) {
            (DType::I64, Scalar::Int(number)) => number.cast_unsigned(),
            (DType::F32, Scalar::Int(_) | Scalar::Float(_)) => {
                u64::from(number.to::<f32>().to_bits())
            }
            (DType::F64, Scalar::Int(_) | Scalar::Float(_)) => number.to::<f64>().to_bits(),
            _ => return None,
        };
        *flat.operands.get_mut(flat.count)? =
            (std::ptr::from_mut(number_slot).cast::<u8>(), dtype, 0);
        flat.count += 1;
    }
    Some(())
}

impl FlatOperands {
    /// Operands without any input, with room for the output.
    #[inline(always)]
    fn new(dtype: DType) -> Self {
        let empty = (std::ptr::null_mut(), dtype, 0_isize);
        FlatOperands { operands: [empty; 4], count: 1, numbers: [0; 3] }
    }
}

/// The short way. Returns `None` for other calls, of which nothing was done then.
#[inline]
pub(crate) fn run_fast(
    def: &OpDef,
    kernel: PointwiseKernel,
    args: &[Arg<'_>],
) -> Option<Result<Tensor>> {
    let first = largest(args)?;
    if first.has_flag(Flag::WRAPPED_NUMBER) {
        return None;
    }
    let g = first.geometry();
    let mut flat = FlatOperands::new(g.dtype);
    flat_inputs(def, args, g, &mut flat)?;
    let out_dtype = if def.result == ResultKind::Bool { DType::Bool } else { g.dtype };
    Some(finish_fast(kernel, g, out_dtype, &mut flat.operands[..flat.count], args))
}

/// The short way of the in-place and `out=` forms. Returns `None` for other calls, of which nothing
/// was done then.
#[inline]
pub(crate) fn run_fast_into(
    def: &OpDef,
    kernel: PointwiseKernel,
    args: &[Arg<'_>],
    target: &Tensor,
) -> Option<Result<()>> {
    let g = target.geometry();
    if !matches!(def.result, ResultKind::Same | ResultKind::Float) {
        return None;
    }
    let mut flat = FlatOperands::new(g.dtype);
    flat_inputs(def, args, g, &mut flat)?;
    let (to, bytes) = (g.written_ptr(), g.numel as usize * g.dtype.size());
    let overlaps = |&(from, _, step): &(*mut u8, DType, isize)| {
        let reach = if step == 0 { g.dtype.size() } else { bytes };
        from != to && (from as usize) < to as usize + bytes && (to as usize) < from as usize + reach
    };
    let is_repeated = |o: &(*mut u8, DType, isize)| o.2 == 0 && o.0 == to;
    let inputs = &flat.operands[1..flat.count];
    // Without an input of its shape, the target might have to be resized.
    let is_shaped = inputs.iter().any(|&(_, _, step)| step != 0);
    if !is_shaped || inputs.iter().any(|o| overlaps(o) || is_repeated(o)) {
        return None;
    }
    flat.operands[0] = (to, g.dtype, g.dtype.size() as isize);
    // SAFETY: as in `finish_fast`; inputs are the target's very elements or apart from them.
    let mut iter = unsafe { Iter::flat(&flat.operands[..flat.count], 1, g.numel as usize) };
    Some(kernel(&mut iter, args))
}

/// The first tensor that has dimensions, else the first.
#[inline]
fn largest<'a>(args: &[Arg<'a>]) -> Option<&'a Tensor> {
    let mut first = None;
    for arg in args {
        if let Arg::Tensor(tensor) = arg {
            if tensor.ndim() > 0 {
                return Some(tensor);
            }
            first = first.or(Some(*tensor));
        }
    }
    first
}

#[inline]
fn finish_fast(
    kernel: PointwiseKernel,
    like: &Geometry,
    dtype: DType,
    operands: &mut [(*mut u8, DType, isize)],
    args: &[Arg<'_>],
) -> Result<Tensor> {
    let out = Tensor::constructed(|| Geometry::fresh_like(like, dtype))?;
    operands[0] = (out.geometry().written_ptr(), dtype, dtype.size() as isize);
    // SAFETY: each tensor operand has this many elements of its dtype, each number one that is read again and
    // again (step 0); the output is fresh.
    let mut iter = unsafe { Iter::flat(operands, 1, like.numel as usize) };
    kernel(&mut iter, args)?;
    Ok(out)
}

/// Refuses narrow dtypes that the kernel does not know, in the kernel's own words if it has some.
#[inline]
fn check_narrow(
    def: &OpDef,
    kernel: PointwiseKernel,
    args: &[Arg<'_>],
    spec: &TensorSpec,
) -> Result<()> {
    if super::narrow_floats::has_any(def, args) {
        check_taken(def, kernel, args, spec)?;
        if !super::narrow_floats::are_converted(args, spec.compute) {
            return super::narrow_floats::check(def, args);
        }
    }
    Ok(())
}

/// Makes the output and computes it.
#[inline]
pub(super) fn run(
    cpu: Cpu,
    def: &OpDef,
    kernel: PointwiseKernel,
    args: &[Arg<'_>],
) -> Result<Tensor> {
    let spec = super::spec(def, args)?;
    check_narrow(def, kernel, args, &spec)?;
    let out = spec.empty()?;
    let numbers = number_inputs(def, args)?;
    walk(cpu, def, kernel, &out, &inputs(def, args, &numbers), spec.compute, args)?;
    Ok(out)
}

/// Computes into `out`, which a call of these arguments has made, and which computed in `compute`.
pub(super) fn run_again(
    cpu: Cpu,
    def: &OpDef,
    kernel: PointwiseKernel,
    args: &[Arg<'_>],
    (out, compute): (&Tensor, DType),
) -> Result<()> {
    if let Some(done) = run_fast_into(def, kernel, args, out) {
        return done;
    }
    let numbers = number_inputs(def, args)?;
    walk(cpu, def, kernel, out, &inputs(def, args, &numbers), compute, args)
}

/// Computes into `out`, which is the first argument (`inplace`) or an `out=` target.
pub(crate) fn run_into(
    cpu: Cpu,
    def: &OpDef,
    kernel: PointwiseKernel,
    args: &[Arg<'_>],
    out: &Tensor,
    inplace: bool,
) -> Result<()> {
    if let Some(done) = run_fast_into(def, kernel, args, out) {
        return done;
    }
    let spec = super::spec(def, args)?;
    check_narrow(def, kernel, args, &spec)?;
    if inplace {
        check_kept(def, &spec, out)?;
    } else {
        super::check_out_dtype(def, 0, spec.dtype, out.dtype())?;
    }
    let numbers = number_inputs(def, args)?;
    let inputs = inputs(def, args, &numbers);
    let fits = spec.shape.as_slice() == out.shape();
    ensure!(
        fits || !(inplace || inputs.iter().any(|input| input.is_same(out))),
        runtime,
        "output with shape {} doesn't match the broadcast shape {}",
        list(out.shape()),
        list(&spec.shape)
    );
    inputs.iter().try_for_each(|input| super::check_apart(out, input))?;
    // With other sizes the target may share elements with an input that it does not share now.
    let is_direct = fits || !inputs.iter().any(|input| shares_storage(input, out));
    if is_direct && out.dtype() == spec.dtype {
        let write = || walk(cpu, def, kernel, out, &inputs, spec.compute, args);
        let specs = std::slice::from_ref(&spec);
        return if fits { write() } else { write_direct(&[out], specs, write) };
    }
    let temporary = spec.empty()?;
    walk(cpu, def, kernel, &temporary, &inputs, spec.compute, args)?;
    out.resize_output_as(&spec)?;
    out.copy_data(cpu, &temporary)
}

/// Refuses a result of a dtype that the target of the in-place form does not keep.
fn check_kept(def: &OpDef, spec: &TensorSpec, out: &Tensor) -> Result<()> {
    check_cast(spec.dtype, out.dtype())?;
    ensure!(
        !(out.dtype().is_complex() && spec.dtype == out.dtype().to_real()),
        runtime,
        "In-place {} is not supported for complex tensors.",
        def.name
    );
    Ok(())
}

/// Refuses the calls that the in-place form refuses, and writes nothing.
pub(super) fn check_into(
    def: &OpDef,
    kernel: PointwiseKernel,
    args: &[Arg<'_>],
    out: &Tensor,
) -> Result<()> {
    let spec = super::spec(def, args)?;
    check_narrow(def, kernel, args, &spec)?;
    check_kept(def, &spec, out)?;
    super::check_result(out, &spec.shape, spec.dtype)?;
    let numbers = number_inputs(def, args)?;
    for input in inputs(def, args, &numbers) {
        super::check_apart(out, input)?;
        if input.device() != out.device() && input.ndim() > 0 {
            return Err(super::device_mismatch(out.device(), input.device()));
        }
    }
    check_taken(def, kernel, args, &spec)
}

/// Refuses complex numbers where real ones are computed with.
#[inline]
fn check_numbers(args: &[Arg<'_>], compute: DType) -> Result<()> {
    for arg in args {
        if let Arg::Scalar(number @ Scalar::Complex(..)) = arg
            && !compute.is_complex()
        {
            number.check_fits(compute)?;
        }
    }
    Ok(())
}

/// Refuses dtypes and options that the kernel refuses, for results of `spec`: the kernel is run over no elements, since only it
/// knows what it takes.
pub(super) fn check_taken(
    def: &OpDef,
    kernel: PointwiseKernel,
    args: &[Arg<'_>],
    spec: &TensorSpec,
) -> Result<()> {
    check_numbers(args, spec.compute)?;
    let numbers = number_inputs(def, args)?;
    let keeps = keeps_wide_numbers(def, spec.compute);
    let dtype = |t: &Tensor| match t.dtype() {
        dtype if dtype != spec.compute && keeps && t.ndim() == 0 => DType::F32,
        _ => spec.compute,
    };
    let nowhere = std::ptr::without_provenance_mut::<u8>(align_of::<u128>());
    let mut operands: SmallVec<[(*mut u8, DType); 5]> = SmallVec::new();
    operands.push((nowhere, spec.dtype));
    operands.extend(inputs(def, args, &numbers).into_iter().map(|t| (nowhere, dtype(t))));
    // SAFETY: there are no elements at these addresses, and none are said to be there.
    let mut iter = unsafe { Iter::contiguous(&operands, 1, 0) };
    kernel(&mut iter, args)
}

/// Whether numbers keep their digits: halves are computed with in single precision.
fn keeps_wide_numbers(def: &OpDef, compute: DType) -> bool {
    def.is(Traits::WIDE_NUMBERS) && matches!(compute, DType::F16 | DType::BF16)
}

#[inline]
fn walk(
    cpu: Cpu,
    def: &OpDef,
    kernel: PointwiseKernel,
    out: &Tensor,
    inputs: &PointwiseInputs<'_>,
    compute: DType,
    args: &[Arg<'_>],
) -> Result<()> {
    check_numbers(args, compute)?;
    let device = out.device();
    if inputs.iter().any(|t| t.device() != device && t.ndim() > 0) {
        let other = inputs.iter().find(|t| t.device() != device).map_or(device, |t| t.device());
        return Err(super::device_mismatch(device, other));
    }
    let og = out.geometry();
    let dense = og.is_contiguous
        && inputs.iter().all(|t| {
            let g = t.geometry();
            g.is_contiguous && g.dtype == compute && g.shape == og.shape
        });
    if dense {
        let mut operands: SmallVec<[(*mut u8, DType); 5]> = SmallVec::new();
        operands.push((og.written_ptr(), og.dtype));
        operands.extend(inputs.iter().map(|t| (t.data_ptr().cast_mut(), compute)));
        // SAFETY: all are contiguous tensors of this many elements; an input that is the output is the
        // very same view, which pointwise kernels allow, and other overlaps were refused.
        let mut iter = unsafe { Iter::contiguous(&operands, 1, og.numel as usize) };
        return kernel(&mut iter, args);
    }
    general(cpu, def, kernel, out, inputs, compute, args)
}

fn general(
    cpu: Cpu,
    def: &OpDef,
    kernel: PointwiseKernel,
    out: &Tensor,
    inputs: &PointwiseInputs<'_>,
    compute: DType,
    args: &[Arg<'_>],
) -> Result<()> {
    let keeps = keeps_wide_numbers(def, compute);
    let converted: SmallVec<[Tensor; 4]> = inputs
        .iter()
        .map(|t| match t.dtype() {
            dtype if dtype == compute => Ok((*t).clone()),
            _ if keeps && t.ndim() == 0 => t.converted(cpu, DType::F32),
            _ => t.converted(cpu, compute),
        })
        .collect::<Result<_>>()?;
    let strides: SmallVec<[Dims; 4]> = converted
        .iter()
        .map(|t| broadcast_strides(t.shape(), t.strides(), out.shape()))
        .collect::<Result<_>>()?;
    let refs: SmallVec<[StridedRef<'_>; 4]> = converted
        .iter()
        .zip(&strides)
        // SAFETY: broadcasting reaches only elements that the tensor reaches; `converted` keeps them alive.
        .map(|(t, s)| unsafe { StridedRef::new(t.data_ptr(), t.dtype(), out.shape(), s) })
        .collect();
    // SAFETY: the output was made for this call or checked for overlap by the caller.
    let target = unsafe {
        StridedMut::new(out.geometry().written_ptr(), out.dtype(), out.shape(), out.strides())
    };
    let mut iter = Iter::new(&[target], &refs)?;
    kernel(&mut iter, args)
}
