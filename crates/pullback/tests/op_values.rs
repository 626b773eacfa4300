//! Forward values of ops whose formula is more than one kernel, recorded from PyTorch 2 in float64.
//!
//! Derivatives are checked against differences in `properties`; that would not notice a wrong formula whose
//! derivative fits it.

use pullback::{DType, Result, Scalar, Tensor};

fn matrix(data: [f64; 6]) -> Tensor {
    Tensor::from_slice(&data, &[2, 3]).unwrap()
}
fn x() -> Tensor {
    matrix([0.5, -1.25, 2.0, 1.5, 0.25, -0.75])
}
fn z() -> Tensor {
    matrix([1.0, 0.5, -0.5, 0.25, 2.0, 1.0])
}
fn p() -> Tensor {
    matrix([0.2, 0.5, 0.3, 0.1, 0.6, 0.3])
}
fn w() -> Tensor {
    Tensor::from_slice(&[0.5, 2.0, 1.5], &[3]).unwrap()
}
/// `x` and `z` side by side.
fn wide() -> Tensor {
    let data = [0.5, -1.25, 2.0, 1.0, 0.5, -0.5, 1.5, 0.25, -0.75, 0.25, 2.0, 1.0];
    Tensor::from_slice(&data, &[2, 6]).unwrap()
}

#[track_caller]
fn check(got: Result<Tensor>, expected: &[f64]) {
    let got = got.unwrap().to_vec::<f64>().unwrap();
    assert_eq!(got.len(), expected.len(), "{got:?}");
    for (g, e) in got.iter().zip(expected) {
        assert!((g - e).abs() <= 1e-11 * (1.0 + e.abs()), "got {got:?}, expected {expected:?}");
    }
}

#[test]
fn cross_entropy_has_the_recorded_values() {
    let y = Tensor::from_slice(&[2_i64, 0], &[2]).unwrap();
    let loss = |weight: Option<&Tensor>, ignore: i64, smoothing: f64| {
        x().cross_entropy_loss(&y, weight, 1, ignore, smoothing)
    };
    check(loss(None, -100, 0.0), &[0.281647296255]);
    check(loss(Some(&w()), -100, 0.0), &[0.257134639678]);
    check(loss(None, -100, 0.1), &[0.419147296255]);
    check(loss(Some(&w()), -100, 0.1), &[0.487724148544]);
    check(loss(None, 0, 0.2), &[0.549288649769]);
    check(x().cross_entropy_loss(&p(), Some(&w()), 1, -100, 0.1), &[3.332146352244]);
}

#[test]
fn losses_of_numbers_have_the_recorded_values() {
    check(p().binary_cross_entropy(&x().sigmoid().unwrap(), None, 1), &[1.016797364451]);
    let weighted = x().binary_cross_entropy_with_logits(&p(), Some(&w()), Some(&w()), 1);
    check(weighted, &[1.662558773695]);
    check(x().huber_loss(&z(), 1, 0.7), &[0.866666666667]);
    check(x().smooth_l1_loss(&z(), 1, 0.7), &[1.238095238095]);
    check(x().kl_div(&p(), 2), &[-2.077598738921]);
}

#[test]
fn norms_have_the_recorded_values() {
    let [layer, ..] = x().native_layer_norm(&[3], Some(&w()), Some(&w()), 1e-5).unwrap();
    let expected = [
        0.531372701327,
        -0.509816106123,
        3.288243975613,
        1.133746482165,
        1.818929576524,
        -0.26543662889,
    ];
    check(Ok(layer), &expected);
    let expected = [
        0.179605302027,
        -1.796053020268,
        2.155263624321,
        0.766130877683,
        0.510753918455,
        -1.149196316524,
    ];
    check(x().rms_norm(&[3], Some(&w()), None), &expected);
    let expected = [
        0.062745402653,
        -1.254908053062,
        1.192162650409,
        1.069031223051,
        0.267257805763,
        -1.336289028814,
        1.267492964331,
        -0.090535211738,
        -1.176957752593,
        -1.162465077022,
        1.278711584724,
        -0.116246507702,
    ];
    let [group, ..] = wide().native_group_norm(None, None, 2, 6, 1, 2, 1e-5).unwrap();
    check(Ok(group), &expected);
}

#[test]
fn batch_norm_moves_the_running_statistics() {
    let (mean, var) = (
        Tensor::from_slice(&[0.0; 3], &[3]).unwrap(),
        Tensor::from_slice(&[1.0; 3], &[3]).unwrap(),
    );
    let (weight, bias) = (w(), w());
    let [out, ..] = x()
        .native_batch_norm(Some(&weight), Some(&bias), Some(&mean), Some(&var), true, 0.1, 1e-5)
        .unwrap();
    let expected = [
        9.999_700_010_0e-6,
        1.777_754_074_450e-5,
        2.999_996_033_073_588,
        0.999_990_000_299_99,
        3.999_982_222_459_256,
        3.966_926_412_357e-6,
    ];
    check(Ok(out), &expected);
    check(Ok(mean), &[0.1, -0.05, 0.0625]);
    check(Ok(var), &[0.95, 1.0125, 1.278125]);
}

#[test]
fn activations_have_the_recorded_values() {
    let expected = [
        0.345731230637,
        -0.132062217084,
        1.954499736104,
        1.399789198097,
        0.149676581421,
        -0.169970514283,
    ];
    check(x().gelu(), &expected);
    let expected = [
        0.345714009825,
        -0.13228579703,
        1.954597694088,
        1.39957157698,
        0.149675350702,
        -0.170039444834,
    ];
    check(x().gelu_with("tanh"), &expected);
    let expected = [
        0.375245211305,
        -0.308413961142,
        1.943958959534,
        1.403378266396,
        0.169572409664,
        -0.276494714505,
    ];
    check(x().mish(), &expected);
    check(x().celu(Scalar::Float(1.5)), &[0.5, -0.848102687239, 2.0, 1.5, 0.25, -0.590204010431]);
    let expected = [
        0.525350493678,
        -1.254395446338,
        2.101401974711,
        1.576051481033,
        0.262675246839,
        -0.927632015835,
    ];
    check(x().selu(), &expected);
    let expected = [0.656630843759, 0.039444867146, 2.0, 1.5, 0.48703849209, 0.100706638991];
    check(x().softplus(Scalar::Int(2), Scalar::Int(1)), &expected);
    let expected = [
        -0.47407698418,
        -1.501929081345,
        -0.126928011043,
        -0.201413277983,
        -0.575939419879,
        -1.136871006115,
    ];
    check(x().log_sigmoid(), &expected);
    let expected = [
        0.365529289315,
        -0.778074164002,
        0.755081337596,
        0.843264751329,
        0.220199269494,
        -0.548293933973,
    ];
    check(wide().glu(-1), &expected);
    check(x().prelu(&w()), &[0.5, -2.5, 2.0, 1.5, 0.25, -1.125]);
}

#[test]
fn reductions_and_scans_have_the_recorded_values() {
    let expected = [
        0.26894142137,
        0.182425523806,
        0.939913349826,
        0.73105857863,
        0.817574476194,
        0.060086650174,
    ];
    check(x().softmax(0, None), &expected);
    check(x().logsumexp(&[1], false), &[2.232621983102, 1.830672609407]);
    check(x().var_dim(Some(&[0]), true, false), &[0.5, 1.125, 3.78125]);
    check(
        x().linalg_vector_norm(Scalar::Int(3), Some(&[1]), false),
        &[2.160030649428, 1.562199942382],
    );
    let expected = [0.5, 0.660224150438, 2.232621983102, 1.5, 1.751929081345, 1.830672609407];
    check(x().logcumsumexp(1), &expected);
    check(x().cumprod(0), &[0.5, -1.25, 2.0, 0.75, -0.3125, -1.5]);
    let gap = Tensor::from_slice(&[1.0, f64::NAN, 3.0], &[3]).unwrap();
    check(gap.nanmean(None, false), &[2.0]);
}

#[test]
fn remainders_and_mixtures_have_the_recorded_values() {
    check(x().remainder(&z()), &[0.5, 0.25, 0.0, 0.0, 0.25, 0.25]);
    check(x().fmod(&z()), &[0.5, -0.25, 0.0, 0.0, 0.25, -0.75]);
    check(x().div_mode(&z(), Some("floor")), &[0.0, -3.0, -4.0, 6.0, 0.0, -1.0]);
    check(
        x().lerp_scalar(&z(), Scalar::Float(0.25)),
        &[0.625, -0.8125, 1.375, 1.1875, 0.6875, -0.3125],
    );
    let expected = [3.0, -0.75, 1.166666666667, 2.75, 1.916666666667, 0.916666666667];
    check(x().addcdiv_with(&z(), &p(), Scalar::Float(0.5)), &expected);
    let expected = [
        1.47407698418,
        0.660224150438,
        2.078889734293,
        1.751929081345,
        2.160224150438,
        1.160224150438,
    ];
    check(x().logaddexp(&z()), &expected);
    check(x().round_decimals(1), &[0.5, -1.2, 2.0, 1.5, 0.2, -0.8]);
}

#[test]
fn dtypes_follow_pytorch_s_rules() -> Result<()> {
    let i = Tensor::from_slice(&[3_i64, -2], &[2])?;
    let b = i.gt(&Tensor::wrapped(0)?)?;
    let f = Tensor::from_slice(&[1.5_f32, 2.0], &[2])?;
    assert_eq!(i.div(&i)?.dtype(), DType::F32);
    assert_eq!(i.floor_divide(&i)?.dtype(), DType::I64);
    assert_eq!(i.exp()?.dtype(), DType::F32);
    assert_eq!(b.square()?.dtype(), DType::I64);
    assert_eq!(b.sum()?.dtype(), DType::I64);
    assert_eq!(b.cumsum(0)?.dtype(), DType::I64);
    assert_eq!(b.max()?.dtype(), DType::Bool);
    assert_eq!(b.clamp(Some(Scalar::Int(0)), None)?.dtype(), DType::I64);
    assert_eq!(i.clamp(Some(Scalar::Float(0.5)), None)?.dtype(), DType::F32);
    assert_eq!(f.mul(&Tensor::wrapped(2.0)?)?.dtype(), DType::F32);
    assert_eq!(b.where_self(&f, &i)?.dtype(), DType::F32);
    assert_eq!(i.masked_fill(&b, Scalar::Float(1.5))?.to_vec::<i64>()?, [1, -2]);
    assert_eq!(f.pow_scalar(Scalar::Float(2.0))?.dtype(), DType::F32);
    assert_eq!(i.logsumexp(&[0], false)?.dtype(), DType::F32);
    Ok(())
}
