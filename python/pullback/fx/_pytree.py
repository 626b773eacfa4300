"""Containers by structures that are given, under the name of PyTorch's private module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..utils._pytree import LeafSpec, TreeSpec

__all__ = ["register_pytree_flatten_spec", "tree_flatten_spec"]

SUPPORTED_NODES: dict[type, Callable[[Any, TreeSpec], list[Any]]] = {
    dict: lambda tree, spec: [tree[key] for key in spec.context],
    list: lambda tree, spec: [tree[place] for place in range(len(spec.children_specs))],
    tuple: lambda tree, spec: [tree[place] for place in range(len(spec.children_specs))],
}


def register_pytree_flatten_spec(
    cls: type,
    flatten_fn_spec: Callable[[Any, TreeSpec], list[Any]],
    flatten_fn_exact_match_spec: Any = None,
) -> None:
    """Says how a container of a class is taken apart by a structure that is given."""
    SUPPORTED_NODES[cls] = flatten_fn_spec


def tree_flatten_spec(pytree: Any, spec: TreeSpec) -> list[Any]:
    """The leaves of a tree, in the places that a structure has them.

    Raises:
        RuntimeError: for a container whose class was not registered.
    """
    if isinstance(spec, LeafSpec):
        return [pytree]
    if spec.type not in SUPPORTED_NODES:
        raise RuntimeError(
            f"{spec.type} does not have a flatten_fn_spec associated with it. Please register one "
            "with torch.fx._pytree.register_pytree_flatten_spec."
        )
    children = SUPPORTED_NODES[spec.type](pytree, spec)
    return [
        leaf
        for child, child_spec in zip(children, spec.children_specs, strict=True)
        for leaf in tree_flatten_spec(child, child_spec)
    ]
