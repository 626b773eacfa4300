"""Tensors that have first-class dimensions, and how functions run on them.

The value behind such a tensor has its first-class dimensions first, in the order of ``dims``; those
behind them are positional. A function runs within a level of ``vmap`` for each first-class
dimension of its arguments. Tensors that are left without such dimensions are given as what they
are. Invariant: `_tensor` is a plain tensor, and each of ``dims`` is bound to its size there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ... import _C, _transform
from ...utils._pytree import tree_leaves, tree_map

# Where functions take dimensions by position, the receiver counted; others take `dim=`.
_DIM_AT = {
    **dict.fromkeys(
        (
            "all", "amax", "amin", "any", "argmax", "argmin", "argsort", "count_nonzero",
            "cummax", "cummin", "cumprod", "cumsum", "flip", "gather", "glu", "index_select",
            "log_softmax", "logcumsumexp", "logsumexp", "max", "mean", "median", "min", "mode",
            "nanmean", "nanmedian", "nansum", "prod", "softmax", "softmin", "sort", "std",
            "std_mean", "sum", "unbind", "var", "var_mean",
        ),
        1,
    ),
    **dict.fromkeys(("diff", "kthvalue", "nanquantile", "norm", "quantile", "roll", "topk"), 2),
}  # fmt: skip
_DIM_KEYWORDS = ("dim", "axis", "dims")
_PRODUCTS = ("mul", "__mul__", "__rmul__", "multiply")


class _Tensor:
    """The common members of first-class dimensions and tensors that have them."""

    @property
    def dims(self) -> tuple[Any, ...]:
        """The first-class dimensions."""
        raise NotImplementedError

    @property
    def _tensor(self) -> Any:
        raise NotImplementedError

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Runs a function for every combination of the first-class dimensions."""
        return called(func, tuple(args), kwargs or {})

    @property
    def ndim(self) -> int:
        """How many positional dimensions there are."""
        return int(self._tensor.ndim) - len(self.dims)

    def dim(self) -> int:
        """How many positional dimensions there are."""
        return self.ndim

    @property
    def shape(self) -> Any:
        """The sizes of the positional dimensions."""
        return self._tensor.shape[len(self.dims) :]

    def size(self, dim: int | None = None) -> Any:
        """The sizes of the positional dimensions, or of one of them."""
        if dim is None:
            return self.shape
        if not -self.ndim <= dim < self.ndim:
            raise IndexError(f"Dimension {dim} is out of range of {self.ndim} dimensions")
        return self.shape[dim]

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self._tensor.dtype

    @property
    def device(self) -> Any:
        """The device of the elements."""
        return self._tensor.device

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are computed for it."""
        return bool(self._tensor.requires_grad)

    def order(self, *dims: Any) -> Any:
        """The tensor with first-class dimensions made positional, in front of the others.

        Args:
            dims: dimensions, or negative numbers of positional ones; a sequence of several becomes
                one dimension, a list of dimensions stands for each of them.

        Raises:
            ValueError: for dimensions that the tensor does not have, or that are said twice.
        """
        from ._move import order

        return order(self, dims)

    def index(self, positions: Any, dims: Any) -> Any:
        """The tensor indexed along dimensions: :func:`pullback.functorch.dim.index`."""
        from ._move import index

        return index(self, positions, dims)

    def __getitem__(self, at: Any) -> Any:
        from ._indexing import get

        return get(self, at)

    def __setitem__(self, at: Any, value: Any) -> None:
        from ._indexing import put

        put(self, at, value)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return int(self.shape[0])

    def __iter__(self) -> Any:
        if not self.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(called(_class().unbind, (self, 0), {}))

    def __getattr__(self, name: str) -> Any:
        # (What tensors have, tensors with first-class dimensions have.)
        found = getattr(_class(), name, None)
        if found is None or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if callable(found):

            def method(*args: Any, **kwargs: Any) -> Any:
                return called(found, (self, *args), kwargs)

            method.__name__ = name
            return method
        return _run(lambda tensor: getattr(tensor, name), (self,), {})

    def __repr__(self) -> str:
        sizes = tuple(self._tensor.shape)
        names = [repr(dim) for dim in self.dims] + [str(at) for at in range(self.ndim)]
        shown = f"({', '.join(names)}{',' if len(names) == 1 else ''})"
        return f"{self._tensor!r}\nwith dims={shown} sizes={sizes}"

    __hash__ = object.__hash__


def _operator(name: str) -> Any:
    def method(self: Any, *args: Any) -> Any:
        return called(getattr(_class(), name), (self, *args), {})

    method.__name__ = name
    return method


for _name in (
    "add", "radd", "iadd", "sub", "rsub", "isub", "mul", "rmul", "imul", "truediv", "rtruediv",
    "itruediv", "floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow", "matmul", "rmatmul", "and",
    "rand", "or", "ror", "xor", "rxor", "lshift", "rshift", "neg", "pos", "abs", "invert", "eq",
    "ne", "lt", "le", "gt", "ge", "bool", "int", "float", "complex", "index",
):  # fmt: skip
    setattr(_Tensor, f"__{_name}__", _operator(f"__{_name}__"))


class Tensor(_Tensor):
    """A tensor with first-class dimensions; ``x[i, j]`` makes one.

    Args:
        value: the elements, the first-class dimensions first.
        dims: these dimensions.
        factors: two tensors whose product it is, in place of ``value``, which is then computed only
            if it is asked for: a sum of it is a product of matrices.
    """

    def __init__(
        self, value: Any, dims: Sequence[Any], factors: tuple[Any, Any] | None = None
    ) -> None:
        self._value = value
        self._dims = tuple(dims)
        self._factors = factors

    @property
    def dims(self) -> tuple[Any, ...]:
        """The first-class dimensions."""
        return self._dims

    @property
    def _tensor(self) -> Any:
        if self._value is None and self._factors is not None:
            product = _run(_class().mul, self._factors, {})
            self._value = aligned(product, self._dims)
        return self._value


def _class() -> Any:
    from ... import Tensor as plain

    return plain


def position(dims: Sequence[Any], dim: Any) -> int:
    """Where a dimension is among others; -1 if it is not (they are compared by identity)."""
    return next((at for at, other in enumerate(dims) if other is dim), -1)


def joined(groups: Iterable[Sequence[Any]]) -> list[Any]:
    """All dimensions of several tensors, each once, in the order in which they appear."""
    found: list[Any] = []
    for group in groups:
        found.extend(dim for dim in group if position(found, dim) < 0)
    return found


def made(value: Any, dims: Sequence[Any]) -> Any:
    """A value with these first-class dimensions in front: a plain tensor if there are none."""
    return Tensor(value, dims) if len(dims) else value


def parts(x: Any) -> tuple[Any, tuple[Any, ...]]:
    """The elements of a tensor, and its first-class dimensions, which come first."""
    return (x._tensor, x.dims) if isinstance(x, _Tensor) else (x, ())


def aligned(x: Any, dims: Sequence[Any]) -> Any:
    """The elements of a tensor with these dimensions in front, of one element where it has none."""
    value, own = parts(x)
    order = [position(own, dim) for dim in dims if position(own, dim) >= 0]
    value = value.permute(*order, *range(len(own), value.ndim))
    for at, dim in enumerate(dims):
        if position(own, dim) < 0:
            value = value.unsqueeze(at)
    return value


def called(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function of PyTorch gives for arguments of which some have first-class dimensions."""
    from . import _indexing, _move

    name = getattr(func, "__name__", "")
    if name == "__getitem__":
        return _indexing.get(*args)
    if name == "__setitem__":
        return _indexing.put(*args)
    if name == "expand" and _move.are_dims(args[1:]):
        return _move.expanded(*args)
    if name == "split":
        return _move.split(*args, **kwargs)
    if name == "index":
        return _move.index(*args, **kwargs)
    if name in _PRODUCTS and len(args) == 2 and not kwargs and _is_delayed(*args):
        return Tensor(None, joined(x.dims for x in args), args)
    return _along(func, name, args, kwargs)


def _is_delayed(a: Any, b: Any) -> bool:
    """Whether a product waits for whether it is summed."""
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        return False
    same = a.dtype == b.dtype and (a.dtype.is_floating_point or a.dtype.is_complex)
    # (Beyond that many dimensions the sum could not name them.)
    return same and not a.ndim and not b.ndim and len(joined((a.dims, b.dims))) <= 26


def _along(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs a function; first-class dimensions among its `dim` are made positional first."""
    key: Any = next((k for k in _DIM_KEYWORDS if k in kwargs), None)
    at = _DIM_AT.get(name, -1)
    given = kwargs[key] if key is not None else args[at] if 0 < at < len(args) else None
    named = _named(given)
    if named is None:
        return _run(func, args, kwargs)
    if kwargs.get("keepdim"):
        raise ValueError("cannot preserve first-class dimensions with keepdim=True")
    x = args[0]
    chosen = [dim for dim in named if not isinstance(dim, int)]
    for dim in chosen:
        own = x.dims if isinstance(x, _Tensor) else ()
        if position(own, dim) < 0:
            have = [repr(other) for other in own]
            raise ValueError(f"Tensor with dimensions {have} does not contain {dim!r}")
    if name == "sum" and len(args) + len(kwargs) == 2 and len(chosen) == len(named):
        factors = x._factors if isinstance(x, Tensor) and x._value is None else None
        if factors is not None:
            return _summed(factors, x.dims, chosen)
    numbers = list(range(len(chosen)))
    numbers += [n + len(chosen) if n >= 0 else n for n in named if isinstance(n, int)]
    is_one = not isinstance(given, (tuple, list)) and len(numbers) == 1
    dim = numbers[0] if is_one or (name in _ONE and len(numbers) == 1) else tuple(numbers)
    args = tuple(_in_front(arg, chosen) for arg in args)
    if key is not None:
        kwargs = {**kwargs, key: dim}
    else:
        args = (*args[:at], dim, *args[at + 1 :])
    rank = parts(args[0])[0].ndim - len(parts(args[0])[1])
    return tree_map(lambda out: _bound_again(out, chosen, rank), _run(func, args, kwargs))


# Functions that take one dimension alone.
_ONE = (
    "argmax", "argmin", "argsort", "cummax", "cummin", "cumprod", "cumsum", "gather", "glu",
    "index_select", "kthvalue", "log_softmax", "logcumsumexp", "max", "median", "min", "mode",
    "nanmedian", "prod", "softmax", "softmin", "sort", "topk", "unbind",
)  # fmt: skip


def _named(given: Any) -> list[Any] | None:
    """The dimensions of a `dim`, if there are first-class ones among them."""
    from ._dimension import Dim, DimList

    if isinstance(given, Dim):
        return [given]
    if isinstance(given, DimList):
        return list(given)
    if not isinstance(given, (tuple, list)):
        return None
    flat = [dim for item in given for dim in (item if isinstance(item, DimList) else (item,))]
    return flat if any(isinstance(dim, Dim) for dim in flat) else None


def _in_front(x: Any, dims: Sequence[Any]) -> Any:
    """A tensor with dimensions made positional, if it has them; other things as they are."""
    if isinstance(x, _Tensor) and all(position(x.dims, dim) >= 0 for dim in dims):
        return x.order(*dims)
    return x


def _bound_again(out: Any, dims: Sequence[Any], rank: int) -> Any:
    """A result with its leading positional dimensions bound, if they are still there."""
    if not isinstance(out, (_C.TensorBase, _Tensor)) or out.ndim < rank:
        return out
    return out[tuple(dims)]


def _summed(factors: tuple[Any, Any], dims: Sequence[Any], over: Sequence[Any]) -> Any:
    """The sum of a product along dimensions: a product of matrices, which holds no product."""
    from ... import einsum

    kept = [dim for dim in dims if position(over, dim) < 0]
    operands: list[Any] = []
    for factor in factors:
        operands += [factor._tensor, [position(dims, dim) for dim in factor.dims]]
    return made(einsum(*operands, [position(dims, dim) for dim in kept]), kept)


def _run(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs a function within a level of `vmap` for each first-class dimension of its arguments."""
    given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, _Tensor)]
    dims = joined(tensor.dims for tensor in given)
    with contextlib.ExitStack() as stack:
        levels = [stack.enter_context(_transform.batch(dim.size, "different")) for dim in dims]

        def entered(leaf: Any) -> Any:
            if not isinstance(leaf, _Tensor):
                return leaf
            value, own = leaf._tensor, list(leaf.dims)
            for dim, level in zip(dims, levels, strict=True):
                at = position(own, dim)
                if at >= 0:
                    value = _C._vmap_add(value, at, level)
                    del own[at]
            return value

        def left(leaf: Any) -> Any:
            if not isinstance(leaf, _C.TensorBase):
                return leaf
            kept: list[Any] = []
            value: Any = leaf
            for dim, level in zip(reversed(dims), reversed(levels), strict=True):
                if _C._vmap_level(value) == level:
                    value = _C._vmap_remove(value, level, dim.size, 0)
                    kept.insert(0, dim)
            return made(value, kept)

        args, kwargs = tree_map(entered, (args, kwargs))
        return tree_map(left, func(*args, **kwargs))
