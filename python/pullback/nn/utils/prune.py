"""Pruning: parameters whose elements are zero where a mask says so.

A pruned parameter ``name`` is kept as ``name_orig``; the mask is the buffer ``name_mask``, and a
hook before each call sets ``name`` to their product. A method says which elements go; several on
one parameter are a `PruningContainer`, whose mask is what all of them keep.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from ..._tensor import Tensor
from .._native import VF as _VF
from ..modules.module import Module

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod(ABC):
    """How to choose the elements that become zero.

    A subclass has a ``PRUNING_TYPE`` (``'unstructured'``, ``'structured'`` with an attribute
    ``dim``, or ``'global'``) and :meth:`compute_mask`. An instance is also the hook that
    multiplies by the mask before each call.
    """

    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        """Sets the tensor to the product of the original and the mask."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask: 1 for elements that stay.

        Args:
            t: what says how important elements are.
            default_mask: the mask so far, which the result is to be within.
        """

    def apply_mask(self, module: Module) -> Tensor:
        """The original of the module's tensor times its mask.

        Raises:
            AssertionError: it is not pruned.
        """
        name = getattr(self, "_tensor_name", None)
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask: Tensor = getattr(module, f"{name}_mask")
        original: Tensor = getattr(module, f"{name}_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> BasePruningMethod:
        """Prunes a parameter of a module, on top of what is pruned of it already.

        Args:
            module: the module; changed in place.
            name: the name of the parameter.
            args: what the method is made with.
            importance_scores: by what elements are chosen, of the parameter's shape; the parameter
                itself unless given.
            kwargs: what the method is made with.

        Returns:
            The hook: the method, or the container of all methods on this parameter.
        """
        former = _method_of(module, name)
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        if former is not None:
            method = PruningContainer(*_methods_of(former), method)
        original = getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, "
                f"got {scores.shape} vs {original.shape}"
            )
        if former is None:
            default = _VF.ones_like(original)
        else:
            default = getattr(module, f"{name}_mask").detach().clone()
        # (Before anything is changed: a method may refuse.)
        mask = method.compute_mask(scores, default_mask=default)
        if former is None:
            module.register_parameter(f"{name}_orig", original)
            del module._parameters[name]
        else:
            _take_away(module, former)
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self,
        t: Tensor,
        default_mask: Tensor | None = None,
        importance_scores: Tensor | None = None,
    ) -> Tensor:
        """``t`` with zeros where this method puts them; nothing is registered.

        Args:
            t: a tensor.
            default_mask: the mask so far; ones unless given.
            importance_scores: by what elements are chosen, of its shape; ``t`` unless given.
        """
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError(
                "importance_scores should have the same shape as tensor t, "
                f"got {scores.shape} vs {t.shape}"
            )
        mask = _VF.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Module) -> None:
        """Makes the parameter an ordinary one that keeps its zeros; the mask is forgotten.

        Raises:
            AssertionError: it is not pruned.
        """
        name = getattr(self, "_tensor_name", None)
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original: Any = module._parameters[f"{name}_orig"]
        original.data = weight.data
        del module._parameters[f"{name}_orig"]
        del module._buffers[f"{name}_mask"]
        setattr(module, name, original)


def _method_of(module: Module, name: str) -> BasePruningMethod | None:
    """The hook that prunes a parameter; None if nothing does."""
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return hook
    return None


def _methods_of(method: BasePruningMethod) -> tuple[BasePruningMethod, ...]:
    """The methods of a container, or the method itself."""
    return method._pruning_methods if isinstance(method, PruningContainer) else (method,)


def _take_away(module: Module, method: BasePruningMethod) -> None:
    for key, hook in list(module._forward_pre_hooks.items()):
        if hook is method:
            del module._forward_pre_hooks[key]


class PruningContainer(BasePruningMethod):
    """Methods that prune one parameter one after the other.

    Each sees only what those before it left: single elements, or for structured methods the slices
    that are not zero altogether.

    Args:
        args: methods for the same parameter.
    """

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        methods = args
        if len(args) == 1 and isinstance(args[0], Iterable) and not isinstance(args[0], str):
            methods = tuple(args[0])
        if methods:
            self._tensor_name = methods[0]._tensor_name
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Adds a method.

        Raises:
            TypeError: it is none.
            ValueError: it is for another parameter.
        """
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Prunes with the last method within the elements that ``default_mask`` keeps."""
        method: Any = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype).clone()
        kind = method.PRUNING_TYPE
        if kind == "unstructured":
            where: Any = mask == 1
        elif kind == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(
                    'Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` '
                    "defined."
                )
            dim = method.dim % t.dim()
            others = [d for d in range(t.dim()) if d != dim]
            kept: Any = (mask.sum(others) != 0).nonzero()
            kept = kept.squeeze(1)
            where = (slice(None),) * dim + (kept,)
        elif kind == "global":
            where = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {kind}")
        mask[where] = method.compute_mask(t[where], default_mask=mask[where]).to(mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing, but keeps a mask of ones."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask, unchanged."""
        return default_mask


class _Unstructured(BasePruningMethod):
    """Methods that choose single elements.

    Args:
        amount: how many, or which part of them.
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _order(self, t: Tensor) -> Tensor:
        """The positions of the elements in the order in which they are pruned."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask so far with further zeros."""
        count = _compute_nparams_toprune(self.amount, t.nelement())
        _validate_pruning_amount(count, t.nelement())
        mask = default_mask.clone(memory_format=_contiguous())
        if count:
            mask.view(-1)[self._order(t)[:count]] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes single elements at random.

    Args:
        amount: how many, or which part of them.

    Raises:
        TypeError, ValueError: the amount is neither.
    """

    def _order(self, t: Tensor) -> Tensor:
        return _VF.rand_like(t).view(-1).argsort(descending=True)


class L1Unstructured(_Unstructured):
    """Prunes the elements of the least magnitude.

    Args:
        amount: how many, or which part of them.

    Raises:
        TypeError, ValueError: the amount is neither.
    """

    def _order(self, t: Tensor) -> Tensor:
        return t.abs().reshape(-1).argsort(stable=True)


class _Structured(BasePruningMethod):
    """Methods that choose slices along ``dim``.

    Args:
        amount: how many, or which part of them.
        dim: the dimension.
    """

    PRUNING_TYPE = "structured"

    amount: float
    dim: int

    def _scores(self, t: Tensor) -> Tensor:
        """The importance of each slice."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask so far with zeros for further slices."""
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(count, size)
        if count == 0:
            return default_mask
        gone = self._scores(t).argsort(stable=True)[:count]
        keep = _VF.ones(size, dtype=default_mask.dtype, device=t.device)
        keep[gone] = 0
        shape = [1] * t.dim()
        shape[self.dim] = size
        return keep.view(shape) * default_mask


class RandomStructured(_Structured):
    """Prunes slices at random.

    Args:
        amount: how many, or which part of them.
        dim: the dimension along which they are.

    Raises:
        TypeError, ValueError: the amount is neither.
    """

    def __init__(self, amount: float, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.dim = dim

    def _scores(self, t: Tensor) -> Tensor:
        return _VF.rand(t.shape[self.dim])


class LnStructured(_Structured):
    """Prunes the slices of the least norm.

    Args:
        amount: how many, or which part of them.
        n: the order of the norm, as of ``torch.norm``.
        dim: the dimension along which they are.

    Raises:
        TypeError, ValueError: the amount is neither.
    """

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def _scores(self, t: Tensor) -> Tensor:
        return _compute_norm(t, self.n, self.dim)

    @classmethod
    def apply(  # type: ignore[override]
        cls,
        module: Module,
        name: str,
        amount: float,
        n: Any,
        dim: int,
        importance_scores: Tensor | None = None,
    ) -> BasePruningMethod:
        """As that of the base; with the arguments of this method."""
        return super().apply(
            module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores
        )


class CustomFromMask(BasePruningMethod):
    """Prunes by a mask that is given.

    Args:
        mask: of the parameter's shape, 1 or true for elements that stay.
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Keeps the elements that both masks keep."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"mask shape {self.mask.shape} must match that of the tensor {default_mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def identity(module: Module, name: str) -> Module:
    """Gives a parameter a mask of ones; returns the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prunes single elements at random; returns the module.

    Args:
        module: the module; changed in place.
        name: the name of the parameter.
        amount: how many elements, or which part of them.
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: float, importance_scores: Tensor | None = None
) -> Module:
    """Prunes the elements of the least magnitude; returns the module.

    Args:
        module: the module; changed in place.
        name: the name of the parameter.
        amount: how many elements, or which part of them.
        importance_scores: by what they are chosen; the parameter unless given.
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prunes slices along ``dim`` at random; returns the module.

    Args:
        module: the module; changed in place.
        name: the name of the parameter.
        amount: how many slices, or which part of them.
        dim: the dimension.
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module,
    name: str,
    amount: float,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Module:
    """Prunes the slices along ``dim`` of the least ``n``-norm; returns the module.

    Args:
        module: the module; changed in place.
        name: the name of the parameter.
        amount: how many slices, or which part of them.
        n: the order of the norm.
        dim: the dimension.
        importance_scores: of what the norms are; of the parameter unless given.
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Any,
    pruning_method: Any,
    importance_scores: dict[Any, Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prunes several parameters as if they were one vector.

    Args:
        parameters: pairs of a module and the name of its parameter.
        pruning_method: the class of an unstructured method.
        importance_scores: by such pairs, by what elements are chosen.
        kwargs: what the method is made with.

    Raises:
        TypeError: what is given is no list of pairs, or the method is structured.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    pairs = list(parameters)
    given = {} if importance_scores is None else importance_scores
    if not isinstance(given, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    tensors = [getattr(module, name) for module, name in pairs]
    scores = [given.get(pair, tensor) for pair, tensor in zip(pairs, tensors, strict=True)]
    masks = [
        getattr(module, f"{name}_mask", _VF.ones_like(tensor))
        for (module, name), tensor in zip(pairs, tensors, strict=True)
    ]
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    container.add_pruning_method(method)
    mask = container.compute_mask(_joined(scores), _joined(masks))
    start = 0
    for (module, name), tensor in zip(pairs, tensors, strict=True):
        end = start + tensor.numel()
        custom_from_mask(module, name, mask=mask[start:end].view_as(tensor))
        start = end


def _joined(tensors: list[Tensor]) -> Tensor:
    vector: Tensor = _VF.cat([tensor.reshape(-1) for tensor in tensors])
    return vector


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prunes by a mask; returns the module.

    Args:
        module: the module; changed in place.
        name: the name of the parameter.
        mask: of its shape, 1 or true for elements that stay.
    """
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Module, name: str) -> Module:
    """Makes a pruned parameter an ordinary one that keeps its zeros; returns the module.

    Raises:
        ValueError: it is not pruned.
    """
    method = _method_of(module, name)
    if method is None:
        raise ValueError(
            f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
        )
    method.remove(module)
    _take_away(module, method)
    return module


def is_pruned(module: Module) -> bool:
    """Whether anything of a module or its submodules is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for each in module.modules()
        for hook in each._forward_pre_hooks.values()
    )


def _contiguous() -> Any:
    from ... import contiguous_format

    return contiguous_format


def _validate_pruning_amount_init(amount: Any) -> None:
    whole = isinstance(amount, numbers.Integral)
    if not whole and not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if (whole and amount < 0) or (not whole and not 0.0 <= amount <= 1.0):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
            "integer"
        )


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    if isinstance(amount, numbers.Integral) and int(amount) > tensor_size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to "
            f"prune={tensor_size}"
        )


def _validate_structured_pruning(t: Tensor) -> None:
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of "
            f"shape {t.shape} with {t.dim()} dims"
        )


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> int:
    if isinstance(amount, numbers.Integral):
        return int(amount)
    result: int = round(amount * tensor_size)
    return result


def _validate_pruning_dim(t: Tensor, dim: int) -> None:
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_norm(t: Tensor, n: Any, dim: int) -> Tensor:
    """The norms of the slices along ``dim``."""
    others = [d for d in range(t.dim()) if d != dim % t.dim()]
    return t.norm(n, others)
