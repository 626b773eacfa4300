"""Neural networks: modules, their parameters, losses, initial values.

``Module`` and the layers are in ``modules/``, functions in ``functional.py``, initial values in
``init.py``. Written in Python on top of native operations; nothing here computes by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _absent, _lazy
from . import common_types, functional, grad, init, modules, parameter, utils
from ._data_parallel import DataParallel
from .modules import *  # noqa: F403
from .modules import __all__ as _modules
from .parameter import (
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)

if TYPE_CHECKING:
    from . import attention as attention
    from . import parallel as parallel

__all__ = [
    "Buffer",
    "DataParallel",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "common_types",
    "factory_kwargs",
    "functional",
    "grad",
    "init",
    "modules",
    "parallel",
    "parameter",
    "utils",
    *_modules,
]


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """What says where and how parameters are made, of a module's keyword arguments.

    Args:
        kwargs: may have ``device``, ``dtype`` and ``memory_format``, and all of these again as a
            dictionary ``factory_kwargs``.

    Raises:
        TypeError: for other names, and for one that is given twice.
    """
    if kwargs is None:
        return {}
    known = ("device", "dtype", "memory_format")
    if not kwargs.keys() <= {*known, "factory_kwargs"}:
        raise TypeError(f"unexpected kwargs {kwargs.keys() - {*known, 'factory_kwargs'}}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for name in known:
        if name in kwargs:
            if name in result:
                raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
            result[name] = kwargs[name]
    return result


_lazy.submodules(globals(), "attention", "parallel")
_absent.announce(globals())
