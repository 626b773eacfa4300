//! Modules: names, state dicts, files, conversions.

use pullback::ErrorKind;
use pullback_nn::prelude::*;

#[derive(Module)]
struct Inner {
    linear: Linear,
    #[module(buffer)]
    offset: Option<Tensor>,
    scale: Tensor,
    drop: Dropout,
    note: &'static str,
}

#[derive(Module)]
struct Outer(Vec<Inner>, Box<dyn Forward>, #[module(rename = "last")] Linear);

fn inner() -> Result<Inner> {
    Ok(Inner {
        linear: Linear::new(2, 3)?,
        offset: Some(Tensor::arange(0, 4)?),
        scale: Tensor::ones([1])?.with_grad()?,
        drop: Dropout::new(0.5)?,
        note: "shows nothing",
    })
}

fn outer() -> Result<Outer> {
    Ok(Outer(vec![inner()?, inner()?], Box::new(Sequential::new().add(ReLU)), Linear::new(3, 1)?))
}

#[test]
fn tensors_have_the_names_of_their_fields_own_ones_first() -> Result<()> {
    let model = outer()?;
    assert_eq!(model.0[0].note, "shows nothing");
    let state = model.state_dict()?;
    let names: Vec<&str> = state.iter().map(|(name, _)| name).collect();
    let of = |at: i32| {
        ["offset", "scale", "linear.weight", "linear.bias"].map(|name| format!("0.{at}.{name}"))
    };
    let last = ["last.weight".to_owned(), "last.bias".to_owned()];
    assert_eq!(names, [&of(0)[..], &of(1), &last].concat());
    let buffers: Vec<String> = model.named_buffers().into_iter().map(|(name, _)| name).collect();
    assert_eq!(buffers, ["0.0.offset", "0.1.offset"]);
    assert_eq!(model.num_parameters(), 2 * (1 + 6 + 3) + 4);
    Ok(())
}

#[test]
fn a_parameter_of_two_names_is_trained_once_and_saved_twice() -> Result<()> {
    let first = Linear::new(2, 2)?;
    let second = Linear { weight: first.weight.clone(), bias: None };
    let model = [first, second];
    assert_eq!(model.named_parameters().len(), 2);
    assert_eq!(model.state_dict()?.len(), 3);
    Ok(())
}

#[test]
fn errors_of_loading_name_what_is_missing_unexpected_and_of_another_shape() -> Result<()> {
    let model = inner()?;
    let before = model.linear.weight.to_vec::<f32>()?;
    let mut state: StateDict = model
        .state_dict()?
        .iter()
        .filter(|(name, _)| *name != "scale")
        .map(|(name, tensor)| (name.to_owned(), tensor.mul(tensor).unwrap()))
        .collect();
    state.insert("extra.weight", Tensor::ones([1])?);
    state.insert("linear.bias", Tensor::ones([4])?);
    let error = model.load_state_dict(&state).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Runtime);
    for part in [
        "Missing key(s) in state_dict: \"scale\".",
        "Unexpected key(s) in state_dict: \"extra.weight\".",
        "size mismatch for linear.bias",
        "shape [4] from checkpoint, the shape in current model is [3]",
    ] {
        assert!(error.message().contains(part), "{error}");
    }
    assert_eq!(model.linear.weight.to_vec::<f32>()?, before, "nothing is written");
    assert!(model.load_matching(&state).is_err());
    state.insert("linear.bias", Tensor::ones([3])?);
    let left = model.load_matching(&state)?;
    assert_eq!(
        (left.missing, left.unexpected),
        (vec!["scale".into()], vec!["extra.weight".into()])
    );
    assert_eq!(model.linear.bias.as_ref().unwrap().to_vec::<f32>()?, [1.0; 3]);
    Ok(())
}

#[test]
fn loading_writes_into_the_parameters_that_an_optimizer_holds() -> Result<()> {
    let (model, other) = (Linear::new(2, 2)?, Linear::new(2, 2)?);
    let mut optimizer = SGD::new(&model, SGDOptions { lr: 0.0, ..Default::default() })?;
    model.load_state_dict(&other.state_dict()?)?;
    assert!(model.weight.equal(&other.weight)? && model.weight.requires_grad());
    model.forward(&Tensor::ones([1, 2])?)?.sum()?.backward()?;
    optimizer.step()?;
    assert!(model.weight.equal(&other.weight)?);
    Ok(())
}

#[test]
fn files_of_both_formats_come_back() -> Result<()> {
    let folder = std::env::temp_dir();
    for ending in ["safetensors", "pt"] {
        let path = folder.join(format!("pullback_nn_{}.{ending}", std::process::id()));
        let (model, other) = (outer()?, outer()?);
        model.save(&path)?;
        other.load(&path)?;
        for ((name, a), (_, b)) in model.state_dict()?.iter().zip(other.state_dict()?.iter()) {
            assert!(a.equal(b)?, "{name}");
        }
        std::fs::remove_file(&path).ok();
    }
    assert_eq!(outer()?.save("weights.txt").unwrap_err().kind(), ErrorKind::Value);
    assert!(outer()?.load("/nowhere/weights.pt").is_err());
    Ok(())
}

#[test]
fn modules_change_their_dtype_and_keep_their_tensors() -> Result<()> {
    let model = inner()?;
    let held = model.linear.weight.clone();
    model.linear.forward(&Tensor::ones([1, 2])?)?.sum()?.backward()?;
    model.to_dtype(DType::F64)?;
    assert!(held.dtype() == DType::F64 && held.grad().is_none() && held.requires_grad());
    assert_eq!(model.offset.as_ref().unwrap().dtype(), DType::I64, "whole numbers stay");
    let x = Tensor::options().dtype(DType::F64).ones([1, 2])?;
    model.linear.forward(&x)?.sum()?.backward()?;
    assert_eq!(held.grad().unwrap().dtype(), DType::F64);
    model.requires_grad(false)?;
    assert!(!held.requires_grad());
    Ok(())
}

#[test]
fn evaluation_reaches_layers_in_all_places() -> Result<()> {
    let mut model = Outer(
        vec![inner()?],
        Box::new(Sequential::new().add(Dropout::new(1.0)?).add(function(|x| x.add(x)))),
        Linear::new(1, 1)?,
    );
    let x = Tensor::ones([3])?;
    let both = |model: &Outer| -> Result<(Vec<f32>, Vec<f32>)> {
        Ok((model.1.forward(&x)?.to_vec()?, model.0[0].drop.forward(&x)?.to_vec()?))
    };
    assert_eq!(both(&model)?.0, [0.0; 3]);
    model.eval();
    assert_eq!(both(&model)?, (vec![2.0; 3], vec![1.0; 3]));
    model.train();
    assert_eq!(both(&model)?.0, [0.0; 3]);
    Ok(())
}
