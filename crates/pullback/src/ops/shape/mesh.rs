//! Tensors made to fit each other: grids of coordinates, and shapes in common.
//!
//! Results are views of what is given: nothing is copied.

use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{Sample, Sampler};
use crate::tensor::shape::{broadcast_shapes, list};
use crate::{Dims, Result, Tensor};
use pullback_macros::op;
use smallvec::SmallVec;
use std::sync::atomic::AtomicBool;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&MESHGRID, &MESHGRID_INDEXING, &BROADCAST_TENSORS];

fn grids(tensors: &[Tensor]) -> Result<Vec<Tensor>> {
    ensure!(!tensors.is_empty(), runtime, "meshgrid expects a non-empty TensorList");
    for tensor in tensors {
        ensure!(
            tensor.ndim() <= 1,
            runtime,
            "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {}",
            list(tensor.shape())
        );
        ensure!(
            tensor.dtype() == tensors[0].dtype(),
            runtime,
            "torch.meshgrid expects all tensors to have the same dtype"
        );
    }
    let shape: Dims = tensors.iter().map(Tensor::numel).collect();
    let grid = |(index, tensor): (usize, &Tensor)| {
        let mut own = Dims::from_elem(1, tensors.len());
        own[index] = tensor.numel();
        tensor.view(&own)?.expand(&shape, false)
    };
    tensors.iter().enumerate().map(grid).collect()
}

/// Coordinate grids of vectors: output `i` varies along dimension `i` only. Warns that `indexing` should be said.
#[op("meshgrid(Tensor[] tensors) -> Tensor[]")]
impl Meshgrid {
    fn composite(tensors: &[Tensor]) -> Result<Vec<Tensor>> {
        static GIVEN: AtomicBool = AtomicBool::new(false);
        crate::warning::warn_once(
            &GIVEN,
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
        );
        grids(tensors)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([Value::Tensors(vec![s.normal(&[2]), s.normal(&[3])])])]
    }
}

/// As `meshgrid`; with `indexing` "xy" the first two dimensions are swapped.
#[op("meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]")]
impl MeshgridIndexing {
    fn composite(tensors: &[Tensor], indexing: &str) -> Result<Vec<Tensor>> {
        ensure!(
            matches!(indexing, "ij" | "xy"),
            runtime,
            "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: {indexing}"
        );
        if indexing == "ij" || tensors.len() < 2 {
            return grids(tensors);
        }
        let mut order = tensors.to_vec();
        order.swap(0, 1);
        let mut out = grids(&order)?;
        out.swap(0, 1);
        Ok(out)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([Value::Tensors(vec![s.normal(&[2]), s.normal(&[3])])])
                .with("indexing", "xy"),
        ]
    }
}

/// All tensors expanded to their common shape; those that have it are returned as they are.
#[op("broadcast_tensors(Tensor[] tensors) -> Tensor[]")]
impl BroadcastTensors {
    fn composite(tensors: &[Tensor]) -> Result<Vec<Tensor>> {
        let shapes: SmallVec<[&[i64]; 4]> = tensors.iter().map(Tensor::shape).collect();
        let shape = broadcast_shapes(&shapes)?;
        let expanded = |t: &Tensor| {
            if t.shape() == &shape[..] { Ok(t.clone()) } else { t.expand(&shape, false) }
        };
        tensors.iter().map(expanded).collect()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([Value::Tensors(vec![s.normal(&[2, 1]), s.normal(&[3])])])]
    }
}
