"""Settings of ``torch.compile``: kept and given back; nothing is compiled that could heed them.

Those that programs set most are there with PyTorch's defaults; a setting that is not is an
AttributeError until it is set.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

accumulated_cache_size_limit = 256
accumulated_recompile_limit = 256
allow_unspec_int_on_nn_module = False
assume_static_by_default = True
automatic_dynamic_shapes = True
cache_size_limit = 8
capture_dynamic_output_shape_ops = False
capture_scalar_outputs = False
compiled_autograd = False
disable = False
dynamic_shapes = True
guard_nn_modules = True
inline_inbuilt_nn_modules = True
optimize_ddp = True
recompile_limit = 8
skip_nnmodule_hook_guards = True
specialize_int = False
suppress_errors = False
verbose = False


@contextlib.contextmanager
def patch(
    changes: dict[str, Any] | str | None = None, value: Any = None, **more: Any
) -> Iterator[None]:
    """Gives settings other values until the context is left.

    Args:
        changes: values by name, or one name.
        value: the value for one name.
        more: values by name.

    Raises:
        AttributeError: for a setting that is not there.
    """
    wanted = {changes: value} if isinstance(changes, str) else dict(changes or {})
    wanted.update(more)
    space = globals()
    for name in wanted:
        if name not in space:
            raise AttributeError(f"torch._dynamo.config.{name} does not exist")
    before = {name: space[name] for name in wanted}
    space.update(wanted)
    try:
        yield
    finally:
        space.update(before)
