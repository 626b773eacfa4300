"""``vmap``: a function of one example, made to work on a batch of them.

Within a level the batched inputs look as one example does, and every op computes all of them. What
is checked here are dimensions: which one of each input counts examples, and where it goes in each
output. Invariant: a level that was opened is closed, whatever the function does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from .. import _C, _transform
from ..utils._pytree import TreeSpec, _broadcast_to_and_flatten, tree_flatten, tree_leaves

if TYPE_CHECKING:
    from .._tensor import Tensor

_RANDOMNESS = ("error", "different", "same")


def batched_function(
    func: Callable[..., Any],
    in_dims: Any,
    out_dims: Any,
    randomness: str,
    chunk_size: int | None,
) -> Callable[..., Any]:
    """The function that :func:`pullback.vmap` returns, with its arguments and errors."""
    check_randomness(randomness)
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def batched(*args: Any, **kwargs: Any) -> Any:
        check_out_dims(func, out_dims)
        inputs = Inputs.of(func, in_dims, args)
        run = functools.partial(_run, func, out_dims=out_dims, randomness=randomness, kwargs=kwargs)
        if chunk_size is None or inputs.size <= chunk_size:
            return run(inputs)
        return _by_chunks(func, run, inputs, out_dims, chunk_size, randomness)

    return batched


def check_randomness(randomness: str) -> None:
    """Checks what random ops are to do.

    Raises:
        RuntimeError: for anything but the three words.
    """
    if randomness not in _RANDOMNESS:
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )


def name_of(func: Callable[..., Any]) -> str:
    """The name of a function in errors."""
    if hasattr(func, "__name__"):
        return str(func.__name__)
    if isinstance(func, functools.partial):
        return f"functools.partial({name_of(func.func)}, ...)"
    return repr(func)


class Inputs(NamedTuple):
    """Positional arguments, unwrapped."""

    leaves: list[Any]
    dims: list[int | None]
    """For each leaf the dimension that counts examples."""
    spec: TreeSpec
    size: int
    """How many examples there are."""

    @classmethod
    def of(
        cls, func: Callable[..., Any], in_dims: Any, args: tuple[Any, ...], from_end: bool = True
    ) -> Inputs:
        """Takes arguments apart.

        Args:
            func: the function, for errors.
            in_dims: as for :func:`pullback.vmap`.
            args: the arguments.
            from_end: whether negative dimensions count from the last one.

        Raises:
            ValueError: if ``in_dims`` does not fit them, or nothing says how many examples there
                are.
        """
        call = _Call(func, in_dims)
        if not isinstance(in_dims, (int, tuple)):
            raise ValueError(
                f"{call}: expected `in_dims` to be int or a (potentially nested) tuple matching "
                f"the structure of inputs, got: {type(in_dims)}."
            )
        if not args:
            raise ValueError(
                f"vmap({name_of(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, "
                "or you are trying to vmap over a function with no inputs. The latter is "
                "unsupported."
            )
        leaves, spec = tree_flatten(args)
        dims = _broadcast_to_and_flatten(in_dims, spec)
        if dims is None:
            raise ValueError(
                f"{call}: in_dims is not compatible with the structure of `inputs`. in_dims has "
                f"structure {tree_flatten(in_dims)[1]} but inputs has structure {spec}."
            )
        wrapped = [
            _in_dim(leaf, dim, call, from_end) for leaf, dim in zip(leaves, dims, strict=True)
        ]
        return cls(leaves, wrapped, spec, _batch_size(leaves, wrapped))

    def entered(self, level: int) -> Any:
        """The arguments as one example, in a tuple."""
        return self.spec.unflatten(
            leaf if dim is None else _C._vmap_add(leaf, dim, level)
            for leaf, dim in zip(self.leaves, self.dims, strict=True)
        )

    def chunks(self, length: int) -> list[Inputs]:
        """The arguments of so many examples at a time."""
        found = []
        for start in range(0, self.size, length):
            size = min(length, self.size - start)
            leaves = [
                leaf if dim is None else leaf.narrow(dim, start, size)
                for leaf, dim in zip(self.leaves, self.dims, strict=True)
            ]
            found.append(Inputs(leaves, self.dims, self.spec, size))
        return found


class _Call(NamedTuple):
    """A call of what ``vmap`` gave, as errors show it: most calls need no text."""

    func: Callable[..., Any]
    in_dims: Any

    def __str__(self) -> str:
        return f"vmap({name_of(self.func)}, in_dims={self.in_dims}, ...)(<inputs>)"


def _in_dim(leaf: Any, dim: Any, call: _Call, from_end: bool) -> int | None:
    """The dimension of a leaf, counted from the first; checked."""
    if dim is None:
        return None
    if not isinstance(dim, int):
        raise ValueError(
            f"{call}: Got in_dim={dim} for an input but in_dim must be either an integer dimension "
            "or None."
        )
    if not isinstance(leaf, _C.TensorBase):
        raise ValueError(
            f"{call}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We "
            "cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
        )
    count = leaf.dim()
    lowest = -count if from_end else 0
    if not lowest <= dim < count:
        least = f"-{count}" if from_end else "0"
        raise ValueError(
            f"{call}: Got in_dim={dim} for some input, but that input is a Tensor of "
            f"dimensionality {count} so expected in_dim to satisfy {least} <= in_dim < {count}."
        )
    return dim % count


def _batch_size(leaves: list[Any], dims: list[int | None]) -> int:
    sizes = [leaf.size(dim) for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return int(sizes[0])


def check_out_dims(func: Callable[..., Any], out_dims: Any) -> None:
    """Checks what ``vmap`` is told about outputs before there are any.

    Raises:
        ValueError: for anything but ints and None.
    """
    if isinstance(out_dims, int):
        return
    if not all(dim is None or isinstance(dim, int) for dim in tree_leaves(out_dims)):
        raise ValueError(
            f"vmap({name_of(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or "
            "a python collection of ints representing where in the outputs the vmapped dimension "
            "should appear."
        )


def _run(
    func: Callable[..., Any], inputs: Inputs, *, out_dims: Any, randomness: str, kwargs: Any
) -> Any:
    with _transform.batch(inputs.size, randomness) as level:
        outputs = func(*inputs.entered(level), **kwargs)
        leaves, spec = tree_flatten(outputs)
        dims = _output_dims(func, outputs, spec, out_dims)
        return spec.unflatten(
            _left(func, leaf, dim, level, inputs.size)
            for leaf, dim in zip(leaves, dims, strict=True)
        )


def _output_dims(
    func: Callable[..., Any], outputs: Any, spec: TreeSpec, out_dims: Any
) -> list[int | None]:
    """The entry of ``out_dims`` for each leaf of the outputs."""
    is_single = isinstance(out_dims, tuple) and len(out_dims) == 1
    if is_single and isinstance(outputs, _C.TensorBase):
        out_dims = out_dims[0]
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({name_of(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not "
            "compatible with the structure of `outputs`. out_dims has structure "
            f"{tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    return dims


def _left(func: Callable[..., Any], leaf: Any, dim: int | None, level: int, size: int) -> Any:
    """An output with its batch dimension."""
    name = name_of(func)
    if dim is None:
        if isinstance(leaf, _C.TensorBase) and _C._vmap_level(leaf) == level:
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None"
            )
        return leaf
    if not isinstance(leaf, _C.TensorBase):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(leaf)}. Did you "
            "mean to set out_dims= to None for output?"
        )
    return _C._vmap_remove(cast("Tensor", leaf), level, size, dim)


def _by_chunks(
    func: Callable[..., Any],
    run: Callable[[Inputs], Any],
    inputs: Inputs,
    out_dims: Any,
    length: int,
    randomness: str,
) -> Any:
    """The outputs of all examples, some computed after the others, put together."""
    state = _C.default_generator.get_state() if randomness == "same" else None
    results = []
    for chunk in inputs.chunks(length):
        if state is not None:
            _C.default_generator.set_state(state)
        results.append(run(chunk))
    flat = [tree_flatten(result)[0] for result in results]
    spec = tree_flatten(results[0])[1]
    dims = _output_dims(func, results[0], spec, out_dims)
    cat = _C._VariableFunctions.cat
    # Outputs that are the same for all examples are the same in all chunks.
    return spec.unflatten(
        parts[0] if dim is None else cat(list(parts), dim)
        for parts, dim in zip(zip(*flat, strict=True), dims, strict=True)
    )


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The value behind a tensor within ``vmap``, to print it: all examples at once.

    The examples are counted by the first dimension. For nothing but looking at it: the value has
    no history, and gradients do not flow.

    Args:
        tensor: any tensor; one that is not batched comes back as it is.
        recurse: go down through all levels, instead of one.

    Raises:
        TypeError: for what is no tensor.

    Example:
        >>> import pullback as torch
        >>> def show(x):
        ...     print(torch.func.debug_unwrap(x))
        ...     return x
        >>> _ = torch.vmap(show)(torch.tensor([1, 2]))
        tensor([1, 2])
    """
    if not isinstance(tensor, _C.TensorBase):
        raise TypeError(f"debug_unwrap(): expected a Tensor, got {type(tensor)}")
    while _C._vmap_level(tensor) >= 0:
        tensor = _C._vmap_unwrapped(tensor)
        if not recurse:
            break
    return tensor
