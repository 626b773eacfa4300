//! How the work of an op grows with its input: no op, backward, double backward or forward rule takes work that grows faster
//! than its input and output, unless that is what it computes.
//!
//! Samples are made longer along each of their dimensions, and calls at eight times the length are compared with those at
//! one: they may call no more ops, and take about eight times as long. `PULLBACK_OP=name` restricts a run to one op.

#[allow(dead_code, reason = "made for the property tests, which use all of it")]
#[path = "../registry/mod.rs"]
mod registry;

use pullback::autograd::{self, BackwardOptions, call};
use pullback::dispatch::{OpDef, Value};
use pullback::gradcheck::{Sample, Sampler, op_jvp};
use pullback::prof::{Range, RangeObserver, observe};
use pullback::{DType, Result, Tensor, manual_seed, ops};
use registry::{args, function_of, replace, tensor_slots};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How often a dimension is repeated, and eight times that.
const SHORT: i64 = 128;
const LONG: i64 = 8 * SHORT;
/// Below that, times say nothing; a quadratic loop over that many elements takes longer.
const NOTICED: Duration = Duration::from_millis(8);
/// A linear call takes 8 times as long, with what caches and the pools of memory add; a quadratic one 64 times.
const FASTER: u32 = 32;
/// Samples of more elements, in and out together, are left out: their calls take long, however they grow.
const MOST_ELEMENTS: i64 = 1 << 16;
/// So many more ops may be called for the longer input: by other ways through the same rule.
const MORE_CALLS: usize = 24;

#[derive(Default)]
struct Counter(AtomicUsize);
impl RangeObserver for Counter {
    fn begin(&self, _: &Range<'_>) -> u64 {
        self.0.fetch_add(1, Relaxed);
        0
    }
    fn end(&self, _: u64) {}
}

/// What a call took.
#[derive(Clone, Copy, Debug)]
struct Work {
    calls: usize,
    time: Duration,
    /// Elements that went in and came out.
    elements: i64,
    outputs: usize,
}

/// How a sample is made longer.
#[derive(Clone, Copy, Debug)]
struct Lengthening {
    /// Dimensions of this size are, in each tensor the first one or the last one.
    size: i64,
    is_last: bool,
    /// And numbers of this size, in lists of numbers.
    in_lists: bool,
}

impl Lengthening {
    /// The dimension that is, if there is one.
    fn place(self, sizes: &[i64]) -> Option<usize> {
        let is_meant = |&n: &i64| n == self.size;
        if self.is_last {
            sizes.iter().rposition(is_meant)
        } else {
            sizes.iter().position(is_meant)
        }
    }
    /// Whether another one does the same.
    fn is_known(self, values: &[Value]) -> bool {
        let without = Lengthening { in_lists: false, ..self };
        let first = Lengthening { is_last: false, ..self };
        let mut sizes: Vec<&[i64]> = Vec::new();
        let slots = tensor_slots(values);
        sizes.extend(slots.iter().map(|slot| slot.2.shape()));
        let lists =
            values.iter().filter_map(|v| if let Value::Ints(v) = v { Some(&**v) } else { None });
        let lists: Vec<&[i64]> = lists.collect();
        let is_in_lists = lists.iter().any(|list| without.place(list).is_some());
        sizes.extend(lists.into_iter().filter(|_| self.in_lists));
        self.in_lists && !is_in_lists
            || self.is_last && sizes.iter().all(|of| self.place(of) == first.place(of))
    }
    /// The sample with these dimensions repeated `times` times.
    fn of(self, values: &[Value], times: i64) -> Result<Vec<Value>> {
        let slots = tensor_slots(values);
        let longer = |t: &Tensor| -> Result<Tensor> {
            let Some(place) = self.place(t.shape()) else { return Ok(t.clone()) };
            let mut repeats = vec![1; t.ndim()];
            repeats[place] = times;
            t.detach()?.repeat(&repeats)
        };
        let new = slots.iter().map(|(_, _, t)| longer(t)).collect::<Result<Vec<_>>>()?;
        let mut values = replace(values, &slots, &new);
        for value in values.iter_mut().filter(|_| self.in_lists) {
            if let Value::Ints(list) = value
                && let Some(place) = self.place(list)
            {
                list[place] *= times;
            }
        }
        Ok(values)
    }
}

/// One of the things done with an op, and how many elements and tensors came out.
type Step = fn(&'static OpDef, &[Value]) -> Result<Vec<Tensor>>;

/// Fresh leaves in the place of the inputs.
fn leaves(def: &OpDef, values: &[Value]) -> Result<(Vec<Value>, Vec<Tensor>)> {
    let slots = tensor_slots(values);
    let fresh = |(index, _, t): &(usize, usize, Tensor)| -> Result<Tensor> {
        let own = t.clone_tensor(None)?;
        if t.dtype().is_differentiable() && !def.args[*index].not_differentiable {
            own.requires_grad_(true)?;
        }
        Ok(own)
    };
    let new = slots.iter().map(fresh).collect::<Result<Vec<_>>>()?;
    Ok((replace(values, &slots, &new), new))
}

fn grads(outputs: &[Tensor], inputs: &[Tensor], create_graph: bool) -> Result<Vec<Tensor>> {
    let roots: Vec<&Tensor> = outputs.iter().filter(|t| t.requires_grad()).collect();
    let inputs: Vec<&Tensor> = inputs.iter().filter(|t| t.requires_grad()).collect();
    if roots.is_empty() || inputs.is_empty() {
        return Ok(Vec::new());
    }
    let starts = roots.iter().map(|root| root.ones_like()).collect::<Result<Vec<_>>>()?;
    let starts: Vec<Option<&Tensor>> = starts.iter().map(Some).collect();
    let options =
        BackwardOptions { allow_unused: true, create_graph, ..BackwardOptions::default() };
    Ok(autograd::grad(&roots, &inputs, &starts, options)?.into_iter().flatten().collect())
}

const STEPS: [(&str, Step); 4] = [
    ("forward", |def, values| function_of(def, values)),
    ("backward", |def, values| {
        let (values, inputs) = leaves(def, values)?;
        let outputs = call(def, &args(&values))?;
        grads(outputs.as_slice(), &inputs, false)
    }),
    ("double backward", |def, values| {
        let (values, inputs) = leaves(def, values)?;
        let outputs = call(def, &args(&values))?;
        let first = grads(outputs.as_slice(), &inputs, true)?;
        grads(&first, &inputs, false)
    }),
    ("forward mode", |def, values| {
        let tangent = |v: &Value| match v {
            Value::Tensor(t) if t.dtype().is_differentiable() => t.ones_like().map(Some),
            _ => Ok(None),
        };
        let tangents = values.iter().map(tangent).collect::<Result<Vec<_>>>()?;
        Ok(op_jvp(def, values, &tangents)?.unwrap_or_default().into_iter().flatten().collect())
    }),
];

/// What `step` takes; the shortest time of a few. `None` if it is refused.
fn measure(def: &'static OpDef, values: &[Value], step: Step, rounds: usize) -> Option<Work> {
    let mut best: Option<Work> = None;
    let given: i64 = tensor_slots(values).iter().map(|slot| slot.2.numel()).sum();
    for _ in 0..rounds {
        manual_seed(1);
        let counter = Arc::new(Counter::default());
        let observing = observe(counter.clone());
        let start = Instant::now();
        let outputs = catch_unwind(AssertUnwindSafe(|| step(def, values))).ok()?.ok()?;
        let time = start.elapsed();
        drop(observing);
        let elements = given + outputs.iter().map(Tensor::numel).sum::<i64>();
        let work = Work { calls: counter.0.load(Relaxed), time, elements, outputs: outputs.len() };
        best = Some(best.filter(|b| b.time <= time).unwrap_or(work));
    }
    best
}

/// Whether input and output together grow as the input's length does. What makes more of it, as an outer product, has more
/// to do.
fn is_linear(def: &'static OpDef, values: &[Value], how: Lengthening) -> bool {
    let forward = |times: i64| {
        let values = how.of(values, times).ok()?;
        measure(def, &values, STEPS[0].1, 1)
    };
    let (Some(before), Some(after)) = (forward(4), forward(32)) else { return false };
    // (More tensors are more calls, of whoever uses them.)
    before.outputs == after.outputs
        && (before.elements + 1..=9 * before.elements).contains(&after.elements)
}

/// What is wrong with the growth of one step.
fn growth(def: &'static OpDef, short: &[Value], long: &[Value], step: Step) -> Option<String> {
    let before = measure(def, short, step, 2)?;
    if before.elements > MOST_ELEMENTS {
        return None;
    }
    let after = measure(def, long, step, 1)?;
    let is_whole = !PIECE_BY_PIECE.contains(&def.name);
    if is_whole && after.calls > before.calls + MORE_CALLS && after.outputs <= before.outputs {
        return Some(format!("calls {} ops, and {} for a longer input", before.calls, after.calls));
    }
    let allowed = before.time.max(NOTICED / 16) * FASTER;
    if after.time <= NOTICED || after.time <= allowed {
        return None;
    }
    // Once more and again, for other work on the machine takes time as well.
    for rounds in [2, 5] {
        let (before, after) =
            (measure(def, short, step, rounds)?, measure(def, long, step, rounds)?);
        if after.time <= before.time.max(NOTICED / 16) * FASTER {
            return None;
        }
    }
    Some(format!("takes {:?}, and {:?} for a longer input", before.time, after.time))
}

/// What computes more than its input and output hold: products and decompositions of matrices, windows, all pairs.
const MORE_THAN_LINEAR: &[&str] = &[
    // Products of matrices and of windows with kernels, where both grow; decompositions.
    "_scaled_dot_product_attention_by",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention_for_cpu_backward",
    "scaled_dot_product_attention",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "convolution",
    "linalg_svdvals",
    "_linalg_lstsq",
    "_lu_with_info",
    "linalg_householder_product",
    "linalg_lstsq",
    "linalg_lu_factor",
    "linalg_lu_factor_ex",
    "linalg_pinv",
    "ormqr",
    "pinverse",
    // One dimension after the other: rows of the input times columns of the output are in between.
    "_adaptive_avg_pool3d",
    "_adaptive_avg_pool3d_backward",
    "adaptive_avg_pool3d",
    "adaptive_max_pool3d",
    "_upsample_bicubic2d_aa",
    "_upsample_bicubic2d_aa_backward",
    "_upsample_lanczos2d_aa",
    "_upsample_lanczos2d_aa_backward",
    "_upsample_nearest_exact2d",
    "_upsample_nearest_exact2d_backward",
    "_upsample_nearest_exact3d",
    "_upsample_nearest_exact3d_backward",
    "upsample_bicubic2d",
    "upsample_bicubic2d_backward",
    "upsample_bilinear2d",
    "upsample_bilinear2d_backward",
    "upsample_nearest2d",
    "upsample_nearest2d_backward",
    "upsample_nearest3d",
    "upsample_nearest3d_backward",
    "upsample_trilinear3d",
    "upsample_trilinear3d_backward",
    // As many slices as indices, each as long as the tensor; all pairs of the indices.
    "index_fill",
    "index_put",
];

/// What calls an op for each matrix, block or step, each of which has a part of the input: more calls of less work.
const PIECE_BY_PIECE: &[&str] = &[
    "addbmm",
    "_ctc_loss",
    "_ctc_loss_backward",
    "ctc_loss",
    "_upsample_bilinear2d_aa",
    "gru",
    "lstm",
    "rnn_relu",
    "rnn_tanh",
];

/// Makes a sample longer along each of its sizes (`in_all_ways`, or in the plain one) and notes what grows too fast; gives
/// how many steps were looked at.
fn check_sample(
    def: &'static OpDef,
    sample: &Sample,
    in_all_ways: bool,
    faults: &mut BTreeMap<String, String>,
) -> usize {
    let Ok(values) = sample.values(def) else { return 0 };
    let sizes: BTreeSet<i64> = tensor_slots(&values)
        .iter()
        .flat_map(|slot| slot.2.shape().to_vec())
        .filter(|&n| n > 1)
        .collect();
    let mut checked = 0;
    for size in sizes {
        for (is_last, in_lists) in [(false, false), (false, true), (true, false), (true, true)] {
            let how = Lengthening { size, is_last, in_lists };
            if !in_all_ways && (is_last || in_lists)
                || how.is_known(&values)
                || !is_linear(def, &values, how)
            {
                continue;
            }
            let (Ok(short), Ok(long)) = (how.of(&values, SHORT), how.of(&values, LONG)) else {
                continue;
            };
            for (name, step) in STEPS {
                if let Some(fault) = growth(def, &short, &long, step) {
                    let key = format!("{} {name}", def.full_name());
                    faults.entry(key).or_insert_with(|| format!("{fault}; {how:?} of {sample:?}"));
                }
                checked += 1;
            }
        }
    }
    checked
}

#[test]
fn work_grows_no_faster_than_the_input() {
    // (Threads that wait for each other would be measured instead.)
    pullback::threads::set_num_threads(1);
    let only = std::env::var("PULLBACK_OP").ok();
    let (mut faults, mut checked) = (BTreeMap::new(), 0);
    for def in ops::registry().filter(|d| only.as_deref().is_none_or(|o| o == d.name)) {
        if MORE_THAN_LINEAR.contains(&def.name) && only.is_none() {
            continue;
        }
        let Some(samples) = def.samples else { continue };
        for (nr, sample) in samples(&Sampler::new(DType::F64)).iter().take(8).enumerate() {
            checked += check_sample(def, sample, nr < 3, &mut faults);
        }
    }
    let lines: Vec<String> = faults.iter().map(|(k, v)| format!("- {k}: {v}")).collect();
    assert!(
        lines.is_empty(),
        "{} grow faster than their input:\n{}",
        lines.len(),
        lines.join("\n")
    );
    assert!(checked > 1000 || only.is_some(), "hardly anything was checked: {checked}");
}
