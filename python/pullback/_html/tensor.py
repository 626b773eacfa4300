"""A tensor for notebooks: what it is, statistics of its elements, a heat map, its numbers.

Elements are read beside autograd, with classes and modes left unasked; of a class that answers ops
itself there are none to read. Whatever cannot be read says why.
"""

from __future__ import annotations

from typing import Any

from .. import _C
from .._sparse import parts_of
from .._tensor import Tensor
from ..autograd.grad_mode import no_grad
from .heat_map import heat_map
from .page import bytes_text, count_text, dtype_text, escape, frame, muted, row, table
from .statistics import summarize, thinned

__all__ = ["tensor_html"]

# The number of elements that statistics read, and of cells of the picture.
MOST_READ = 1 << 22
ROWS, COLUMNS = 24, 48
# Numbers of small tensors are shown at once.
FEW = 12


def tensor_html(tensor: Tensor) -> str:
    """The piece of HTML for a tensor."""
    from ..nn.parameter import is_lazy

    if is_lazy(tensor):
        words = muted("not initialized: its shape is not known yet")
        return frame(f"<b>{escape(type(tensor).__name__)}</b> {words}")
    with _C.DisableTorchFunction():
        parts = [_head(tensor), table(_facts(tensor))]
        try:
            with no_grad(), _C._DisableTorchDispatch():
                parts += _elements(tensor)
        except (RuntimeError, NotImplementedError, TypeError) as error:
            # (Within vmap, each element represents many.)
            reason = str(error).partition("\n")[0]
            parts.append(f"<div>{muted('elements cannot be read here: ' + escape(reason))}</div>")
        few = tensor.layout is _C.strided and tensor.numel() <= FEW
        # (Text looks at every element, to find how many digits are needed.)
        many = tensor.layout is _C.strided and tensor.numel() > MOST_READ
    if many:
        return frame(*parts)
    shown = escape(repr(tensor))
    parts.append(
        f"<details{' open' if few else ''}><summary>numbers</summary>"
        f'<pre style="margin:2px 0;font-size:12px">{shown}</pre></details>'
    )
    return frame(*parts)


def _head(tensor: Tensor) -> str:
    sizes = escape(tuple(tensor.shape))
    words = [f"<b>{escape(type(tensor).__name__)}</b> {sizes}", dtype_text(tensor.dtype)]
    if tensor.layout is not _C.strided:
        words.append(dtype_text(tensor.layout))
    if tensor.device.type != "cpu":
        words.append(escape(tensor.device))
    return f"<div>{' &middot; '.join(words)}</div>"


def _facts(tensor: Tensor) -> list[str]:
    """Memory, layout and what autograd knows."""
    rows = []
    if tensor.layout is _C.strided:
        size = tensor.numel() * tensor.element_size()
        where = " if it had memory" if tensor.is_meta else ""
        text = f"{count_text(tensor.numel(), 'element')}, {bytes_text(size)}{where}"
        if tensor._is_view():
            text += ", a view"
        if not tensor.is_contiguous():
            text += f", strides {escape(tensor.stride())}"
        rows.append(row("memory", text))
    if tensor.requires_grad:
        node = None if tensor.is_leaf else tensor.grad_fn
        text = "leaf that requires grad" if node is None else f"made by {escape(node.name())}"
        if node is None:
            text += ", has a gradient" if tensor.grad is not None else ", no gradient yet"
        rows.append(row("autograd", text))
    return rows


def _elements(tensor: Tensor) -> list[str]:
    """Statistics and picture, or why there are none."""
    if tensor.is_meta:
        return [muted("on the meta device: no elements")]
    if type(tensor).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        return [muted("its class answers ops itself: no elements are read")]
    plain = tensor.detach()
    if plain.layout is not _C.strided:
        return _sparse(plain)
    if not plain.numel():
        return [muted("no elements")]
    read = thinned(plain, MOST_READ)
    rows = [row(name, escape(value)) for name, value in summarize(read).rows]
    if read.numel() < plain.numel():
        rows.append(row("", muted(f"of {read.numel():,} elements, evenly chosen")))
    return [table(rows), *([_picture(plain)] if plain.numel() > 1 else [])]


def _picture(plain: Tensor) -> str:
    """The heat map of the last two dimensions, at the first place of the others."""
    shape = list(plain.shape)
    flat = plain[(0,) * (len(shape) - 2)] if len(shape) > 2 else plain
    if flat.dim() == 1:
        flat = flat.unsqueeze(0)
    rows, columns = flat.shape
    steps = (-(-rows // ROWS), -(-columns // COLUMNS))
    shown = flat[:: steps[0], :: steps[1]]
    title = "elements"
    if len(shape) > 2:
        title += f" [{', '.join(['0'] * (len(shape) - 2))}, :, :]"
    if max(steps) > 1:
        title += f", one of each {steps[0]} x {steps[1]}"
    if shown.is_complex():
        title += ", absolute values"
        shown = shown.to(_C.complex128).abs()
    return f"<div>{muted(title)}</div>" + heat_map(shown.to(_C.float64).tolist(), title)


def _sparse(plain: Tensor) -> list[str]:
    """The stored elements, and where they are in a matrix."""
    _, _, first, second, third = parts_of(plain)
    is_coo = plain.layout is _C.sparse_coo
    values = second if is_coo else third
    size = sum(part.numel() * part.element_size() for part in (first, second, third) if _has(part))
    text = f"{count_text(values.shape[0], 'stored element')}, {bytes_text(size)}"
    if is_coo and not plain.is_coalesced():
        text += ", not coalesced"
    parts = [table([row("memory", text)])]
    if not values.numel():
        return parts
    rows = [row(name, escape(value)) for name, value in summarize(thinned(values, MOST_READ)).rows]
    parts.append(table(rows))
    if is_coo and plain.dim() == 2 and first.shape[0] == 2:
        parts.append(_places(first, list(plain.shape)))
    return parts


def _has(part: Any) -> bool:
    return isinstance(part, _C.TensorBase)


def _places(indices: Tensor, shape: list[int]) -> str:
    """The number of stored elements in each part of a matrix."""
    height, width = min(ROWS, shape[0]), min(COLUMNS, shape[1])
    some = indices[:, :: -(-indices.shape[1] // MOST_READ)]
    down, along = some[0] * height // shape[0], some[1] * width // shape[1]
    counts = _C._VariableFunctions.bincount(down * width + along, minlength=height * width)
    title = "stored elements in each part of the matrix"
    picture = heat_map(counts.view(height, width).to(_C.float64).tolist(), title)
    return f"<div>{muted(title)}</div>{picture}"
