//! Properties of forward mode: tangents by dual tensors.

use super::*;

/// Levels of forward mode belong to the process; [`for_all`] runs one property at a time.
fn in_level<R>(run: impl FnOnce() -> R) -> R {
    let _level = dual_level().unwrap();
    run()
}

/// The tensors that a sample is differentiable in, each with a direction.
struct Directions {
    slots: Vec<(usize, usize, Tensor)>,
    directions: Vec<Option<Tensor>>,
}

impl Directions {
    /// `None` if there is nothing to differentiate.
    fn of(def: &'static OpDef, sample: &Sample, values: &[Value], dtype: DType) -> Option<Self> {
        if !sample.differentiable || def.is(Traits::NOT_DIFFERENTIABLE) {
            return None;
        }
        let (slots, s) = (tensor_slots(values), Sampler::new(dtype));
        let direction = |(index, _, t): &(usize, usize, Tensor)| {
            let is_input = matches!(t.dtype(), DType::F64 | DType::C128);
            (is_input && !def.args[*index].not_differentiable)
                .then(|| s.normal(t.shape()).to_dtype(t.dtype()).unwrap())
        };
        let directions: Vec<_> = slots.iter().map(direction).collect();
        directions.iter().any(Option::is_some).then_some(Directions { slots, directions })
    }
    /// The arguments with each tensor replaced by what `make` makes of it and its direction.
    fn map(
        &self,
        values: &[Value],
        make: impl Fn(&Tensor, Option<&Tensor>) -> Result<Tensor>,
    ) -> Result<Vec<Value>> {
        let pairs = self.slots.iter().zip(&self.directions);
        let new: Vec<_> = pairs.map(|((_, _, t), d)| make(t, d.as_ref())).collect::<Result<_>>()?;
        Ok(replace(values, &self.slots, &new))
    }
    fn duals(&self, values: &[Value]) -> Result<Vec<Value>> {
        self.map(values, |t, d| d.map_or_else(|| Ok(t.clone()), |d| make_dual(t, d)))
    }
    /// How the outputs of a form change per step in the directions.
    fn differences(
        &self,
        form: Form,
        def: &'static OpDef,
        values: &[Value],
    ) -> Result<Vec<Tensor>> {
        let at = |step: f64| {
            let moved = |t: &Tensor, d: Option<&Tensor>| match d {
                Some(d) => t.add(&d.mul(&Tensor::wrapped(step)?)?),
                None => Ok(t.clone()),
            };
            form(def, &self.map(values, moved)?)
        };
        let (above, below) = (at(1e-6)?, at(-1e-6)?);
        let is_float = |(a, _): &(&Tensor, &Tensor)| a.dtype().is_differentiable();
        above
            .iter()
            .zip(&below)
            .filter(is_float)
            .map(|(a, b)| a.sub(b)?.div(&Tensor::wrapped(2e-6)?))
            .collect()
    }
}

/// The tangents of the outputs that can have one; zeros for those that have none.
fn tangents(outputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let floats = outputs.iter().filter(|t| t.dtype().is_differentiable());
    floats.map(|t| t.tangent()?.map_or_else(|| t.zeros_like(), Ok)).collect()
}

fn duals_agree(
    form: Form,
    def: &'static OpDef,
    sample: &Sample,
    dtype: DType,
) -> std::result::Result<(), String> {
    let values = sample.values(def).map_err(text)?;
    let Some(directions) = Directions::of(def, sample, &values, dtype) else { return Ok(()) };
    if dtype.is_complex() && form(def, &values).is_err() {
        // Whether an op takes complex numbers is its own business; what it takes must be right.
        return Ok(());
    }
    let expected = directions.differences(form, def, &values).map_err(text)?;
    let got = in_level(|| tangents(&form(def, &directions.duals(&values)?)?)).map_err(text)?;
    all_equal(&got, &expected, 1e-4)
}

#[test]
fn tangents_of_duals_agree_with_differences() {
    for_all("tangents agree with differences", DType::F64, |def, sample| {
        duals_agree(function_of, def, sample, DType::F64)
    });
}

#[test]
fn a_missing_tangent_is_zero() {
    for_all("tangents of one input at a time", DType::F64, |def, sample| {
        let values = sample.values(def).map_err(text)?;
        let Some(all) = Directions::of(def, sample, &values, DType::F64) else { return Ok(()) };
        for at in 0..all.directions.len() {
            let mut one =
                Directions { slots: all.slots.clone(), directions: all.directions.clone() };
            one.directions
                .iter_mut()
                .enumerate()
                .filter(|(i, _)| *i != at)
                .for_each(|(_, d)| *d = None);
            if one.directions[at].is_none() {
                continue;
            }
            let expected = one.differences(function_of, def, &values).map_err(text)?;
            let got = in_level(|| tangents(&function_of(def, &one.duals(&values)?)?));
            all_equal(&got.map_err(text)?, &expected, 1e-4)
                .map_err(|text| format!("tensor {at}: {text}"))?;
        }
        Ok(())
    });
}

#[test]
fn complex_tangents_agree_with_differences() {
    for_all("tangents agree with differences for complex numbers", DType::C128, |def, sample| {
        duals_agree(function_of, def, sample, DType::C128)
    });
}

#[test]
fn tangents_of_inplace_forms_agree_with_differences() {
    for_all("the in-place form's tangents", DType::F64, |def, sample| {
        let values = sample.values(def).map_err(text)?;
        let Some(Value::Tensor(first)) = values.first() else { return Ok(()) };
        if !def.is(Traits::INPLACE) {
            return Ok(());
        }
        let result = &functional(def, &values).map_err(text)?[0];
        if result.shape() != first.shape() || result.dtype() != first.dtype() {
            return Ok(());
        }
        duals_agree(inplace_on_copy, def, sample, DType::F64)
    });
}

#[test]
fn tangents_of_views_share_memory_with_the_tangent_they_show() {
    for_all("a view's tangent is a view", DType::F64, |def, sample| {
        if !def.is(Traits::VIEW) {
            return Ok(());
        }
        let values = sample.values(def).map_err(text)?;
        let Some(directions) = Directions::of(def, sample, &values, DType::F64) else {
            return Ok(());
        };
        in_level(|| {
            let duals = directions.duals(&values)?;
            let Value::Tensor(dual) = &duals[0] else { return Ok(Ok(())) };
            let whole = dual.tangent()?.map(|t| t.storage().map(|s| s.id()));
            for view in functional(def, &duals)? {
                if view.tangent()?.map(|t| t.storage().map(|s| s.id())) != whole {
                    return Ok(Err("the view's tangent is a copy".to_string()));
                }
            }
            Ok(Ok(()))
        })
        .map_err(text)?
    });
}

/// The gradients of the inputs that are differentiable, by one pass that is itself recorded or has tangents.
fn gradients(
    def: &'static OpDef,
    values: &[Value],
    inputs: &Directions,
    create: bool,
) -> Result<Vec<Tensor>> {
    let list: Vec<Tensor> = tensor_slots(values).into_iter().map(|(_, _, t)| t).collect();
    analytic(&|new| function_of(def, &replace(values, &inputs.slots, new)), &list, create)
}

#[test]
fn forward_over_reverse_equals_double_backward() {
    for_all("forward over reverse", DType::F64, |def, sample| {
        let values = sample.values(def).map_err(text)?;
        let Some(directions) = Directions::of(def, sample, &values, DType::F64) else {
            return Ok(());
        };
        let leaf = |t: &Tensor, d: Option<&Tensor>| {
            let fresh = t.clone_tensor(None)?;
            if d.is_some() { fresh.with_grad() } else { Ok(fresh) }
        };
        let run = || -> Result<(Vec<Tensor>, Vec<Tensor>)> {
            let leaves = directions.map(&values, leaf)?;
            let grads = gradients(def, &leaves, &directions, true)?;
            let list: Vec<Tensor> = tensor_slots(&leaves).into_iter().map(|(_, _, t)| t).collect();
            let inputs: Vec<&Tensor> = list.iter().filter(|t| t.requires_grad()).collect();
            let given: Vec<&Tensor> = directions.directions.iter().flatten().collect();
            let roots: Vec<_> =
                grads.iter().zip(given).filter(|(g, _)| g.requires_grad()).collect();
            let zeros = |t: &Tensor| t.detach()?.zeros_like();
            let expected: Vec<Tensor> = if roots.is_empty() {
                inputs.iter().map(|t| zeros(t)).collect::<Result<_>>()?
            } else {
                let starts: Vec<_> = roots.iter().map(|(_, d)| Some(*d)).collect();
                let roots: Vec<_> = roots.iter().map(|(g, _)| *g).collect();
                let options = BackwardOptions { allow_unused: true, ..BackwardOptions::default() };
                let twice = autograd::grad(&roots, &inputs, &starts, options)?;
                let pairs = twice.into_iter().zip(&inputs);
                pairs.map(|(g, t)| g.map_or_else(|| zeros(t), Ok)).collect::<Result<_>>()?
            };
            let got = in_level(|| {
                let leaves = directions.map(&values, leaf)?;
                let list = tensor_slots(&leaves).into_iter().zip(&directions.directions);
                let made: Vec<Tensor> = list
                    .map(|((_, _, t), d)| {
                        d.as_ref().map_or_else(|| Ok(t.clone()), |d| make_dual(&t, d))
                    })
                    .collect::<Result<_>>()?;
                let duals = replace(&leaves, &directions.slots, &made);
                tangents(&gradients(def, &duals, &directions, false)?)
            })?;
            Ok((got, expected))
        };
        let (got, expected) = run().map_err(text)?;
        all_equal(&got, &expected, 1e-9)
    });
}
