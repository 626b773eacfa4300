//! Which elements are among others: `isin`.

use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::interrupt::{self, WorkCounter};
use crate::tensor::Cpu;
use crate::tensor::promote::result_type;
use crate::{Bool, DType, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::memory;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&ISIN, &ISIN_NUMBER, &IS_NUMBER_IN];

fn check_dtype(x: &Tensor) -> Result<()> {
    ensure!(
        x.dtype() != DType::Bool && !x.dtype().is_complex(),
        not_implemented,
        "Unsupported input type encountered for isin(): {}",
        x.dtype().scalar_name()
    );
    Ok(())
}

/// Up to so many others are compared with one by one: that takes less time than sorting and searching them.
const FEW: usize = 8;

/// Writes for each of `values` whether it is among `others`, other than `invert`; NaN is among nothing.
fn find<T: PartialOrd + Copy>(
    answers: &mut [Bool],
    values: &[T],
    others: &[T],
    invert: bool,
) -> Result<()> {
    let mut answer = |is_among: &dyn Fn(T) -> bool| {
        for (at, (answer, &x)) in answers.iter_mut().zip(values).enumerate() {
            interrupt::check_every::<10>(at);
            *answer = Bool::new(is_among(x) != invert);
        }
    };
    if others.len() <= FEW {
        answer(&|x| others.contains(&x));
        return Ok(());
    }
    // NaN has no order, not even with itself.
    let is_number = |x: &T| x.partial_cmp(x).is_some();
    let mut sorted = memory::with_capacity(others.len())?;
    memory::extend(&mut sorted, others.iter().copied().filter(is_number))?;
    let order = |a: &T, b: &T| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal);
    let mut pace = WorkCounter::new();
    sorted.sort_unstable_by(|a, b| {
        pace.spend(1);
        order(a, b)
    });
    answer(&|x| is_number(&x) && sorted.binary_search_by(|y| order(y, &x)).is_ok());
    Ok(())
}

fn spec(elements: &Tensor, others: &Tensor) -> Result<TensorSpec> {
    check_dtype(elements)?;
    check_dtype(others)?;
    Ok(TensorSpec::beside(others, elements.shape()).computed_in(DType::Bool))
}

fn among(
    cpu: Cpu,
    result: &Tensor,
    elements: &Tensor,
    others: &Tensor,
    invert: bool,
) -> Result<()> {
    let dtype = result_type(&[elements, others])?;
    let wide = if dtype.is_floating_point() { DType::F64 } else { DType::I64 };
    // (What one dtype has no place for is not found, so numbers go through the dtype of both.)
    let rows = |t: &Tensor| t.in_dtype(cpu, dtype)?.in_dtype(cpu, wide)?.dense(cpu);
    let (own, others) = (rows(elements)?, rows(others)?);
    let mut view = result.view_mut(cpu);
    let Some(answers) = view.as_slice_mut::<Bool>() else { return Ok(()) };
    let (own, others) = (own.view_ref(cpu), others.view_ref(cpu));
    if let (Some(own), Some(others)) = (own.as_slice::<f64>(), others.as_slice::<f64>()) {
        find(answers, own, others, invert)?;
    } else if let (Some(own), Some(others)) = (own.as_slice::<i64>(), others.as_slice::<i64>()) {
        find(answers, own, others, invert)?;
    }
    Ok(())
}

/// Whether each element is among `test_elements`: n of them and m others take the time of sorting m and n searches.
/// `assume_unique` says that neither repeats, which changes nothing here.
#[op(
    "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
    out,
    function_only,
    not_differentiable,
    batch = among(elements, test_elements, invert, &crate::ops::index::select::SEARCHSORTED)
)]
impl Isin {
    fn meta(elements: &Tensor, test_elements: &Tensor) -> Result<TensorSpec> {
        spec(elements, test_elements)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        elements: &Tensor,
        test_elements: &Tensor,
        invert: bool,
    ) -> Result<()> {
        among(cpu, result, elements, test_elements, invert)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let whole = |shape: &[i64]| s.integers(shape, 0, 5).into();
        vec![
            Sample::new([whole(&[2, 3]), whole(&[2])]).without_gradient(),
            Sample::new([whole(&[0]), whole(&[2])]).with("invert", true).without_gradient(),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::new([s.bools(&[2]).into(), s.bools(&[2]).into()]);
        vec![InvalidSample::new(
            sample,
            ErrorKind::NotImplemented,
            "Unsupported input type encountered for isin(): Bool",
        )]
    }
}

/// Whether each element equals a number.
#[op("isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> Tensor",
     out, function_only, not_differentiable, method = isin_number, batch = pass)]
impl IsinNumber {
    fn meta(elements: &Tensor, test_element: Scalar) -> Result<TensorSpec> {
        Ok(spec(elements, &Tensor::wrapped(test_element)?)?.on(elements.device()))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        elements: &Tensor,
        test_element: Scalar,
        invert: bool,
    ) -> Result<()> {
        among(cpu, result, elements, &Tensor::wrapped(test_element)?, invert)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = Sample::of(s.integers(&[2, 3], 0, 3)).with("test_element", Scalar::Int(1));
        vec![sample.without_gradient()]
    }
}

/// Whether a number is among `test_elements`, as a tensor of no dimensions.
#[op("isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
     out, function_only, not_differentiable, method = is_number_in, batch = is_number_among(element, test_elements, invert))]
impl IsNumberIn {
    fn meta(element: Scalar, test_elements: &Tensor) -> Result<TensorSpec> {
        spec(&Tensor::wrapped(element)?, test_elements)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        element: Scalar,
        test_elements: &Tensor,
        invert: bool,
    ) -> Result<()> {
        among(cpu, result, &Tensor::wrapped(element)?, test_elements, invert)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let others = s.integers(&[2, 3], 0, 3).into();
        vec![Sample::new([Scalar::Int(1).into(), others]).without_gradient()]
    }
}
