//! Sparse tensors: their construction, conversions, and the kernels of ops for them.
//!
//! An op names its kernel by the word `sparse`, with the arguments that it takes; `itself` is for ops that know all layouts.
//! Kernels work on `SparseElements`, the coordinates and values of any layout, and return the layout that they were given.
//! Nothing here makes a whole tensor dense unless the op is defined so. `coo` and `compressed` are constructors and accessors,
//! `convert` goes from layout to layout, `coordinates` is the arithmetic of coordinates; the others are kernels by family.

pub(super) mod basic;
pub(super) mod compressed;
pub(super) mod convert;
pub(super) mod coo;
mod coordinates;
mod gradient;
pub(super) mod joined;
pub(super) mod mask;
mod pointwise;
pub(super) mod product;
pub(super) mod reduce;
mod shape;
pub(super) mod triangular;

pub(crate) use basic::{
    alias, blank, blank_beside, clone, convert, copy, filled_like, ones_like, unset, zero,
};
pub(crate) use gradient::{
    embedding_backward, gather_backward, index_select_backward, select_backward, slice_backward,
};
pub(crate) use pointwise::{
    add, divide, multiply, power, recorded_power, recorded_values, subtract, values,
};
pub(crate) use product::{addmm, addmv, bmm, mm, mv};
pub(crate) use reduce::{any, item, norm, recorded_norm, sum, sum_dim};
pub(crate) use shape::{
    cat, expand, index_select, narrow_copy, permute, select, slice, squeeze, squeeze_dim,
    squeeze_dims, stack, swap_own, swapped, transposed, unbind, unsqueeze,
};
pub(crate) use triangular::solve_triangular;

use crate::dispatch::{Call, Kernel, Outputs};
use crate::error::{bail, ensure};
use crate::tensor::{Cpu, Layout, Sparse, shape::list};
use crate::{Result, Tensor};

/// The kernel of ops that know all layouts.
pub(crate) fn itself(cpu: Cpu, call: &Call<'_>) -> Result<Outputs> {
    match call.def.kernels.cpu {
        Kernel::Function(function) => function(cpu, call.args),
        _ => {
            bail!(runtime, "{} has no kernel of its own: this is a bug in pullback", call.def.name)
        }
    }
}

/// Refuses tensors of other layouts than COO with an error that names the op.
fn check_coo(name: &str, tensor: &Tensor) -> Result<()> {
    ensure!(
        tensor.layout() == Layout::SparseCoo,
        runtime,
        "{name} expected sparse coordinate tensor layout but got {}",
        tensor.layout().spelled()
    );
    Ok(())
}

/// Refuses a second argument of another shape.
fn check_same_shape(name: &str, a: &Tensor, b: &Tensor) -> Result<()> {
    ensure!(
        a.shape() == b.shape(),
        runtime,
        "{name}: expected sizes of 'self' and 'other' to match, but {} != {}",
        list(a.shape()),
        list(b.shape())
    );
    Ok(())
}

/// The parts of a tensor that is known to be sparse.
fn parts(tensor: &Tensor) -> Result<std::sync::Arc<Sparse>> {
    let parts = tensor.sparse();
    parts.ok_or_else(|| {
        crate::Error::runtime(format!(
            "expected a sparse tensor but got one of layout {}",
            tensor.layout().spelled()
        ))
    })
}

use super::OpList;

/// The families of this folder.
pub(super) static FAMILIES: &[OpList] = &[
    coo::OPS,
    compressed::OPS,
    convert::OPS,
    coordinates::OPS,
    joined::OPS,
    mask::OPS,
    product::OPS,
    reduce::OPS,
    triangular::OPS,
];
