//! How results lie in memory: as PyTorch lays them, and as each op's `meta` says.

use pullback::autograd::call;
use pullback::dispatch::{Traits, Value};
use pullback::gradcheck::{Sample, Sampler};
use pullback::{DType, MemoryFormat, Result, Tensor, ops};

#[path = "../registry/mod.rs"]
#[allow(dead_code, reason = "the property tests use the rest")]
mod registry;

use registry::{args, differs, for_all, function_of, replace, tensor_slots, text};

/// The same elements, the last dimension outermost in memory.
fn column_major(t: &Tensor) -> Result<Tensor> {
    let rank = t.ndim() as i64;
    let reversed: Vec<i64> = (0..rank).rev().collect();
    t.permute(&reversed)?.clone_tensor(Some(MemoryFormat::Contiguous))?.permute(&reversed)
}

/// The same elements, channels closest together where they are those of images.
fn as_images(t: &Tensor) -> Result<Tensor> {
    match t.ndim() {
        4 => t.clone_tensor(Some(MemoryFormat::ChannelsLast)),
        5 => t.clone_tensor(Some(MemoryFormat::ChannelsLast3d)),
        _ => Ok(t.clone()),
    }
}

/// What differs between what `meta` says of a call and what the kernel gives.
fn disagreement(
    def: &'static pullback::dispatch::OpDef,
    values: &[Value],
) -> std::result::Result<(), String> {
    if def.meta.is_none() || def.is(Traits::INPLACE_ONLY) {
        return Ok(()); // Whatever is written to keeps its strides.
    }
    let outputs = match function_of(def, values) {
        // Only what reads memory as it lies may refuse some strides.
        Err(_) if def.is(Traits::VIEW) || reads_memory(def.name) => return Ok(()),
        other => other.map_err(text)?,
    };
    let specs = match def.result_specs(&args(values)) {
        // (Masks, and classes that are to be counted.)
        Err(error) if error.message().contains("depends on the elements of") => return Ok(()),
        other => other.map_err(text)?,
    };
    for (spec, out) in specs.iter().zip(&outputs) {
        let said = spec.empty().map_err(text)?;
        let mut strides = out.shape().iter().zip(said.strides().iter().zip(out.strides()));
        let is_alike = out.numel() < 2 || strides.all(|(&n, (said, is))| n == 1 || said == is);
        if said.shape() != out.shape() || said.dtype() != out.dtype() || !is_alike {
            return Err(format!("{spec:?} against {out:?} with strides {:?}", out.strides()));
        }
    }
    Ok(())
}

/// Ops that are views to their kernels alone.
fn reads_memory(name: &str) -> bool {
    name.ends_with("_copy") || name == "_unsafe_view"
}

/// Ops whose samples say strides, which other layouts of the same tensors do not fit.
fn takes_strides(name: &str) -> bool {
    name.starts_with("as_strided") || name == "slice_inverse"
}

fn agrees_for(property: &str, dtype: DType, lay: fn(&Tensor) -> Result<Tensor>) {
    for_all(property, dtype, |def, sample| {
        if takes_strides(def.name) {
            return Ok(());
        }
        let values = sample.values(def).map_err(text)?;
        if function_of(def, &values).is_err() {
            return Ok(()); // Not every op takes every dtype.
        }
        let slots = tensor_slots(&values);
        let laid =
            slots.iter().map(|(_, _, t)| lay(t)).collect::<Result<Vec<_>>>().map_err(text)?;
        disagreement(def, &replace(&values, &slots, &laid))
    });
}

#[test]
fn meta_agrees_for_columns_first() {
    agrees_for("meta agrees for tensors that lie column by column", DType::F64, column_major);
}

#[test]
fn meta_agrees_for_channels_last() {
    agrees_for("meta agrees for images whose channels lie together", DType::F64, as_images);
}

#[test]
fn meta_agrees_for_other_dtypes() {
    for dtype in [DType::F32, DType::BF16, DType::C64] {
        agrees_for("meta agrees for other dtypes", dtype, |t| Ok(t.clone()));
    }
}

/// Inputs laid out by `lay` give results of these strides, and the same elements as row-major inputs do.
fn lies(name: &str, sample: Sample, lay: fn(&Tensor) -> Result<Tensor>, expected: &[&[i64]]) {
    let def = ops::registry().find(|def| def.full_name() == name).expect("an op of this name");
    let values = sample.values(def).expect("a sample of this op");
    let slots = tensor_slots(&values);
    let laid: Vec<Tensor> = slots.iter().map(|(_, _, t)| lay(t).unwrap()).collect();
    let plain = call(def, &args(&values)).unwrap();
    let got = call(def, &args(&replace(&values, &slots, &laid))).unwrap();
    for (index, (got, strides)) in got.as_slice().iter().zip(expected).enumerate() {
        assert_eq!(got.strides(), *strides, "{name}, output {index}");
        assert_eq!(differs(got, &plain.as_slice()[index], 1e-12), None, "{name}, output {index}");
    }
    assert_eq!(got.as_slice().len(), expected.len(), "{name}");
}

// The strides below were read off PyTorch 2.15.

#[test]
fn images_keep_their_format() {
    let s = Sampler::new(DType::F64);
    let image = || Sample::of(s.distinct(&[2, 3, 4, 5]));
    let batch_norm = image().with("weight", Value::None).with("bias", Value::None);
    let batch_norm = batch_norm.with("running_mean", Value::None).with("running_var", Value::None);
    let batch_norm = batch_norm.with("training", true).with("momentum", 0.1).with("eps", 1e-5);
    lies("native_batch_norm", batch_norm, as_images, &[&[60, 1, 15, 3], &[1], &[1]]);
    let group_norm = image().with("num_groups", 3_i64);
    lies("group_norm", group_norm, as_images, &[&[60, 1, 15, 3]]);
    let channels = Sample::of(s.normal(&[2, 4, 4, 5])).with("upscale_factor", 2_i64);
    lies("pixel_shuffle", channels, as_images, &[&[80, 1, 10, 1]]);
    let pixels = Sample::of(s.normal(&[2, 3, 4, 6])).with("downscale_factor", 2_i64);
    lies("pixel_unshuffle", pixels, as_images, &[&[72, 1, 36, 12]]);
    let pool = image().with("kernel_size", [2]);
    let halved: &[i64] = &[12, 1, 6, 3];
    lies("max_pool2d_with_indices", pool.clone(), as_images, &[halved, halved]);
    lies("avg_pool2d", pool, as_images, &[halved]);
    let adaptive = image().with("output_size", [2, 2]);
    lies("adaptive_avg_pool2d", adaptive, as_images, &[halved]);
    lies("constant_pad_nd", image().with("pad", [1, 1]), as_images, &[&[84, 1, 21, 3]]);
    let around = || image().with("padding", [1, 1, 1, 1]);
    lies("reflection_pad2d", around(), as_images, &[&[126, 1, 21, 3]]);
    lies("replication_pad2d", around(), as_images, &[&[126, 1, 21, 3]]);
    let cropped = image().with("padding", [-1, 1, 1, 1]);
    lies("replication_pad2d", cropped, as_images, &[&[90, 1, 15, 3]]);
    lies("roll", image().with("shifts", [1]).with("dims", [1]), as_images, &[&[60, 1, 15, 3]]);
    lies("roll", image().with("shifts", [1]), as_images, &[&[60, 20, 5, 1]]);
    let stacked: [&[i64]; 5] = [
        &[120, 60, 1, 15, 3],
        &[120, 3, 1, 30, 6],
        &[120, 1, 60, 15, 3],
        &[120, 1, 30, 15, 3],
        &[120, 40, 10, 2, 1],
    ];
    for (dim, strides) in (0_i64..).zip(stacked) {
        let two = vec![s.normal(&[2, 3, 4, 5]), s.normal(&[2, 3, 4, 5])];
        lies("stack", Sample::new([Value::Tensors(two), dim.into()]), as_images, &[strides]);
    }
    let resized = image().with("output_size", [3, 3]).with("align_corners", false);
    lies("_upsample_bilinear2d_aa", resized, as_images, &[&[27, 1, 9, 3]]);
}

#[test]
fn convolutions_take_the_format_of_image_or_weight() {
    let s = Sampler::new(DType::F64);
    let call = || Sample::new([s.normal(&[2, 3, 4, 5]).into(), s.normal(&[6, 3, 2, 2]).into()]);
    lies("conv2d", call(), as_images, &[&[72, 1, 24, 6]]);
    lies("conv2d", call(), |t| Ok(t.clone()), &[&[72, 12, 4, 1]]);
    let of_weight = |t: &Tensor| if t.shape()[0] == 6 { as_images(t) } else { Ok(t.clone()) };
    lies("conv2d", call(), of_weight, &[&[72, 1, 24, 6]]);
    let back = Sample::new([s.normal(&[2, 3, 4, 5]).into(), s.normal(&[3, 6, 2, 2]).into()]);
    lies("conv_transpose2d.input", back, as_images, &[&[180, 1, 36, 6]]);
    let volume =
        || Sample::new([s.normal(&[2, 3, 4, 5, 6]).into(), s.normal(&[6, 3, 2, 2, 2]).into()]);
    lies("conv3d", volume(), as_images, &[&[360, 60, 20, 5, 1]]);
}

#[test]
fn factors_of_matrices_lie_column_by_column() {
    let s = Sampler::new(DType::F64);
    let same = |t: &Tensor| Ok(t.clone());
    let tall = || Sample::of(s.normal(&[2, 5, 3]));
    lies("linalg_svd", tall(), same, &[&[25, 1, 5], &[3, 1], &[9, 1, 3]]);
    lies("linalg_qr", tall(), same, &[&[15, 1, 5], &[9, 1, 3]]);
    lies("linalg_qr", tall().with("mode", "complete"), same, &[&[25, 1, 5], &[15, 1, 5]]);
    lies("linalg_qr", tall().with("mode", "r"), same, &[&[1], &[9, 1, 3]]);
    let eye = || {
        let ones = s.positive(&[2, 3]).mul(&Tensor::wrapped(0).unwrap()).unwrap();
        ones.add(&Tensor::wrapped(1).unwrap()).unwrap().diag_embed(0, -2, -1).unwrap()
    };
    lies("linalg_cholesky_ex", Sample::of(eye()), same, &[&[9, 1, 3], &[1]]);
    lies("linalg_inv_ex", Sample::of(eye()), same, &[&[9, 1, 3], &[1]]);
    lies("linalg_eigh", Sample::of(eye()), same, &[&[3, 1], &[9, 1, 3]]);
    let solve = |b: &[i64]| Sample::new([eye().into(), s.normal(b).into()]);
    lies("linalg_solve_ex", solve(&[2, 3, 4]), same, &[&[12, 1, 3], &[1]]);
    lies("linalg_solve_ex", solve(&[2, 3]), same, &[&[1, 2], &[1]]);
    lies("linalg_solve_ex", solve(&[3, 4]), same, &[&[12, 1, 3], &[1]]);
    let right = solve(&[2, 4, 3]).with("left", false);
    lies("linalg_solve_ex", right, same, &[&[12, 3, 1], &[1]]);
}

#[test]
fn elementwise_results_follow_their_operands() {
    let s = Sampler::new(DType::F64);
    let pair = || Sample::new([s.normal(&[2, 3]).into(), s.normal(&[2, 3]).into()]);
    let columns: &[i64] = &[1, 2];
    let chosen =
        Sample::new([s.bools(&[2, 3]).into(), s.normal(&[2, 3]).into(), s.normal(&[2, 3]).into()]);
    lies("where.self", chosen, column_major, &[columns]);
    lies("frexp.Tensor", Sample::of(s.normal(&[2, 3])), column_major, &[columns, columns]);
    lies("mse_loss", pair().with("reduction", 0_i64), column_major, &[columns]);
    lies("glu", Sample::of(s.normal(&[6, 4])).with("dim", 0_i64), column_major, &[&[1, 3]]);
    let masked = Sample::new([s.normal(&[2, 3]).into(), s.bools(&[2, 3]).into()]);
    lies("masked_fill.Scalar", masked.with("value", 1.0), column_major, &[&[3, 1]]);
    lies("rot90", Sample::of(s.normal(&[2, 3])), column_major, &[&[2, 1]]);
}
