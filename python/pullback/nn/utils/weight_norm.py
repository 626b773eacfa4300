"""Weight norm by hooks: the older form of ``parametrizations.weight_norm``."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

from ..._tensor import Tensor
from ..modules.module import Module
from ..parameter import Parameter, UninitializedParameter
from ._norm import norm_except_dim, normalised

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]

T_module = TypeVar("T_module", bound=Module)


class WeightNorm:
    """The hook before each call that computes ``<name>`` from ``<name>_g`` and ``<name>_v``.

    Args:
        name: the name of the tensor.
        dim: the dimension that lengths are kept for; ``None`` for one length of all.
    """

    name: str
    dim: int

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """``g v / |v|``."""
        g, v = (getattr(module, f"{self.name}_{part}") for part in "gv")
        return normalised(v, g, self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Puts the hook on a module, and the two parameters in place of one.

        Raises:
            RuntimeError: the tensor has one already.
            ValueError: the tensor has no shape yet.
        """
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(
                    f"Cannot register two weight_norm hooks on the same parameter {name}"
                )
        made = WeightNorm(name, dim)
        weight = getattr(module, name)
        if isinstance(weight, UninitializedParameter):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters: call it "
                "once with a batch before"
            )
        del module._parameters[name]
        lengths = norm_except_dim(weight, 2, made.dim).data
        module.register_parameter(f"{name}_g", Parameter(lengths))
        module.register_parameter(f"{name}_v", Parameter(weight.data))
        setattr(module, name, made.compute_weight(module))
        module.register_forward_pre_hook(made)
        return made

    def remove(self, module: Module) -> None:
        """Puts one parameter back in the place of the two."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        for part in "gv":
            del module._parameters[f"{self.name}_{part}"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs: Any) -> None:
        """Computes the tensor anew."""
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: T_module, name: str = "weight", dim: int | None = 0) -> T_module:
    """Makes a parameter ``g v / |v|`` of parameters ``<name>_g``, ``<name>_v``, by a hook.

    :func:`pullback.nn.utils.parametrizations.weight_norm` is the newer form.

    Args:
        module: the module; changed in place.
        name: the name of the parameter.
        dim: the dimension that lengths are kept for; ``None`` for one length of all.

    Returns:
        ``module``.
    """
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of "
        "`torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: T_module, name: str = "weight") -> T_module:
    """Undoes :func:`weight_norm`.

    Raises:
        ValueError: nothing was done.
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
