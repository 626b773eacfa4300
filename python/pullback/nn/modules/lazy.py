"""Modules that find out the shapes of their parameters at their first call.

What they are made of is ``UninitializedParameter`` (``nn/parameter.py``). Invariant: a lazy module
has two hooks, one before its first call and one before loading; both are gone, and the module is of
its ordinary class, once its shapes are known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..parameter import is_lazy
from .conversion import no_grad

if TYPE_CHECKING:
    from .module import Module

    _Base = Module
else:
    _Base = object

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin(_Base):
    """Makes a module lazy; stands before the module class among the bases.

    A subclass makes ``UninitializedParameter`` in ``__init__`` and gives them their shapes in
    :meth:`initialize_parameters`, which is called with the arguments of the first call. After that
    the module's class becomes ``cls_to_become``. A module whose shapes come from a checkpoint can
    be saved, loaded, moved and cast before.
    """

    # The class that the module becomes; None if it stays.
    cls_to_become: type[Any] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook: Any = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook: Any = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Writes tensors that have no shape yet as they are: they cannot be detached."""
        transient = self._non_persistent_buffers_set
        stores = (self._parameters, self._buffers)
        members = [item for store in stores for item in store.items()]
        for name, tensor in members:
            if tensor is not None and name not in transient:
                as_it_is = keep_vars or is_lazy(tensor)
                destination[prefix + name] = tensor if as_it_is else tensor.detach()

    def _lazy_load_hook(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Before loading: tensors get the shapes of those that are to be loaded."""
        for store in (self._parameters, self._buffers):
            for name, tensor in store.items():
                given = state_dict.get(prefix + name)
                if tensor is None or given is None or not is_lazy(tensor) or is_lazy(given):
                    continue
                with no_grad():
                    tensor.materialize(given.shape)  # type: ignore[attr-defined]

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Gives parameters their shapes and values, by the arguments of the first call.

        Raises:
            NotImplementedError: a subclass must define it.
        """
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer of this module has no shape yet."""
        stores: tuple[dict[str, Any], ...] = (self._parameters, self._buffers)
        return any(is_lazy(tensor) for store in stores for tensor in store.values())

    def _infer_parameters(
        self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> None:
        """Before the first call: shapes, then the end of laziness."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        for name in ("_initialize_hook", "_load_hook"):
            getattr(module, name).remove()
            delattr(module, name)
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self) -> Any:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`: call the "
            "module once with a batch before"
        )
