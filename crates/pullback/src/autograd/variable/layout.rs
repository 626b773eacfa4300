//! Comparing the layouts of tensors: a tangent has that of its tensor, the new base of a replay that of the old one.

use crate::Tensor;

/// Whether two tensors of one shape have the same layout in memories of the same size, empty ones too, because their views may
/// show more than they do themselves. (Tensors with `__torch_dispatch__` have no layout.)
pub(in crate::autograd) fn lies_as(a: &Tensor, b: &Tensor) -> bool {
    let (g, h) = (a.geometry(), b.geometry());
    if g.shape != h.shape || a.overrides_ops() || b.overrides_ops() {
        return g.shape == h.shape;
    }
    let steps = g.shape.iter().zip(g.strides.iter().zip(&h.strides));
    capacity_of(a) == capacity_of(b)
        && g.offset == h.offset
        && a.sign_bits() == b.sign_bits()
        && steps.into_iter().all(|(&size, (s, t))| size < 2 || s == t)
}

/// The number of elements that the storage has room for.
pub(in crate::autograd) fn capacity_of(tensor: &Tensor) -> usize {
    tensor.geometry().storage.as_ref().map_or(0, |s| s.nbytes() / tensor.dtype().size())
}
