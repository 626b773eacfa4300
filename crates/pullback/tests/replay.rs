//! Every op that gives views: its views are made again of other tensors, and reversed.

use pullback::autograd::mode::{self, set_view_replay_enabled};
use pullback::autograd::{self, Visitor, call};
use pullback::dispatch::{Arg, OpDef, Traits, Value};
use pullback::gradcheck::{Sample, Sampler};
use pullback::{DType, Result, Tensor, TensorSpec, ops};

/// Lets views keep their ops as long as it lives.
struct Keeping;
impl Keeping {
    fn new() -> Self {
        set_view_replay_enabled(true);
        Keeping
    }
}
impl Drop for Keeping {
    fn drop(&mut self) {
        set_view_replay_enabled(false);
    }
}

/// Every sample of every op whose signature says that the result may share memory with its first argument.
fn samples(dtype: DType) -> Vec<(&'static OpDef, Sample)> {
    let gives_views = |def: &&'static OpDef| {
        def.schema_text.contains("(Tensor(a) self")
            || def.schema_text.contains("(Tensor(a -> *) self")
    };
    let all: Vec<_> = ops::registry()
        .filter(gives_views)
        .filter_map(|def| Some((def, def.samples?(&Sampler::new(dtype)))))
        .flat_map(|(def, samples)| samples.into_iter().map(move |sample| (def, sample)))
        .collect();
    assert!(all.len() > 60, "the registry has many views");
    all
}

fn values(def: &'static OpDef, sample: &Sample) -> Vec<Value> {
    sample.values(def).expect("samples are complete")
}

/// The tensor that the sample begins with, laid out as it is there.
fn base_of(def: &'static OpDef, sample: &Sample) -> Tensor {
    match &values(def, sample)[0] {
        Value::Tensor(t) => like(t, 1.0).expect("samples are small"),
        other => panic!("{} begins with {other:?}", def.name),
    }
}

/// The views that the op gives of `base`.
fn views(def: &'static OpDef, sample: &Sample, base: &Tensor) -> Vec<Tensor> {
    let values = values(def, sample);
    let mut args: Vec<Arg<'_>> = values.iter().map(Value::as_arg).collect();
    args[0] = Arg::Tensor(base);
    let outputs = call(def, &args).expect("samples are valid");
    outputs
        .as_slice()
        .iter()
        .filter(|t| t.base().is_some_and(|b| b.is_same(base)))
        .cloned()
        .collect()
}

/// Other numbers that lie in memory as `base` does, or the same.
fn like(base: &Tensor, scale: f64) -> Result<Tensor> {
    let whole = TensorSpec::of(
        &[base.storage().map_or(0, |s| s.nbytes() / base.dtype().size()) as i64],
        base.dtype(),
    )
    .zeros()?;
    let copy =
        whole.as_strided(base.shape(), base.strides(), Some(base.storage_offset()))?.detach()?;
    copy.copy_(base, false)?.mul_(&Tensor::wrapped(scale)?)?;
    Ok(copy)
}

fn assert_same(a: &Tensor, b: &Tensor, what: &str) {
    assert_eq!(a.shape(), b.shape(), "sizes of {what}");
    assert_eq!(a.strides(), b.strides(), "strides of {what}");
    assert_eq!(a.storage_offset(), b.storage_offset(), "offset of {what}");
    assert_eq!(a.dtype(), b.dtype(), "dtype of {what}");
    assert!(a.equal(b).expect("of one shape"), "values of {what}");
}

fn check_replay(dtype: DType) {
    let mut checked = 0;
    for (def, sample) in samples(dtype) {
        let base = base_of(def, &sample);
        for view in views(def, &sample, &base) {
            let what = def.full_name();
            let other = like(&base, 3.0).expect("samples are small");
            let place = |t: &Tensor| t.storage_offset();
            let expected = views(def, &sample, &other)
                .into_iter()
                .find(|t| t.shape() == view.shape() && place(t) == place(&view))
                .expect("the op gives the same views again");
            let again = view.view_func(&other).expect(&what).expect("it lies as the base does");
            assert_same(&again, &expected, &what);
            assert!(again.base().is_some_and(|t| t.is_same(&other)), "{what}");
            checked += 1;
        }
    }
    assert!(checked > 40, "only {checked} views were made");
}

#[test]
fn views_are_made_again_of_a_tensor_like_their_base() {
    check_replay(DType::F64);
    check_replay(DType::C128);
}

#[test]
fn views_that_keep_their_ops_are_made_again_by_these() {
    let _keeping = Keeping::new();
    check_replay(DType::F64);
    check_replay(DType::C128);
    let _unrecorded = autograd::no_grad();
    check_replay(DType::F64);
}

#[test]
fn views_that_keep_their_ops_are_reversed() {
    let _keeping = Keeping::new();
    for dtype in [DType::F64, DType::C128] {
        for (def, sample) in samples(dtype) {
            let base = base_of(def, &sample);
            for view in views(def, &sample, &base) {
                let alone = view.detach().expect("no memory is needed");
                let found = view.rev_view_func(&alone).expect(def.name).expect("it is a view");
                assert_same(&found, &base, &def.full_name());
                assert!(found.base().is_some_and(|t| t.is_same(&alone)), "{}", def.name);
            }
        }
    }
}

/// A view of `x * 1` made by the op, after its base was doubled.
fn view_of_written(def: &'static OpDef, sample: &Sample, x: &Tensor) -> Option<Tensor> {
    let base = x.mul(&Tensor::wrapped(1.0).ok()?).ok()?;
    let view = views(def, sample, &base).into_iter().next()?;
    base.mul_(&Tensor::wrapped(2.0).ok()?).expect("an ordinary tensor");
    Some(view)
}

#[test]
fn histories_made_again_of_ops_have_their_nodes_and_the_same_gradients() {
    let mut checked = 0;
    for (def, sample) in samples(DType::F64) {
        if def.is(Traits::MULTI_VIEW) {
            continue;
        }
        let x = base_of(def, &sample).with_grad().expect("a leaf");
        let first = views(def, &sample, &x);
        let Some(name) = first.first().and_then(|v| v.grad_fn().ok()?).map(|n| n.name()) else {
            continue;
        };
        let gradient = |view: Tensor| {
            let size = view.abs()?;
            let total = size.mul(&size)?.sum()?;
            Ok(autograd::grad(&[&total], &[&x], &[None], autograd::BackwardOptions::default())?
                .remove(0))
        };
        let Some(plain) = view_of_written(def, &sample, &x) else { continue };
        let Ok(node) = plain.grad_fn() else { continue };
        // Parts of complex numbers are chosen, by strides, from pairs that are no matter of strides.
        let is_whole = plain.dtype() == x.dtype() || plain.dtype().is_complex();
        let is_pairs = !is_whole && plain.ndim() > x.ndim();
        let is_turned = plain.is_conj() || plain.is_neg();
        let strided = if !is_turned && (plain.dtype() == x.dtype() || !is_whole && !is_pairs) {
            "AsStridedBackward0"
        } else {
            &name
        };
        assert_eq!(node.expect("it requires grad").name(), strided, "{}", def.name);
        let kept = {
            let _keeping = Keeping::new();
            view_of_written(def, &sample, &x).expect("as before")
        };
        assert_eq!(kept.grad_fn().expect("as before").expect("as before").name(), name);
        let (a, b): (Result<Option<Tensor>>, _) = (gradient(plain), gradient(kept));
        let (a, b) = (a.expect(def.name), b.expect(def.name));
        let (a, b) = (a.expect("it is used"), b.expect("it is used"));
        assert!(a.equal(&b).expect("of one shape"), "{}", def.full_name());
        checked += 1;
    }
    assert!(checked > 25, "only {checked} views were checked");
}

fn ramp(shape: &[i64]) -> Tensor {
    let count: i64 = shape.iter().product();
    let values: Vec<f64> = (0..count).map(|i| i as f64).collect();
    Tensor::from_slice(&values, shape).expect("small")
}

#[test]
fn chains_fill_their_gaps_by_strides() -> Result<()> {
    let base = ramp(&[2, 3, 4]);
    let other = ramp(&[2, 3, 4]).neg()?;
    for keeps in [[true, true], [true, false], [false, true]] {
        set_view_replay_enabled(keeps[0]);
        let middle = base.select(1, 2)?;
        set_view_replay_enabled(keeps[1]);
        let view = middle.transpose(0, 1)?;
        set_view_replay_enabled(false);
        let again = view.view_func(&other)?.expect("it lies as the base does");
        assert_same(&again, &other.select(1, 2)?.transpose(0, 1)?, "a chain");
        let alone = view.detach()?;
        assert_same(&view.rev_view_func(&alone)?.expect("it is a view"), &base, "a chain");
    }
    let plain = base.select(1, 2)?;
    let error = plain.rev_view_func(&plain).expect_err("it keeps no ops");
    assert!(error.to_string().contains("No _rev_view_func() found"));
    Ok(())
}

#[test]
fn a_visitor_changes_one_replay_only() -> Result<()> {
    let _keeping = Keeping::new();
    let base = ramp(&[3, 4]);
    let view = base.select(0, 1)?.as_strided(&[2], &[1], Some(4))?;
    let mut seen = Vec::new();
    let mut visit = |n: i64| {
        seen.push(n);
        Ok(if n == 4 { 8 } else { n })
    };
    let mut visitor = Visitor { number: Some(&mut visit), tensor: None };
    let moved = view.view_func_with(&base, true, &mut visitor)?.expect("a view");
    assert_eq!(moved.to_vec::<f64>()?, [8.0, 9.0]);
    assert_eq!(seen, [1, 2, 1, 4]);
    assert_eq!(view.view_func(&base)?.expect("a view").to_vec::<f64>()?, [4.0, 5.0]);
    Ok(())
}

#[test]
fn a_view_reshaped_in_place_is_replayed_as_it_is_now() -> Result<()> {
    let _keeping = Keeping::new();
    let base = ramp(&[6]);
    let view = base.view(&[2, 3])?;
    view.t_()?;
    let again = view.view_func(&ramp(&[6]))?.expect("a view");
    assert_same(&again, &view, "the transposed view");
    assert_same(&view.rev_view_func(&view.detach()?)?.expect("a view"), &base, "it");
    Ok(())
}

#[test]
fn long_chains_of_kept_ops_are_dropped_without_recursion() -> Result<()> {
    let _keeping = Keeping::new();
    let base = ramp(&[1]);
    let mut view = base.view(&[1])?;
    for _ in 0..200_000 {
        view = view.view(&[1])?;
    }
    assert!(mode::is_view_replay_enabled());
    assert!(view.base().is_some_and(|t| t.is_same(&base)));
    drop(view);
    Ok(())
}
