//! Comparing the layouts of tensors: a tangent has that of its tensor, the new base of a replay that of the old one.

use crate::Tensor;
use crate::tensor::Flag;

/// Whether two tensors of one shape have the same layout in memories of the same size, empty ones too, because their views may
/// show more than they do themselves. (Tensors with `__torch_dispatch__` have no layout. Of two batches the strides of one example
/// count; where the examples begin does not matter to a view, and a batch lies in another way than what is none.)
pub(in crate::autograd) fn lies_as(a: &Tensor, b: &Tensor) -> bool {
    let (g, h) = (a.geometry(), b.geometry());
    let are_batches = a.has_flag(Flag::BATCHED) && b.has_flag(Flag::BATCHED);
    let have_layout = are_batches || !(a.overrides_ops() || b.overrides_ops());
    if g.shape != h.shape || !have_layout || has_class(a) || has_class(b) {
        return g.shape == h.shape;
    }
    let mut steps = g.shape.iter().zip(g.strides.iter().zip(&h.strides));
    (are_batches || capacity_of(a) == capacity_of(b) && g.offset == h.offset)
        && a.sign_bits() == b.sign_bits()
        && steps.all(|(&size, (s, t))| size < 2 || s == t)
}

/// Whether the tensor's class computes its ops.
fn has_class(tensor: &Tensor) -> bool {
    tensor.has_flag(Flag::PYTHON)
}

/// The number of elements that the storage has room for.
pub(in crate::autograd) fn capacity_of(tensor: &Tensor) -> usize {
    tensor.geometry().storage.as_ref().map_or(0, |s| s.nbytes() / tensor.dtype().size())
}
