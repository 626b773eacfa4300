"""Spectral norm by hooks: the older form of ``parametrizations.spectral_norm``."""

from __future__ import annotations

from typing import Any, TypeVar

from ... import linalg
from ..._tensor import Tensor
from .. import functional as F
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.conversion import no_grad
from ..modules.module import Module
from ..parameter import Parameter, UninitializedParameter

__all__ = [
    "SpectralNorm",
    "SpectralNormLoadStateDictPreHook",
    "SpectralNormStateDictHook",
    "remove_spectral_norm",
    "spectral_norm",
]

T_module = TypeVar("T_module", bound=Module)


class SpectralNorm:
    """The hook before each call that computes ``<name>`` from ``<name>_orig``.

    The vectors of the power method are the buffers ``<name>_u``, ``<name>_v``.

    Args:
        name: the name of the tensor.
        n_power_iterations: steps of the power method before each call in training.
        dim: the dimension that is the rows of the matrix.
        eps: the least norm that is divided by.

    Raises:
        ValueError: the number of steps is not positive.
    """

    # Version 1 keeps both vectors, which version 0 computed from one.
    _version: int = 1

    name: str
    dim: int
    n_power_iterations: int
    eps: float

    def __init__(
        self,
        name: str = "weight",
        n_power_iterations: int = 1,
        dim: int = 0,
        eps: float = 1e-12,
    ) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """The tensor as a matrix whose rows are its dimension ``dim``."""
        if self.dim != 0:
            others = [d for d in range(weight.dim()) if d != self.dim]
            weight = weight.permute(self.dim, *others)
        return weight.reshape(weight.size(0), -1)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The tensor over the estimate of its greatest singular value.

        Args:
            module: the module.
            do_power_iteration: whether the estimate is improved first, in place.
        """
        weight: Tensor = getattr(module, f"{self.name}_orig")
        u: Tensor = getattr(module, f"{self.name}_u")
        v: Tensor = getattr(module, f"{self.name}_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.t().mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.mv(v), dim=0, eps=self.eps))
                # (Copies: a second call would change what the first one's backward needs.)
                u, v = u.clone(), v.clone()
        return weight / u.dot(matrix.mv(v))

    def remove(self, module: Module) -> None:
        """Puts one parameter back in the place of those that it is computed from."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for part in ("u", "v", "orig"):
            delattr(module, f"{self.name}_{part}")
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        """Computes the tensor anew, in training after steps of the power method."""
        weight = self.compute_weight(module, do_power_iteration=module.training)
        setattr(module, self.name, weight)

    def _solve_v_and_rescale(self, weight_mat: Tensor, u: Tensor, target_sigma: Any) -> Tensor:
        """A ``v`` with ``u = normalize(W v)`` and ``u^T W v = target_sigma``."""
        # The least vector that the matrix maps to u, by the pseudoinverse.
        left, sizes, right = linalg.svd(weight_mat, full_matrices=False)
        least = sizes.max() * max(weight_mat.shape) * 1e-7
        inverse = sizes.reciprocal().masked_fill(sizes <= least, 0.0)
        v = right.mH.mv(inverse * left.mH.mv(u))
        made: Tensor = v * (target_sigma / u.dot(weight_mat.mv(v)))
        return made

    @staticmethod
    def apply(
        module: Module, name: str, n_power_iterations: int, dim: int, eps: float
    ) -> SpectralNorm:
        """Puts the hook and what it needs on a module.

        Raises:
            RuntimeError: the tensor has one already.
            ValueError: there is no such tensor, or it has no shape yet.
        """
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(
                    f"Cannot register two spectral_norm hooks on the same parameter {name}"
                )
        made = SpectralNorm(name, n_power_iterations, dim, eps)
        weight: Any = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if isinstance(weight, UninitializedParameter):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters: call it "
                "once with a batch before"
            )
        with no_grad():
            matrix = made.reshape_weight_to_matrix(weight)
            drawn = [matrix.new_empty(size).normal_(0, 1) for size in matrix.size()]
            u, v = (F.normalize(vector, dim=0, eps=eps) for vector in drawn)
        delattr(module, name)
        module.register_parameter(f"{name}_orig", weight)
        # (It is no buffer, because it has a history. Optimisers and `apply` still find an
        # attribute.)
        setattr(module, name, weight.data)
        module.register_buffer(f"{name}_u", u)
        module.register_buffer(f"{name}_v", v)
        module.register_forward_pre_hook(made)
        module._register_state_dict_hook(SpectralNormStateDictHook(made))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(made))
        return made


class SpectralNormLoadStateDictPreHook:
    """Before loading: computes what state dicts of version 0 lack.

    Args:
        fn: the hook of the tensor.
    """

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Adds ``<name>_v`` and takes the computed tensor away."""
        fn = self.fn
        version = local_metadata.get("spectral_norm", {}).get(f"{fn.name}.version")
        if version is not None and version >= 1:
            return
        key = prefix + fn.name
        parts = [f"{key}_{part}" for part in ("orig", "u", "v")]
        if version is None and all(part in state_dict for part in parts) and key not in state_dict:
            return
        missing = [name for name in (*parts[:2], key) if name not in state_dict]
        if missing:
            if strict:
                missing_keys.extend(name for name in missing if name not in missing_keys)
            return
        with no_grad():
            original, weight = state_dict[parts[0]], state_dict.pop(key)
            sigma = (original / weight).mean()
            matrix = fn.reshape_weight_to_matrix(original)
            state_dict[parts[2]] = fn._solve_v_and_rescale(matrix, state_dict[parts[1]], sigma)


class SpectralNormStateDictHook:
    """After saving: writes the version down.

    Args:
        fn: the hook of the tensor.
    """

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self, module: Module, state_dict: Any, prefix: str, local_metadata: dict[str, Any]
    ) -> None:
        """Adds the version to the metadata.

        Raises:
            RuntimeError: there is one for this tensor.
        """
        versions = local_metadata.setdefault("spectral_norm", {})
        key = f"{self.fn.name}.version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


def spectral_norm(
    module: T_module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> T_module:
    """Makes a parameter one whose greatest singular value is 1, by a hook.

    :func:`pullback.nn.utils.parametrizations.spectral_norm` is the newer form.

    Args:
        module: the module; changed in place.
        name: the name of the parameter.
        n_power_iterations: steps of the power method before each call in training.
        eps: the least norm that is divided by.
        dim: the dimension that is the rows of the matrix; 1 for transposed convolutions, else 0,
            unless given.

    Returns:
        ``module``.
    """
    if dim is None:
        transposed = isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d))
        dim = 1 if transposed else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: T_module, name: str = "weight") -> T_module:
    """Undoes :func:`spectral_norm`.

    Raises:
        ValueError: nothing was done.
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    stores: tuple[tuple[Any, type], ...] = (
        (module._state_dict_hooks, SpectralNormStateDictHook),
        (module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook),
    )
    for hooks, kind in stores:
        for key, hook in list(hooks.items()):
            own = getattr(hook, "hook", hook)
            if isinstance(own, kind) and own.fn.name == name:  # type: ignore[attr-defined]
                del hooks[key]
                break
    return module
