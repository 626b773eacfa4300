//! In-place changes of the shape of views: every such op of the registry, on views of every kind, between writes through
//! the view, through its base and through other views, against differences; and in batches.
//!
//! Views that show another dtype or conjugates are made again by their ops, not by strides alone (`autograd::variable::replay`).

use pullback::autograd::forward::{dual_level, make_dual};
use pullback::dispatch::{OpDef, Traits, Value};
use pullback::func::{Batched, vmap};
use pullback::gradcheck::{Sampler, Tolerance, analytic, gradcheck};
use pullback::{C128, DType, Result, Tensor, autograd, ops};
use std::fmt::Write as _;

/// The ops that change the shape of their target itself.
fn changes() -> Vec<&'static OpDef> {
    let is_change = |def: &&'static OpDef| def.is(Traits::VIEW) && def.is(Traits::INPLACE_ONLY);
    ops::registry().filter(is_change).collect()
}

/// Arguments for a change of `target`; several sets where they matter.
fn arguments(def: &OpDef, target: &Tensor) -> Vec<Vec<Value>> {
    let last = (target.ndim() as i64 - 1).max(0);
    let reversed = |sizes: &[i64]| sizes.iter().rev().copied().collect::<Vec<_>>();
    match (def.name, def.overload) {
        ("t_", _) if target.ndim() > 2 => vec![],
        ("t_" | "squeeze_", "") => vec![vec![]],
        ("transpose_", _) => vec![vec![Value::Int(0), Value::Int(last)]],
        ("squeeze_", "dim") => vec![vec![Value::Int(0)], vec![Value::Int(last)]],
        ("squeeze_", "dims") if last > 0 => vec![vec![Value::Ints([0, last].into())]],
        ("squeeze_", "dims") => vec![vec![Value::Ints([last].into())]],
        ("unsqueeze_", _) => vec![vec![Value::Int(0)], vec![Value::Int(-1)]],
        ("as_strided_", _) => vec![vec![
            Value::Ints(reversed(target.shape()).into()),
            Value::Ints(reversed(target.strides()).into()),
            Value::Int(target.storage_offset()),
        ]],
        other => panic!("{other:?} changes the shape of its target: say here with which arguments"),
    }
}

fn change(def: &'static OpDef, target: &Tensor, rest: &[Value]) -> Result<()> {
    let mut args = vec![pullback::dispatch::Arg::Tensor(target)];
    args.extend(rest.iter().map(Value::as_arg));
    autograd::call_inplace(def, &args).map(drop)
}

type View = fn(&Tensor) -> Result<Tensor>;

/// Views of a tensor of sizes `[2, 1, 2]`.
fn views(dtype: DType) -> Vec<(&'static str, View)> {
    let mut views: Vec<(&'static str, View)> = vec![
        ("alias", |b| b.slice(0, None, None, 1)),
        ("slice", |b| b.slice(2, Some(1), None, 1)),
        ("select", |b| b.select(0, 1)),
        ("permute", |b| b.permute(&[2, 0, 1])),
        ("neg_view", |b| b.neg_view()),
        ("neg_view.select", |b| b.neg_view()?.select(0, 1)),
    ];
    if dtype.is_complex() {
        views.extend([
            ("conj", (|b| b.conj_view()) as View),
            ("conj.transpose", |b| b.conj_view()?.transpose(0, 2)),
            ("select.conj", |b| b.select(2, 0)?.conj_view()),
            ("view_as_real", |b| b.view_as_real()),
            ("view_as_real.select", |b| b.view_as_real()?.select(-1, 1)),
            ("view_as_real.select.transpose", |b| b.view_as_real()?.select(3, 0)?.transpose(0, 2)),
        ]);
    } else {
        views.extend([
            ("view_as_complex", (|b| b.view_as_complex()) as View),
            ("view_as_complex.conj", |b| b.view_as_complex()?.conj_view()),
            ("view_as_complex.select", |b| b.view_as_complex()?.select(0, 1)),
        ]);
    }
    views
}

/// What happens after the change.
const WRITES: [&str; 5] = ["nothing", "view", "base", "sibling", "view, then changed again"];

/// A function of its input: a view of a copy is changed, written to, and read together with the copy.
fn program(
    x: &Tensor,
    view: View,
    (def, rest): (&'static OpDef, &[Value]),
    write: &str,
) -> Result<Vec<Tensor>> {
    let base = x.clone_tensor(None)?;
    let v = view(&base)?;
    let sibling = view(&base)?;
    change(def, &v, rest)?;
    let number = Tensor::scalar_of(3.0, DType::F64)?;
    match write {
        "view" => drop(v.mul_(&number)?),
        "base" => drop(base.mul_(&number)?),
        "sibling" => drop(sibling.mul_(&number)?),
        "view, then changed again" => {
            v.mul_(&number)?;
            v.unsqueeze_(0)?;
            v.transpose_(0, -1)?;
            v.add_(&number)?;
        }
        _ => {}
    }
    let square = v.mul(&v)?;
    Ok(vec![v.resolve_conj()?.resolve_neg()?, square, sibling.mul(&sibling)?, base.mul(&base)?])
}

/// The derivative along a direction by forward mode is the gradient times that direction.
fn forward_agrees(
    f: &dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    x: &Tensor,
) -> Result<std::result::Result<(), String>> {
    let direction = Sampler::new(x.dtype()).normal(x.shape());
    let moved = {
        let _level = dual_level()?;
        let dual = make_dual(&x.detach()?, &direction)?;
        let outputs = f(&[dual])?;
        outputs.iter().map(Tensor::tangent).collect::<Result<Vec<_>>>()?
    };
    let step =
        |sign: f64| f(&[x.detach()?.add(&direction.mul(&Tensor::wrapped(sign * 1e-6)?)?)?]);
    let (above, below) = (step(1.0)?, step(-1.0)?);
    for (nr, ((a, b), tangent)) in above.iter().zip(&below).zip(moved).enumerate() {
        let expected = a.sub(b)?.div(&Tensor::wrapped(2e-6)?)?.to_vec::<C128>()?;
        let Some(tangent) = tangent else { return Ok(Err(format!("output {nr} has no tangent"))) };
        let found = tangent.to_vec::<C128>()?;
        let is_far = |(a, b): (&C128, &C128)| (a.re - b.re).hypot(a.im - b.im) > 1e-4;
        if found.len() != expected.len() || found.iter().zip(&expected).any(is_far) {
            return Ok(Err(format!("output {nr} has tangent {found:?}, not {expected:?}")));
        }
    }
    Ok(Ok(()))
}

/// A view, a change of it, and what is written then.
struct Case {
    name: &'static str,
    view: View,
    def: &'static OpDef,
    rest: Vec<Value>,
    write: &'static str,
}

impl Case {
    fn run(&self, x: &Tensor) -> Result<Vec<Tensor>> {
        program(x, self.view, (self.def, &self.rest), self.write)
    }
    fn text(&self) -> String {
        format!("{}, {}, write: {}", self.name, self.def.full_name(), self.write)
    }
}

/// All of them on a tensor like `x`.
fn cases(x: &Tensor) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (name, view) in views(x.dtype()) {
        let shown = view(&x.detach()?)?;
        for def in changes() {
            for rest in arguments(def, &shown) {
                let case = |write| Case { name, view, def, rest: rest.clone(), write };
                cases.extend(WRITES.map(case));
            }
        }
    }
    Ok(cases)
}

#[test]
fn changes_of_views_agree_with_differences() -> Result<()> {
    let (mut failures, mut checked) = (String::new(), 0);
    for dtype in [DType::F64, DType::C128] {
        let x = Sampler::new(dtype).normal(&[2, 1, 2]).with_grad()?;
        for case in cases(&x)? {
            let f = |xs: &[Tensor]| case.run(&xs[0]);
            let backward = gradcheck(&f, std::slice::from_ref(&x), Tolerance::default())
                .map(|found| found.map_err(|mismatch| mismatch.to_string()));
            checked += 1;
            for (way, result) in [("backward", backward), ("forward", forward_agrees(&f, &x))] {
                let text = match result {
                    Ok(Ok(())) => continue,
                    Ok(Err(text)) => text,
                    Err(error) => error.to_string(),
                };
                let _ = writeln!(failures, "- {way} of {dtype:?} {}: {text}", case.text());
            }
        }
    }
    assert!(checked > 500, "every change of every view was checked");
    assert!(failures.is_empty(), "{failures}");
    Ok(())
}

/// The sum of the squares of all elements.
fn squares(outputs: Vec<Tensor>) -> Result<Tensor> {
    let mut total = Tensor::scalar_of(0.0, DType::F64)?;
    for output in outputs {
        total = total.add(&output.mul(&output)?.sum()?)?;
    }
    Ok(total)
}

#[test]
fn changes_of_views_are_the_same_in_batches() -> Result<()> {
    let xs = Sampler::new(DType::F64).normal(&[3, 2, 1, 2]).with_grad()?;
    // (Batches have neither complex views of real numbers nor strides to be set.)
    let is_batched = |case: &Case| !case.name.contains("complex") && case.def.name != "as_strided_";
    for case in cases(&xs.detach()?.select(0, 0)?)?.into_iter().filter(is_batched) {
        let one = |x: &Tensor| squares(case.run(x)?);
        let alone = |all: &[Tensor]| {
            let each = (0..3).map(|i| one(&all[0].select(0, i)?));
            Ok(vec![ops::shape::join::stack(&each.collect::<Result<Vec<_>>>()?, 0)?])
        };
        let together = |all: &[Tensor]| Ok(vec![vmap(|x| one(x[0]), &[Batched::first(&all[0])])?]);
        let inputs = std::slice::from_ref(&xs);
        let (expected, found) =
            (analytic(&alone, inputs, false)?, analytic(&together, inputs, false)?);
        let (a, b) = (found[0].to_vec::<f64>()?, expected[0].to_vec::<f64>()?);
        let is_close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9 * (1.0 + b.abs());
        assert!(a.iter().zip(&b).all(is_close), "{}: {a:?}, not {b:?}", case.text());
    }
    Ok(())
}

#[test]
fn a_refused_change_of_a_view_changes_nothing() -> Result<()> {
    let base = Sampler::new(DType::F64).normal(&[2, 3]).with_grad()?.clone_tensor(None)?;
    for view in base.split(1, 0)? {
        for def in changes() {
            for rest in arguments(def, &view) {
                let (sizes, version) = (view.shape().to_vec(), view.version());
                let error = change(def, &view, &rest).unwrap_err();
                assert!(
                    error
                        .message()
                        .contains("is the output of a function that returns multiple views")
                );
                assert_eq!((view.shape(), view.version()), (&sizes[..], version));
            }
        }
    }
    Ok(())
}

#[test]
fn another_view_of_one_memory_is_read_before_it_is_written() -> Result<()> {
    let x = Sampler::new(DType::F64).normal(&[4]).with_grad()?;
    let base = x.clone_tensor(None)?;
    let (even, odd) = (base.slice(0, None, None, 2)?, base.slice(0, Some(1), None, 2)?);
    // The source's history is that of before the write; afterwards it is looked up anew.
    even.add_(&odd)?;
    odd.add_(&even)?;
    odd.sum()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [1.0, 2.0, 1.0, 2.0]);
    Ok(())
}

#[test]
fn a_view_of_more_than_its_base_shows_has_no_gradient() -> Result<()> {
    let x = Sampler::new(DType::F64).normal(&[2, 3]).with_grad()?;
    let base = x.clone_tensor(None)?;
    let (whole, row) = (base.slice(0, None, None, 1)?, base.select(0, 0)?);
    base.as_strided_(&[3], &[1], Some(0))?;
    let three = Tensor::wrapped(3.0)?;
    let is_refused = |error: pullback::Error| error.message().contains("does not show any more");
    assert!(
        is_refused(whole.grad_fn().err().unwrap()) && is_refused(whole.mul_(&three).unwrap_err())
    );
    row.mul_(&three)?;
    base.sum()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [3.0, 3.0, 3.0, 0.0, 0.0, 0.0]);
    Ok(())
}

/// The gradient of the base of such a write has the base's gaps, so that the view's strides mean the same elements in it.
#[test]
fn writes_through_views_of_a_base_with_gaps_between_its_elements() {
    let leaf = Tensor::from_slice(&[1., 2., 3., 4., 5., 6.], &[2, 3]).unwrap();
    leaf.requires_grad_(true).unwrap();
    let two = Tensor::from_slice(&[2.0], &[]).unwrap();
    let weights = Tensor::from_slice(&[1., 10., 100., 1000.], &[2, 2]).unwrap();
    for (row, expected) in
        [(0, [4., 0., 40., 200., 0., 2000.]), (1, [2., 0., 20., 400., 0., 4000.])]
    {
        let base = leaf.mul(&two).unwrap();
        base.as_strided_(&[2, 2], &[3, 2], Some(0)).unwrap();
        base.select(0, row).unwrap().mul_(&two).unwrap();
        base.mul(&weights).unwrap().sum().unwrap().backward().unwrap();
        let grad = leaf.grad().unwrap();
        assert_eq!(grad.to_vec::<f64>().unwrap(), expected, "row {row}");
        leaf.set_grad(None).unwrap();
    }
}

/// Such a view has no place in the base's gradient, and needs none.
#[test]
fn a_view_without_elements_is_written_after_its_base_moved_on() {
    let leaf = Tensor::from_slice(&[1., 2., 3., 4.], &[2, 2]).unwrap();
    leaf.requires_grad_(true).unwrap();
    let base = leaf.clone_tensor(None).unwrap();
    let empty = base.slice(0, Some(0), Some(0), 1).unwrap();
    base.as_strided_(&[1, 2], &[2, 1], Some(2)).unwrap();
    empty.zero_().unwrap();
    base.sum().unwrap().backward().unwrap();
    assert_eq!(leaf.grad().unwrap().to_vec::<f64>().unwrap(), [0., 0., 1., 1.]);
}

/// The tangent of an empty base has room for what its views show.
#[test]
fn a_base_that_became_empty_is_written_in_forward_mode() {
    let base = Tensor::from_slice(&[1., 2., 3., 4.], &[2, 2]).unwrap();
    let view = base.slice(0, None, None, 1).unwrap();
    base.as_strided_(&[0], &[1], Some(0)).unwrap();
    let _level = dual_level().unwrap();
    let empty = Tensor::from_slice::<f64>(&[], &[0]).unwrap();
    base.add_(&make_dual(&empty, &empty).unwrap()).unwrap();
    assert_eq!(view.mul(&view).unwrap().to_vec::<f64>().unwrap(), [1., 4., 9., 16.]);
}
