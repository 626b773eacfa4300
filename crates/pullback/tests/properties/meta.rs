//! What a `meta` function says of a call, against what the call does: shapes, dtypes, strides and number of the results, and
//! which calls are refused, in the same words. Only what elements say may be left to the kernel, and dtypes that one which does not
//! walk element by element does not know.

use pullback::autograd::call;
use pullback::dispatch::{Kernel, OpDef, Traits, Value};
use pullback::gradcheck::{Sample, Sampler};
use pullback::{
    DType, Device, Error, ErrorKind, Layout, Result, Scalar, Tensor, TensorSpec, manual_seed, ops,
};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::registry::{args, for_all, replace, spread, tensor_slots, tensors, text};

type Checked = std::result::Result<(), String>;

/// Ops whose `meta` is still to be written. Nothing may join this list.
const WITHOUT_META: &[&str] = &[];

/// Whether an op is the copy of what a view shows, which has no functions of its own.
fn is_copy_of_view(def: &OpDef) -> bool {
    let Some(view) = def.name.strip_suffix("_copy") else { return false };
    let is_it = |other: &&'static OpDef| other.name == view && other.overload == def.overload;
    ops::registry().find(is_it).is_some_and(|view| view.kernels.cpu.is_view())
}

#[test]
fn every_op_says_what_its_results_look_like() {
    let needs_meta = |def: &&'static OpDef| {
        !matches!(def.kernels.cpu, Kernel::Composite(_))
            && !def.is(Traits::DYNAMIC_OUTPUT_SHAPE)
            && !def.is(Traits::DATA_DEPENDENT_OUTPUT)
            && !is_copy_of_view(def)
    };
    let without = ops::registry().filter(needs_meta).filter(|def| def.meta.is_none());
    let names: Vec<String> = without.map(OpDef::full_name).collect();
    let missing: Vec<_> = names.iter().filter(|n| !WITHOUT_META.contains(&n.as_str())).collect();
    assert!(missing.is_empty(), "ops without meta: {missing:?}");
    let done: Vec<_> = WITHOUT_META.iter().filter(|n| !names.iter().any(|m| m == **n)).collect();
    assert!(done.is_empty(), "ops that have a meta by now: {done:?}");
}

#[test]
fn ops_whose_results_depend_on_elements_have_no_meta() {
    let depends = Traits(Traits::DYNAMIC_OUTPUT_SHAPE.0 | Traits::DATA_DEPENDENT_OUTPUT.0);
    let with = ops::registry().filter(|def| def.is(depends) && def.meta.is_some());
    let with: Vec<String> = with.map(OpDef::full_name).collect();
    assert!(with.is_empty(), "ops with a meta that cannot know: {with:?}");
}

/// What only elements, or the memory that tensors share, can make wrong.
const BY_ELEMENTS: &[&str] = &[
    "refer to a single memory location",
    "refers to a single memory location",
    // Places.
    "pivots passed to",
    "target out of range",
    "ZeroDivisionError",
    "is out of bounds for dimension",
    "is out of bounds.",
    "ctc_loss: target",
    "not in the valid range [0,",
    "Expected idx >= 0 && idx < num_embeddings",
    "offsets[0] has to be 0",
    "offsets[-1] can not be greater than",
    "offsets have to be in ascending order",
    "offset2bag names bag",
    "invalid max index",
    "pivots must be those",
    "a pivot of a matrix of order",
    "out of range: tried to access index",
    "index out of range",
    "Class values must be",
    "lengths contains negative value",
    "lengths reach beyond",
    "Expected all rows of lengths",
    "offsets must not decrease",
    "are not in 0..=",
    "is not in 0..=",
    "repeats can not be negative",
    // How many elements of a mask are true.
    "same number of true elements",
    "cannot be broadcast to indexing result",
    // Parameters of distributions.
    "dtype must be a floating point",
    "invalid multinomial distribution",
    "normal expects all elements of std",
    "invalid Poisson rate",
    "element < 0",
    "probability entry",
    "sum of probabilities",
    "Expected p_in",
    // Numbers that tensors hold.
    "without overflow",
    "is not finite",
    "max must be larger than min",
    "all elements of input should be between 0 and 1",
    "cannot set is_coalesced to true",
    // Results that no memory is large enough for.
    "Storage size calculation overflowed",
    // Matrices.
    "singular",
    "positive-definite",
    "failed to converge",
    "should not contain infs or NaNs",
    "(Batch element",
];

/// Whether a kernel may refuse a call that `meta` takes: for what elements are, or for a dtype or layout that it does not know.
fn is_left_to_kernel(def: &OpDef, error: &Error) -> bool {
    let text = error.message();
    // (What kernels that walk element by element take, they say themselves, run over no elements. The others choose their loops by
    // dtype behind their checks of sizes, so that no call without elements would ask them; PyTorch's meta device takes such dtypes.)
    let is_dtype = !matches!(def.kernels.cpu, Kernel::Pointwise(_))
        && error.kind() == ErrorKind::NotImplemented
        && text.contains("not implemented for '");
    let is_layout = text.starts_with("Could not run 'aten::");
    is_dtype || is_layout || BY_ELEMENTS.iter().any(|phrase| text.contains(phrase))
}

/// Whether `meta` may refuse a call that the kernel takes: the shape of the result depends on elements in this call, though not
/// in others of the op.
fn is_left_to_elements(error: &Error) -> bool {
    error.kind() == ErrorKind::NotImplemented
        && error.message().contains("depends on the elements of")
}

fn compare(specs: &[TensorSpec], outputs: &[Tensor]) -> Checked {
    if specs.len() != outputs.len() {
        return Err(format!("{} specs for {} outputs", specs.len(), outputs.len()));
    }
    for (index, (spec, out)) in specs.iter().zip(outputs).enumerate() {
        if spec.layout != out.layout() {
            return Err(format!("output {index}: {:?} is said of {:?}", spec.layout, out.layout()));
        }
        if out.is_sparse() {
            // (What it is made of is not said.)
            if &spec.shape[..] != out.shape() || spec.dtype != out.dtype() {
                return Err(format!("output {index}: {spec:?} is said of {out:?}"));
            }
            continue;
        }
        let said = spec.empty().map_err(text)?;
        // (Strides of tensors of less than two elements, and of dimensions of size 1, say nothing.)
        let mut strides = out.shape().iter().zip(said.strides().iter().zip(out.strides()));
        let is_alike = out.numel() < 2 || strides.all(|(&n, (said, is))| n == 1 || said == is);
        if said.shape() != out.shape()
            || said.dtype() != out.dtype()
            || said.device() != out.device()
            || !is_alike
        {
            return Err(format!(
                "output {index}: {:?} {:?} with strides {:?} is said of {:?} {:?} with strides {:?}",
                said.dtype(),
                said.shape(),
                said.strides(),
                out.dtype(),
                out.shape(),
                out.strides()
            ));
        }
    }
    Ok(())
}

/// The call with copies of what it writes, which lie in memory as the originals do.
fn writable(def: &OpDef, values: &[Value]) -> Result<Vec<Value>> {
    let schema = def.schema();
    let is_written = |index: usize| schema.args[index].alias.is_some_and(|a| a.is_write);
    let slots: Vec<_> =
        tensor_slots(values).into_iter().filter(|(index, ..)| is_written(*index)).collect();
    let copies = slots.iter().map(|(_, _, t)| relaid(t)).collect::<Result<Vec<_>>>()?;
    Ok(replace(values, &slots, &copies))
}

/// A copy with the same strides.
fn relaid(t: &Tensor) -> Result<Tensor> {
    if t.is_sparse() {
        return t.clone_tensor(None);
    }
    let copy = Tensor::empty_strided(t.shape(), t.strides(), t.dtype(), t.device())?;
    if t.strides().iter().zip(t.shape()).all(|(&stride, &size)| stride > 0 || size < 2) {
        copy.copy_(t, false)?;
    } else {
        // (What is expanded has one value in several places.)
        let whole = copy.expand(t.shape(), false)?;
        copy.as_strided(&[], &[], None)?.copy_(&whole.new_zeros(&[])?, false)?;
    }
    copy.detach()
}

/// What the meta device says of a call.
fn described(def: &'static OpDef, values: &[Value]) -> Result<Vec<TensorSpec>> {
    let specs = def.result_specs(&args(values))?;
    for spec in specs.iter().filter(|spec| spec.layout == Layout::Strided) {
        TensorSpec { device: Device::Meta, ..spec.clone() }.empty()?;
    }
    Ok(specs.into_iter().collect())
}

/// Whether `meta` and the call agree.
fn agrees(def: &'static OpDef, values: &[Value]) -> Checked {
    if def.meta.is_none() {
        return Ok(());
    }
    let values = writable(def, values).map_err(text)?;
    manual_seed(1);
    let both = catch_unwind(AssertUnwindSafe(|| {
        (described(def, &values), call(def, &args(&values)).map(tensors))
    }));
    let Ok(both) = both else { return Err("it panics".into()) };
    match both {
        (Ok(specs), Ok(outputs)) => compare(&specs, &outputs),
        (Err(error), Ok(_)) if is_left_to_elements(&error) => Ok(()),
        (Err(error), Ok(_)) => Err(format!("meta alone refuses: {}", text(error))),
        (Ok(_), Err(error)) if is_left_to_kernel(def, &error) => Ok(()),
        (Ok(_), Err(error)) => Err(format!("the call alone refuses: {}", text(error))),
        (Err(said), Err(is)) if said.kind() == is.kind() && said.message() == is.message() => {
            Ok(())
        }
        (Err(said), Err(_)) if is_left_to_elements(&said) => Ok(()),
        (Err(_), Err(is)) if is.message().starts_with("Could not run 'aten::") => Ok(()),
        (Err(said), Err(is)) => {
            Err(format!("meta refuses with {}, the call with {}", text(said), text(is)))
        }
    }
}

/// A call with all of its tensors that `is_meant` brought into another form.
fn with_all(
    values: &[Value],
    is_meant: impl Fn(&Tensor) -> bool,
    form: impl Fn(&Tensor) -> Result<Tensor>,
) -> Result<Vec<Value>> {
    let slots: Vec<_> = tensor_slots(values).into_iter().filter(|slot| is_meant(&slot.2)).collect();
    let new = slots.iter().map(|slot| form(&slot.2)).collect::<Result<Vec<_>>>()?;
    Ok(replace(values, &slots, &new))
}

/// The same values with the dimensions in memory the other way round.
fn reversed(t: &Tensor) -> Result<Tensor> {
    let order: Vec<i64> = (0..t.ndim() as i64).rev().collect();
    t.permute(&order)?
        .clone_tensor(Some(pullback::MemoryFormat::Contiguous))?
        .permute(&order)?
        .detach()
}

/// The first slice again and again.
fn expanded(t: &Tensor) -> Result<Tensor> {
    if t.ndim() == 0 || t.numel() == 0 {
        return Ok(t.clone());
    }
    t.narrow(0, 0, 1)?.expand(t.shape(), false)?.detach()
}

#[test]
fn meta_agrees_with_the_call() {
    for_all("meta agrees with the call", DType::F64, |def, sample| {
        agrees(def, &sample.values(def).map_err(text)?)
    });
}

#[test]
fn meta_agrees_with_the_call_for_other_strides() {
    type Form = fn(&Tensor) -> Result<Tensor>;
    let forms: [(&str, Form); 3] =
        [("with gaps", spread), ("reversed", reversed), ("expanded", expanded)];
    for_all("meta agrees with the call for other strides", DType::F64, |def, sample| {
        let values = sample.values(def).map_err(text)?;
        for (name, form) in forms {
            let values = with_all(&values, |_| true, form).map_err(text)?;
            agrees(def, &values).map_err(|bad| format!("{name}: {bad}"))?;
        }
        Ok(())
    });
}

#[test]
fn meta_agrees_with_the_call_for_other_dtypes() {
    use DType::{BF16, Bool, C64, F32, I32, U8};
    for_all("meta agrees with the call for other dtypes", DType::F64, |def, sample| {
        let values = sample.values(def).map_err(text)?;
        for dtype in [F32, BF16, C64, I32, U8, Bool] {
            let is_meant = |t: &Tensor| t.dtype() == DType::F64;
            let values = with_all(&values, is_meant, |t| t.to_dtype(dtype)).map_err(text)?;
            agrees(def, &values).map_err(|bad| format!("{dtype:?}: {bad}"))?;
            // The first alone: dtypes that differ.
            let Some(Value::Tensor(first)) = values.first() else { continue };
            let first = first.to_dtype(DType::F64).map_err(text)?;
            let mut mixed = values;
            mixed[0] = Value::Tensor(first);
            agrees(def, &mixed).map_err(|bad| format!("{dtype:?} beside F64: {bad}"))?;
        }
        Ok(())
    });
}

/// Other values of one argument: of other shapes, no elements, out of range.
fn altered(name: &str, value: &Value) -> Result<Vec<Value>> {
    Ok(match value {
        Value::Tensor(t) => altered_tensor(t)?.into_iter().map(Value::Tensor).collect(),
        Value::Tensors(list) => {
            let mut all = vec![Value::Tensors(Vec::new())];
            for at in 0..list.len().min(2) {
                for other in altered_tensor(&list[at])? {
                    let mut list = list.clone();
                    list[at] = other;
                    all.push(Value::Tensors(list));
                }
            }
            all
        }
        Value::OptTensors(list) => {
            let mut more = list.clone();
            more.extend([Some(Tensor::from_slice(&[0_i64], &[1])?), None, None]);
            vec![Value::OptTensors(Vec::new()), Value::OptTensors(more)]
        }
        Value::Int(_) => [-3, -1, 0, 1, 4].map(Value::Int).into(),
        Value::Bool(is) => vec![Value::Bool(!is)],
        Value::Ints(list) => {
            let mut all = vec![Value::Ints(Box::default())];
            let mut longer = list.to_vec();
            longer.push(1);
            all.push(Value::Ints(longer.into()));
            for number in [-2, 0, 3] {
                let mut other = list.to_vec();
                if let Some(first) = other.first_mut() {
                    *first = number;
                    all.push(Value::Ints(other.into()));
                }
            }
            all
        }
        Value::Scalar(_) => [Scalar::Int(-1), Scalar::Float(0.5), Scalar::Complex(1.0, 2.0)]
            .map(Value::Scalar)
            .into(),
        Value::None if name == "dtype" => {
            [DType::F32, DType::I64, DType::C64, DType::Bool].map(Value::from).into()
        }
        _ => Vec::new(),
    })
}

fn altered_tensor(t: &Tensor) -> Result<Vec<Tensor>> {
    let zeros = |shape: &[i64]| t.new_zeros(shape);
    let mut all = vec![zeros(&[])?, zeros(&[0])?, zeros(&[3])?, t.unsqueeze(0)?.detach()?];
    for dim in 0..t.ndim() {
        let mut shape = t.shape().to_vec();
        for size in [0, 1, shape[dim] + 1] {
            shape[dim] = size;
            all.push(zeros(&shape)?);
        }
    }
    Ok(all)
}

#[test]
fn meta_agrees_with_the_call_for_other_arguments() {
    for_all("meta agrees with the call for other arguments", DType::F64, |def, sample| {
        if def.meta.is_none() {
            return Ok(());
        }
        let values = sample.values(def).map_err(text)?;
        let mut failures = String::new();
        for (index, value) in values.iter().enumerate() {
            for other in altered(def.args[index].name, value).map_err(text)? {
                let mut values = values.clone();
                values[index] = other;
                if let Err(bad) = agrees(def, &values) {
                    let (name, value) = (def.args[index].name, &values[index]);
                    let _ = write!(failures, "\n    with {name} = {value:?}: {bad}");
                }
            }
        }
        if failures.is_empty() { Ok(()) } else { Err(failures) }
    });
}

#[test]
fn meta_refuses_what_the_call_refuses() {
    let only = std::env::var("PULLBACK_OP").ok();
    let mut failures = String::new();
    for def in ops::registry().filter(|d| only.as_deref().is_none_or(|o| o == d.name)) {
        let Some(samples) = def.invalid_samples else { continue };
        for invalid in samples(&Sampler::new(DType::F64)) {
            let sample: &Sample = &invalid.sample;
            let checked = sample.values(def).map_err(text).and_then(|values| agrees(def, &values));
            if let Err(bad) = checked {
                let _ = writeln!(failures, "- {} with {sample:?}: {bad}", def.full_name());
            }
        }
    }
    assert!(failures.is_empty(), "meta and calls disagree:\n{failures}");
}

/// Sparse tensors of a few layouts.
fn sparse_tensors() -> Result<Vec<Tensor>> {
    let s = Sampler::new(DType::F64);
    let matrix = s.normal(&[3, 4]);
    let rows = matrix.to_sparse_with(Some(pullback::Layout::SparseCsr), None, None)?;
    let columns = matrix.to_sparse_with(Some(pullback::Layout::SparseCsc), None, None)?;
    let blocks = matrix.to_sparse_with(Some(pullback::Layout::SparseBsr), Some(&[3, 2]), None)?;
    let places = Tensor::from_slice(&[1_i64, 0, 1], &[1, 3])?;
    let unordered = Tensor::sparse_coo(&places, &s.normal(&[3, 2]), &[2, 2], false)?;
    let list = matrix.to_sparse()?;
    Ok(vec![list, matrix.to_sparse_dim(1)?, unordered, rows, columns, blocks])
}

/// Further arguments of an op of sparse tensors.
fn sparse_calls(def: &OpDef, tensor: &Tensor) -> Result<Vec<Vec<Value>>> {
    let first = || Value::Tensor(tensor.clone());
    Ok(match def.full_name().as_str() {
        "_indices" | "_values" | "indices" | "values" | "crow_indices" | "col_indices"
        | "ccol_indices" | "row_indices" => vec![vec![first()]],
        "_to_dense" => vec![
            vec![first(), Value::None, Value::None],
            vec![first(), Value::DType(DType::F32), Value::None],
        ],
        "_coalesced_" => vec![vec![first(), Value::Bool(false)]],
        "sparse_resize_" | "sparse_resize_and_clear_" => [[3, 4], [5, 6], [2, 2]]
            .map(|size| vec![first(), Value::from(size), Value::Int(2), Value::Int(0)])
            .into(),
        "_values_at" if tensor.sparse_dim().is_ok_and(|count| count == 2) => {
            let places = Tensor::from_slice(&[0_i64, 1, 1, 0], &[2, 2])?;
            [true, false].map(|is| vec![first(), places.clone().into(), Value::Bool(is)]).into()
        }
        _ => Vec::new(),
    })
}

#[test]
fn meta_agrees_with_the_call_for_sparse_tensors() {
    let (mut failures, mut checked) = (String::new(), 0);
    for def in ops::registry().filter(|def| def.meta.is_some()) {
        for tensor in sparse_tensors().expect("samples are small") {
            for values in sparse_calls(def, &tensor).expect("samples are small") {
                checked += 1;
                if let Err(bad) = agrees(def, &values) {
                    let _ = writeln!(failures, "- {} of {tensor:?}: {bad}", def.full_name());
                }
            }
        }
    }
    assert!(failures.is_empty(), "meta and calls disagree:\n{failures}");
    assert!(checked > 60, "only {checked} calls were compared");
}
