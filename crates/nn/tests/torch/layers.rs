//! Layers: state at first, outputs, gradients, buffers, outputs in evaluation.

use crate::{compare, recorded, seeded};
use pullback::prelude::*;
use pullback_nn::nn::*;
use pullback_nn::{Forward, Module};

fn check<M: Module>(
    case: &str,
    make: impl FnOnce() -> Result<M>,
    call: impl Fn(&M) -> Result<Vec<Tensor>>,
) -> Result<()> {
    let _seed = seeded(0);
    let rows = recorded(case);
    let mut module = make()?;
    let state = module.state_dict()?;
    for (name, tensor) in state.iter() {
        let row = rows.get(name).unwrap_or_else(|| panic!("{case} has no {name} in PyTorch"));
        compare(&format!("{case}: {name}"), tensor, row, 0.0)?;
    }
    let extra = ["output", "grad", "after", "evaluated"];
    let is_state = |name: &&&str| !extra.iter().any(|word| name.starts_with(word));
    assert_eq!(state.len(), rows.keys().filter(is_state).count(), "tensors of {case}");

    let outputs = call(&module)?;
    let mut loss = Tensor::zeros(())?;
    for (index, output) in outputs.iter().enumerate() {
        let entry = format!("output {index}");
        compare(&format!("{case}: {entry}"), output, &rows[entry.as_str()], 2e-5)?;
        loss = loss.add(&output.square()?.sum()?)?;
    }
    let parameters = module.named_parameters();
    if !parameters.is_empty() {
        loss.backward()?;
    }
    for (name, parameter) in parameters {
        let (entry, grad) = (format!("grad {name}"), parameter.grad().expect("it is used"));
        compare(&format!("{case}: {entry}"), &grad, &rows[entry.as_str()], 1e-4)?;
    }
    for (name, buffer) in module.named_buffers() {
        let entry = format!("after {name}");
        compare(&format!("{case}: {entry}"), &buffer, &rows[entry.as_str()], 2e-5)?;
    }
    module.eval();
    compare(&format!("{case}: evaluated"), &call(&module)?[0], &rows["evaluated"], 2e-5)
}

/// A layer of one tensor, on normal numbers of this shape.
fn check_on<M: Forward>(case: &str, make: impl FnOnce() -> Result<M>, shape: &[i64]) -> Result<()> {
    check(case, make, |m| Ok(vec![m.forward(&Tensor::randn(shape)?)?]))
}

#[test]
fn affine_layers_are_those_of_pytorch() -> Result<()> {
    check_on("linear", || Linear::new(5, 3), &[2, 5])?;
    let without = LinearOptions { bias: false, ..Default::default() };
    check_on("linear without bias", || Linear::with(5, 3, &without), &[2, 5])?;
    check(
        "bilinear",
        || Bilinear::new(3, 4, 2),
        |m| Ok(vec![m.forward(&Tensor::randn([5, 3])?, &Tensor::randn([5, 4])?)?]),
    )
}

#[test]
fn convolutions_are_those_of_pytorch() -> Result<()> {
    let options =
        ConvOptions { stride: [2], padding: Padding::Each([1]), groups: 2, ..Default::default() };
    check_on("conv1d", || Conv1d::with(4, 6, [3], options), &[2, 4, 9])?;
    let options = ConvOptions { dilation: [2, 2], ..Default::default() };
    check_on("conv2d", || Conv2d::with(3, 4, [3, 2], options), &[2, 3, 8, 7])?;
    let options = ConvOptions { padding: Padding::Same, bias: false, ..Default::default() };
    check_on("conv2d same", || Conv2d::with(2, 2, [4, 4], options), &[1, 2, 5, 6])?;
    let options = ConvOptions {
        padding: Padding::Same,
        padding_mode: PaddingMode::Circular,
        ..Default::default()
    };
    check_on("conv1d circular", || Conv1d::with(2, 3, [4], options), &[2, 2, 7])?;
    let options = ConvOptions {
        stride: [1, 2],
        padding: Padding::Each([1, 2]),
        padding_mode: PaddingMode::Reflect,
        ..Default::default()
    };
    check_on("conv2d reflect", || Conv2d::with(2, 3, [3, 3], options), &[1, 2, 5, 6])?;
    let options = ConvOptions {
        padding: Padding::Each([1; 3]),
        padding_mode: PaddingMode::Replicate,
        ..Default::default()
    };
    check_on("conv3d replicate", || Conv3d::with(1, 2, [2; 3], options), &[1, 1, 3, 4, 2])?;
    let strided = ConvOptions { stride: [2], padding: Padding::Same, ..Default::default() };
    assert!(Conv1d::with(1, 1, [3], strided).is_err());
    check_on("conv3d", || Conv3d::new(2, 3, [2, 2, 2]), &[1, 2, 4, 3, 3])?;
    let options =
        ConvTransposeOptions { stride: [2, 2], output_padding: [1, 1], ..Default::default() };
    let make = || ConvTranspose2d::with(3, 4, [3, 3], options);
    check_on("conv transpose 2d", make, &[2, 3, 4, 3])
}

#[test]
fn activations_are_those_of_pytorch() -> Result<()> {
    fn each(name: &str, layer: impl Forward) -> Result<()> {
        check_on(name, || Ok(layer), &[2, 4])
    }
    each("relu", ReLU)?;
    each("relu6", ReLU6)?;
    each("sigmoid", Sigmoid)?;
    each("tanh", Tanh)?;
    each("silu", SiLU)?;
    each("mish", Mish)?;
    each("selu", SELU)?;
    each("log sigmoid", LogSigmoid)?;
    each("hardsigmoid", Hardsigmoid)?;
    each("hardswish", Hardswish)?;
    each("leaky relu", LeakyReLU { negative_slope: 0.2 })?;
    each("elu", ELU { alpha: 0.7 })?;
    each("celu", CELU { alpha: 0.7 })?;
    each("hardshrink", Hardshrink::default())?;
    each("softshrink", Softshrink::default())?;
    each("softsign", Softsign::default())?;
    each("tanhshrink", Tanhshrink::default())?;
    each("softplus", Softplus { beta: 2.0, ..Default::default() })?;
    each("gelu", GELU::default())?;
    each("gelu tanh", GELU { tanh: true })?;
    each("hardtanh", Hardtanh::default())?;
    each("softmax", Softmax::default())?;
    each("log softmax", LogSoftmax::default())?;
    each("glu", GLU::default())?;
    each("prelu", PReLU::new(4)?)
}

#[test]
fn tables_are_those_of_pytorch() -> Result<()> {
    let options = EmbeddingOptions { padding_idx: Some(2), ..Default::default() };
    check(
        "embedding",
        || Embedding::with(7, 3, &options),
        |m| Ok(vec![m.forward(&Tensor::from([[0_i64, 2], [6, 0]])?)?]),
    )
}

#[test]
fn norms_are_those_of_pytorch() -> Result<()> {
    check_on("layer norm", || LayerNorm::new([2, 3]), &[4, 2, 3])?;
    check_on("rms norm", || RMSNorm::new(6), &[4, 6])?;
    check_on("group norm", || GroupNorm::new(2, 4), &[3, 4, 5])?;
    check_on("batch norm 1d", || BatchNorm1d::new(3), &[6, 3])?;
    let options = BatchNormOptions { momentum: None, ..Default::default() };
    check_on("batch norm 2d", || BatchNorm2d::with(3, &options), &[2, 3, 4, 4])
}

#[test]
fn recurrent_layers_are_those_of_pytorch() -> Result<()> {
    let options = RecurrentOptions { num_layers: 2, bidirectional: true, ..Default::default() };
    check(
        "rnn",
        || RNN::of(Cell::ReLU, 3, 4, options),
        |m| {
            let (y, h) = m.forward(&Tensor::randn([5, 2, 3])?, None)?;
            Ok(vec![y, h])
        },
    )?;
    let options = RecurrentOptions { num_layers: 2, batch_first: true, ..Default::default() };
    check(
        "lstm",
        || LSTM::with(3, 4, options),
        |m| {
            let (y, (h, c)) = m.forward(&Tensor::randn([2, 5, 3])?, None)?;
            Ok(vec![y, h, c])
        },
    )?;
    let options = RecurrentOptions { bias: false, ..Default::default() };
    check(
        "gru",
        || GRU::with(3, 4, options),
        |m| {
            let x = Tensor::randn([5, 2, 3])?;
            let (y, h) = m.forward(&x, Some(&Tensor::randn([1, 2, 4])?))?;
            Ok(vec![y, h])
        },
    )
}

#[test]
fn projections_are_those_of_pytorch() -> Result<()> {
    let options =
        RecurrentOptions { num_layers: 2, bidirectional: true, proj_size: 2, ..Default::default() };
    check(
        "lstm projected",
        || LSTM::with(3, 5, options),
        |m| {
            let (y, (h, c)) = m.forward(&Tensor::randn([4, 2, 3])?, None)?;
            Ok(vec![y, h, c])
        },
    )?;
    let _seed = seeded(0);
    let projected = |proj_size| RecurrentOptions { proj_size, ..Default::default() };
    for wrong in [LSTM::with(3, 5, projected(5)).err(), GRU::with(3, 5, projected(2)).err()] {
        assert_eq!(wrong.expect("it is refused").kind(), pullback::ErrorKind::Value);
    }
    Ok(())
}

#[test]
fn sequences_of_different_lengths_are_those_of_pytorch() -> Result<()> {
    let options = RecurrentOptions { num_layers: 2, bidirectional: true, ..Default::default() };
    check(
        "lstm packed",
        || LSTM::with(3, 4, options),
        |m| {
            let packed = PackedSequence::pack(&Tensor::randn([4, 3, 3])?, &[2, 4, 1], false)?;
            let (h, c) = (Tensor::randn([4, 3, 4])?, Tensor::randn([4, 3, 4])?);
            let (y, (h, c)) = m.forward_packed(&packed, Some((&h, &c)))?;
            let (y, lengths) = y.pad(false, 0.0)?;
            assert_eq!(lengths, [2, 4, 1]);
            Ok(vec![y, h, c])
        },
    )?;
    check(
        "gru packed",
        || GRU::new(4, 3),
        |m| {
            let packed = PackedSequence::pack(&Tensor::randn([4, 3, 4])?, &[4, 2, 2], false)?;
            let (y, h) = m.forward_packed(&packed, None)?;
            Ok(vec![y.pad(false, 0.0)?.0, h])
        },
    )
}

#[test]
fn packed_sequences_come_back_and_wrong_lengths_are_refused() -> Result<()> {
    let _seed = seeded(0);
    let sequences = [Tensor::randn([2, 3])?, Tensor::randn([4, 3])?, Tensor::randn([1, 3])?];
    let packed = PackedSequence::of(&sequences)?;
    assert_eq!((packed.batch_sizes(), packed.data().shape()), (&[3, 2, 1, 1][..], &[7, 3][..]));
    let (padded, lengths) = packed.pad(true, -1.0)?;
    assert_eq!((padded.shape(), &lengths[..]), (&[3, 4, 3][..], &[2, 4, 1][..]));
    assert!(padded.equal(&pad_sequence(&sequences, true, -1.0)?)?);
    let again = PackedSequence::pack(&padded, &lengths, true)?;
    assert!(again.data().equal(packed.data())?);
    for wrong in [&[2, 4][..], &[2, 5, 1], &[2, 0, 1]] {
        assert!(PackedSequence::pack(&padded, wrong, true).is_err(), "{wrong:?}");
    }
    assert!(PackedSequence::of(&[]).is_err() && pad_sequence(&[], false, 0.0).is_err());
    assert!(LSTM::new(4, 2)?.forward_packed(&packed, None).is_err(), "other features");
    Ok(())
}

#[test]
fn decoders_are_those_of_pytorch() -> Result<()> {
    let options =
        TransformerLayerOptions { dim_feedforward: 16, dropout: 0.0, ..Default::default() };
    check(
        "decoder layer",
        || TransformerDecoderLayer::with(8, 2, &options),
        |m| {
            let (target, memory) = (Tensor::randn([4, 3, 8])?, Tensor::randn([5, 3, 8])?);
            Ok(vec![m.forward(&target, &memory, DecoderMasks::default())?])
        },
    )?;
    let options = TransformerLayerOptions {
        activation: Activation::GELU,
        batch_first: true,
        norm_first: true,
        ..options
    };
    check(
        "decoder layer, norm first, causal",
        || TransformerDecoderLayer::with(8, 2, &options),
        |m| {
            let (target, memory) = (Tensor::randn([3, 4, 8])?, Tensor::randn([3, 5, 8])?);
            let causal = DecoderMasks { causal: true, ..Default::default() };
            Ok(vec![m.forward(&target, &memory, causal)?])
        },
    )
}

#[test]
fn attention_is_that_of_pytorch() -> Result<()> {
    let options = MultiheadAttentionOptions { batch_first: true, ..Default::default() };
    check(
        "attention",
        || MultiheadAttention::with(8, 2, &options),
        |m| {
            let q = Tensor::randn([3, 4, 8])?;
            let (k, v) = (Tensor::randn([3, 5, 8])?, Tensor::randn([3, 5, 8])?);
            Ok(vec![m.forward([&q, &k, &v], None, false)?])
        },
    )?;
    let options =
        TransformerLayerOptions { dim_feedforward: 16, dropout: 0.0, ..Default::default() };
    check_on("encoder layer", || TransformerEncoderLayer::with(8, 2, &options), &[4, 3, 8])?;
    let options = TransformerLayerOptions {
        activation: Activation::GELU,
        batch_first: true,
        norm_first: true,
        ..options
    };
    let make = || TransformerEncoderLayer::with(8, 2, &options);
    check_on("encoder layer, norm first", make, &[3, 4, 8])
}

#[test]
fn masks_agree_with_the_causal_formula() -> Result<()> {
    let _seed = seeded(0);
    let t = |sizes: [i64; 4]| Tensor::randn(sizes);
    let (q, k, v) = (t([2, 2, 3, 4])?, t([2, 2, 3, 4])?, t([2, 2, 3, 5])?);
    let causal = scaled_dot_product_attention([&q, &k, &v], None, 0.0, true)?;
    let mask = Tensor::full([3, 3], true)?.tril(0)?;
    let masked = scaled_dot_product_attention([&q, &k, &v], Some(&mask), 0.0, false)?;
    let numbers =
        Tensor::zeros([3, 3])?.masked_fill(&mask.logical_not()?, f64::NEG_INFINITY.into())?;
    let added = scaled_dot_product_attention([&q, &k, &v], Some(&numbers), 0.0, false)?;
    for other in [masked, added] {
        assert!(causal.allclose(&other, 1e-5, 1e-6, false)?);
    }
    let nothing = Tensor::full([3, 3], false)?;
    let zeros = scaled_dot_product_attention([&q, &k, &v], Some(&nothing), 0.0, false)?;
    assert!(zeros.eq(&Tensor::zeros(())?)?.all()?.is_nonzero()?);
    assert!(scaled_dot_product_attention([&q, &k, &v], Some(&mask), 0.0, true).is_err());
    Ok(())
}

#[test]
fn dropout_drops_what_pytorch_drops() -> Result<()> {
    check_on("dropout", || Dropout::new(0.3), &[4, 5])?;
    check_on("feature dropout", || FeatureDropout::new(0.5), &[2, 6, 3])?;
    assert!(Dropout::new(1.5).is_err());
    Ok(())
}

#[test]
fn initial_values_are_those_of_pytorch() -> Result<()> {
    let rows = recorded("init");
    type Fill = fn(&Tensor) -> Result<()>;
    let functions: [(&str, Fill, f64); 5] = [
        ("xavier_uniform", |t| init::xavier_uniform_(t, 1.5, None), 0.0),
        ("xavier_normal", |t| init::xavier_normal_(t, 1.0, None), 0.0),
        (
            "kaiming_uniform",
            |t| init::kaiming_uniform_(t, init::Fan::In, init::Nonlinearity::ReLU, None),
            0.0,
        ),
        (
            "kaiming_normal",
            |t| init::kaiming_normal_(t, init::Fan::Out, init::Nonlinearity::LeakyReLU(0.2), None),
            0.0,
        ),
        ("orthogonal", |t| init::orthogonal_(t, 2.0, None), 1e-5),
    ];
    for (name, fill, tolerance) in functions {
        for shape in [&[4, 6][..], &[5, 2, 3]] {
            let _seed = seeded(0);
            let t = Tensor::zeros(shape)?;
            fill(&t)?;
            let entry = format!("{name} {}", shape.len());
            compare(&entry, &t, &rows[entry.as_str()], tolerance)?;
        }
    }
    Ok(())
}

#[test]
fn a_generator_in_the_options_stands_for_the_default_one() -> Result<()> {
    let _seed = seeded(9);
    let before = pullback::default_generator().state();
    let generator = pullback::Generator::new(0);
    let tensors = Tensor::options().generator(&generator);
    let layer = Linear::with(5, 3, &LinearOptions { tensors, ..Default::default() })?;
    compare("weight", &layer.weight, &recorded("linear")["weight"], 0.0)?;
    assert_eq!(pullback::default_generator().state(), before);
    Ok(())
}
