"""Which algorithms attention may take, and forms of attention beside the usual one.

On a CPU there are two: FlashAttention, which holds no matrix of scores, and the formula for what
that does not do. Attention fails where the contexts here allow neither.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any

from ... import _absent, _lazy
from ..._attention_backends import ALLOWED as _allowed

if TYPE_CHECKING:
    from . import bias as bias
    from . import flex_attention as flex_attention
    from . import varlen as varlen

__all__ = [
    "WARN_FOR_UNFUSED_KERNELS",
    "SDPBackend",
    "activate_flash_attention_impl",
    "current_flash_attention_impl",
    "list_flash_attention_impls",
    "register_flash_attention_impl",
    "restore_flash_attention_impl",
    "sdpa_kernel",
]

# Whether PyTorch says why a fused kernel cannot be used; here nothing is said.
WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(Enum):
    """An algorithm of ``scaled_dot_product_attention``."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __repr__(self) -> str:
        return f"<SDPBackend.{self.name}: {self.value}>"


# By the switch of `backends.cuda`, in the order in which they are listed.
_BACKENDS = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "mem_efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
    "overrideable": SDPBackend.OVERRIDEABLE,
}
_DEFAULT_ORDER = (
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.OVERRIDEABLE,
)
_order: list[SDPBackend] = list(_DEFAULT_ORDER)


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """The algorithms that may be taken.

    Args:
        with_priority: whether the preferred one comes first.
    """
    allowed = [backend for name, backend in _BACKENDS.items() if _allowed[name]]
    return sorted(allowed, key=_order.index) if with_priority else allowed


def _sdpa_kernel(backends: Iterable[SDPBackend], set_priority: bool = False) -> None:
    """Allows these and no others, until it is called again."""
    wanted = list(backends)
    for name, backend in _BACKENDS.items():
        _allowed[name] = backend in wanted
    if set_priority:
        preferred = [backend for backend in wanted if backend in _DEFAULT_ORDER]
        _order[:] = [*preferred, *(b for b in _DEFAULT_ORDER if b not in preferred)]


@contextlib.contextmanager
def sdpa_kernel(
    backends: list[SDPBackend] | SDPBackend, set_priority: bool = False
) -> Iterator[None]:
    """Within it ``scaled_dot_product_attention`` may take these algorithms only.

    Args:
        backends: one or several.
        set_priority: whether the first is preferred.

    Raises:
        AssertionError: what is given is neither.
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, "
            f"got {type(backends).__name__}"
        )
    wanted = [backends] if isinstance(backends, SDPBackend) else list(dict.fromkeys(backends))
    before, order = dict(_allowed), list(_order)
    try:
        _sdpa_kernel(wanted, set_priority)
        yield
    finally:
        _allowed.update(before)
        _order[:] = order


@contextlib.contextmanager
def _sdpa_kernel_variadic(*backends: SDPBackend) -> Iterator[None]:
    with sdpa_kernel(list(backends)):
        yield


_implementations: dict[str, Callable[..., Any] | None] = {"FA3": None, "FA4": None}
_active: list[tuple[str, Any]] = []


def register_flash_attention_impl(impl: str, *, register_fn: Callable[..., Any]) -> None:
    """Registers an implementation of FlashAttention.

    Args:
        impl: its name.
        register_fn: called when it is activated; may give what has a method ``remove``.
    """
    _implementations[impl] = register_fn


def activate_flash_attention_impl(impl: str) -> None:
    """Calls the function of an implementation.

    Raises:
        ValueError: there is none of that name.
        ModuleNotFoundError: it is one of PyTorch's, which are for GPUs.
    """
    if impl not in _implementations:
        raise ValueError(
            f"Unknown flash attention impl '{impl}'. Available implementations: "
            f"{list_flash_attention_impls()}"
        )
    register = _implementations[impl]
    if register is None:
        raise ModuleNotFoundError(f"{impl} is for GPUs and not part of this build")
    restore_flash_attention_impl()
    _active.append((impl, register()))


def list_flash_attention_impls() -> list[str]:
    """The names of implementations."""
    return sorted(_implementations)


def current_flash_attention_impl() -> str | None:
    """The name of the active implementation; None if none is active."""
    return _active[-1][0] if _active else None


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Undoes the last activation."""
    if _active:
        handle = _active.pop()[1]
        remove = getattr(handle, "remove", None)
        if remove is not None:
            remove()


_lazy.submodules(globals(), "bias", "flex_attention", "varlen")
_absent.announce(globals())
