"""``functionalize``: a function as one without in-place ops, seen from outside."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _C
from ..utils._pytree import tree_leaves, tree_map


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """A function that does what ``func`` does.

    PyTorch runs ``func`` without in-place ops, which matters to those who trace it; inputs that
    ``func`` changes are changed in the end. Nothing traces functions here, and in-place ops are
    differentiated and batched as they are: ``func`` runs as it is.

    Args:
        func: takes and returns trees of tensors and other things.
        remove: ``"mutations"``, or ``"mutations_and_views"``, with which outputs that share memory
            with an input without being it are copied.

    Raises:
        RuntimeError: for another ``remove``.

    Example:
        >>> import pullback as torch
        >>> torch.func.functionalize(lambda x: x.clone().add_(1))(torch.zeros(2))
        tensor([1., 1.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. "
            "Valid options are: remove='mutations' (no in-place ops) and "
            "remove='mutations_and_views' (no views either)."
        )

    @functools.wraps(func)
    def functional(*args: Any, **kwargs: Any) -> Any:
        result = func(*args, **kwargs)
        if remove == "mutations":
            return result
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, _C.TensorBase)]
        memory = {tensor.untyped_storage()._cdata for tensor in given}

        def apart(leaf: Any) -> Any:
            if not isinstance(leaf, _C.TensorBase) or any(leaf is tensor for tensor in given):
                return leaf
            return leaf.clone() if leaf.untyped_storage()._cdata in memory else leaf

        return tree_map(apart, result)

    return functional
