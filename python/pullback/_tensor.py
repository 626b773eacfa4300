"""The Tensor class: what tensors have in Python that is not made natively.

The methods of ops come from the op registry and stand on ``TensorBase``; here is what takes hooks,
copies, pickles or other Python protocols.
"""

from __future__ import annotations

import copy
import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast, overload

from . import _C, _engine_log, _hooks, _transform
from ._elsewhere import methods as _methods_elsewhere
from ._overridable import make_overridable as _make_overridable
from ._sparse import parts_of

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._hooks import RemovableHandle
    from .autograd.graph import GradientEdge
    from .storage import TypedStorage

__all__ = ["Tensor"]


def _rebuild_from_type_v2(
    func: Callable[..., Tensor], new_type: type[Tensor], args: tuple[Any, ...], state: Any
) -> Tensor:
    """The result of ``func(*args)`` as a tensor of a class, with attributes."""
    tensor = func(*args)
    if type(tensor) is not new_type:
        requires_grad = tensor.requires_grad
        tensor = _C.TensorBase._make_subclass(new_type, tensor.detach(), requires_grad)
    if new_type.__setstate__ is Tensor.__setstate__:
        _set_state(tensor, state)
    elif state is not None:
        tensor.__setstate__(state)
    return tensor


def _rebuild_from_type(
    func: Callable[..., Tensor], kind: type[Tensor], args: tuple[Any, ...], attributes: Any
) -> Tensor:
    """Rebuilds a tensor of the form of older files."""
    return _rebuild_from_type_v2(func, kind, args, attributes)


def _deep_copied(tensor: Tensor, memo: dict[Any, Any]) -> Tensor:
    """A copy over a copy of the storage, which it shares with the copies of views."""
    storage = copy.deepcopy(tensor.untyped_storage(), memo)
    geometry = (tensor.storage_offset(), list(tensor.size()), list(tensor.stride()))
    new = _C._tensor_over(storage, tensor.dtype, *geometry)
    if type(tensor) is not Tensor:
        return _C.TensorBase._make_subclass(type(tensor), new, tensor.requires_grad)
    new.requires_grad = tensor.requires_grad
    return new


# The unresolved bits of a tensor: conjugate or negative.
_BITS = {"conj": "is_conj", "neg": "is_neg"}


def _is_wrapper(tensor: Tensor) -> bool:
    """Whether the class overrides all ops and its own memory is all zero, as a wrapper's is."""
    if type(tensor).__torch_dispatch__ is Tensor.__torch_dispatch__:
        return False
    with _C.DisableTorchFunctionSubclass():
        return not any(tensor.untyped_storage()._bytes())


def _reduced(tensor: Tensor) -> tuple[Any, tuple[Any, ...]]:
    """The function of :mod:`._utils` that makes such a tensor, and its arguments."""
    from . import _utils
    from .storage import _NAMES, _typed

    if tensor.layout is not _C.strided:
        layout, _, first, second, third = parts_of(tensor.detach())
        if layout is _C.sparse_coo:
            return _utils._rebuild_sparse_tensor, (layout, (first, second, tensor.size(), third))
        return _utils._rebuild_sparse_tensor, (layout, (first, second, third, tensor.size()))
    geometry = (tuple(tensor.size()), tensor.stride())
    if tensor.device.type == "meta":
        arguments = (tensor.dtype, *geometry, tensor.requires_grad)
        return _utils._rebuild_meta_tensor_no_storage, arguments
    if _is_wrapper(tensor):
        kind = (type(tensor), tensor.dtype, *geometry, tensor.storage_offset(), tensor.layout)
        return _utils._rebuild_wrapper_subclass, (*kind, tensor.device, tensor.requires_grad)
    bits = {name: True for name, method in _BITS.items() if getattr(tensor, method)()}
    metadata = (bits,) if bits else ()
    # (Hooks are not kept, but have a place in the format.)
    hooks: OrderedDict[str, Any] = OrderedDict()
    rest = (tensor.storage_offset(), *geometry, tensor.requires_grad, hooks)
    storage = tensor.untyped_storage()
    if tensor.dtype not in _NAMES:
        return _utils._rebuild_tensor_v3, (storage, *rest, tensor.dtype, *metadata)
    return _utils._rebuild_tensor_v2, (_typed(storage, tensor.dtype), *rest, *metadata)


def _state(tensor: Tensor) -> Any:
    """The state of a tensor besides its elements: its dictionary and its slots, if any."""
    attributes = dict(tensor.__dict__) or None
    slots = {name: getattr(tensor, name) for name in _slots(type(tensor)) if hasattr(tensor, name)}
    return (attributes, slots) if slots else attributes


@functools.cache
def _slots(cls: type[Tensor]) -> tuple[str, ...]:
    """The names of the slots that the subclasses of ``Tensor`` declare."""
    names: list[str] = []
    for kind in cls.__mro__[: cls.__mro__.index(Tensor)]:
        declared = kind.__dict__.get("__slots__", ())
        for name in [declared] if isinstance(declared, str) else declared:
            if name not in ("__dict__", "__weakref__"):
                is_private = name.startswith("__") and not name.endswith("__")
                names.append(f"_{kind.__name__.lstrip('_')}{name}" if is_private else name)
    return tuple(names)


def _set_state(tensor: Tensor, state: Any) -> None:
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    if attributes:
        tensor.__dict__.update(attributes)
    for name, value in (slots or {}).items():
        setattr(tensor, name, value)


@functools.cache
def _keeps_type() -> frozenset[Any]:
    """The attributes that refer to an existing tensor, of whatever class it is."""
    return frozenset(getattr(Tensor, name).__get__ for name in ("_base", "grad", "_grad"))


def _as_class(result: Any, cls: type[Tensor]) -> Any:
    """The tensors in ``result`` as tensors of ``cls``."""
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)) and any(isinstance(part, Tensor) for part in result):
        return type(result)([_as_class(part, cls) for part in result])
    return result


class Tensor(_C.TensorBase, metaclass=_C._TensorMeta):
    """An n-dimensional array that can remember how it was computed."""

    __array_priority__ = 1000
    # (The class above has them; they are repeated where Python sets them.)
    data: Tensor
    requires_grad: bool

    # --- subclasses ----------------------------------------------------------------------------

    # A subclass that defines its own overrides every op on its tensors, below autograd.
    __torch_dispatch__: ClassVar[Callable[..., Any]] = _C._disabled_torch_dispatch_impl

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Computes a call that has tensors of this class among its arguments.

        The default runs ``func`` and converts its results to the class; a subclass may define its
        own.

        Args:
            func: the function, method or ``__get__`` of the attribute.
            types: the classes, other than ``Tensor`` itself, that override the call.
            args: the arguments given by position.
            kwargs: the arguments given by name.

        Returns:
            The result, or ``NotImplemented`` if a class in ``types`` is no base of this one.
        """
        if not all(issubclass(cls, kind) for kind in types):
            return NotImplemented
        with _C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
            return result if func in _keeps_type() else _as_class(result, cls)

    # --- autograd ------------------------------------------------------------------------------

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge] | None = None,
    ) -> None:
        """Adds the gradient of this tensor with respect to the graph's leaves to their ``.grad``.

        Args:
            gradient: the gradient with respect to this tensor, of its shape; may be left out for
                one real element.
            retain_graph: keep what the graph saved, to run it again; defaults to ``create_graph``.
            create_graph: record the backward itself, for higher derivatives.
            inputs: accumulate into these only.

        Raises:
            RuntimeError: for a graph that was freed, a gradient of another shape, or no graph, and
                within function transforms.
        """
        if _transform._OPEN:
            _transform.refuse_backward()
        keep_graph = create_graph if retain_graph is None else retain_graph
        run = _engine_log.run if _engine_log.is_wanted() else _C._engine_run_backward
        run(self, gradient, keep_graph, create_graph, inputs, True, True)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Lets ``hook(grad)`` see, and replace, the gradient of this tensor.

        Raises:
            RuntimeError: if the tensor does not require grad.
        """
        return _hooks.add(self._hook_dict(), hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Lets ``hook(leaf)`` run after this leaf's ``.grad`` was updated.

        Raises:
            RuntimeError: unless it is a leaf that requires grad.
        """
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self.grad_fn is not None:
            raise RuntimeError(
                "post accumulate grad hooks cannot be registered on non-leaf tensors"
            )
        return _hooks.add(self._accumulate_hook_dict(), hook)

    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor: ...
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
    @overload
    def nonzero(self, *, as_tuple: bool) -> Tensor | tuple[Tensor, ...]: ...
    def nonzero(self, *, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
        """The indices of the elements that are not zero: :func:`pullback.nonzero`."""
        if as_tuple:
            return tuple(_C._VariableFunctions.nonzero_numpy(self))
        return _C.TensorBase.nonzero(self)

    def unique(
        self,
        sorted: bool = True,
        return_inverse: bool = False,
        return_counts: bool = False,
        dim: int | None = None,
    ) -> Tensor | tuple[Tensor, ...]:
        """The distinct elements: :func:`pullback.unique`."""
        from ._function import unique

        return unique(self, sorted, return_inverse, return_counts, dim)

    def resize(self, *sizes: Any) -> Tensor:
        """The elements in another shape. Deprecated: use ``reshape``.

        Raises:
            TypeError: if the sizes are no integers.
            RuntimeError: if the shape has another number of elements.
        """
        from .autograd._functions import Resize

        warnings.warn("non-inplace resize is deprecated", stacklevel=2)
        shape = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)) else sizes
        if not all(isinstance(size, int) for size in shape):
            raise TypeError("resize(): argument 'size' must be tuple of ints")
        return cast("Tensor", Resize.apply(self, tuple(shape)))

    def unique_consecutive(  # type: ignore[override]
        self, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Tensor | tuple[Tensor, ...]:
        """Without what equals its predecessor: :func:`pullback.unique_consecutive`."""
        from ._function import unique_consecutive

        return unique_consecutive(self, return_inverse, return_counts, dim)

    def lu(self, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
        """The LU factorisation in compact form: :func:`pullback.lu`."""
        from ._lowrank import lu

        return lu(self, pivot, get_infos)

    def eig(self, eigenvectors: bool = False) -> Any:
        """Removed: :func:`pullback.linalg.eig`."""
        from ._linalg_utils import eig

        return eig(self, eigenvectors)

    def symeig(self, eigenvectors: bool = False) -> Any:
        """Removed: :func:`pullback.linalg.eigh`."""
        from ._linalg_utils import symeig

        return symeig(self, eigenvectors)

    def lstsq(self, other: Tensor) -> Any:
        """Removed: :func:`pullback.linalg.lstsq`."""
        from ._linalg_utils import lstsq

        return lstsq(self, other)

    def solve(self, other: Tensor) -> Any:
        """Removed: :func:`pullback.linalg.solve`."""
        from ._linalg_utils import solve

        return solve(self, other)

    def qr(self, some: bool = True) -> Any:
        """Removed: :func:`pullback.linalg.qr`."""
        from ._linalg_utils import qr

        return qr(self, some)

    def cholesky(self, upper: bool = False) -> Any:
        """Removed: :func:`pullback.linalg.cholesky`."""
        from ._linalg_utils import cholesky

        return cholesky(self, upper)

    def apply_(self, callable: Callable[[Any], Any]) -> Self:
        """Writes ``callable(x)`` in the place of each element ``x``, a number of Python. Slow.

        Raises:
            RuntimeError: for a tensor that requires grad.
        """
        from ._element import mapped

        mapped("apply_", callable, self)
        return self

    def map_(self, other: Tensor, callable: Callable[[Any, Any], Any]) -> Self:
        """Writes ``callable(x, y)`` of the elements of both tensors in the place of ``x``. Slow.

        Raises:
            RuntimeError: for tensors that require grad, or of shapes that do not fit.
            TypeError: for a tensor of another dtype.
        """
        from ._element import mapped

        mapped("map_", callable, self, other)
        return self

    def map2_(self, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Self:
        """Writes ``callable(a, b, c)`` of three tensors' elements in the place of ``a``. Slow.

        Raises:
            RuntimeError: for tensors that require grad, or of shapes that do not fit.
            TypeError: for tensors of another dtype.
        """
        from ._element import mapped

        mapped("map2_", callable, self, x, y)
        return self

    def dim_order(
        self, *, ambiguity_check: bool | list[_C.memory_format] = False
    ) -> tuple[int, ...]:
        """The dimensions from the outermost to the innermost one in memory.

        Args:
            ambiguity_check: whether it is an error that several orders would do (dimensions of one
                element); or formats, of which exactly one is to fit then.

        Raises:
            RuntimeError: for such a tensor.
            TypeError: for other checks.
        """
        from ._element import dim_order

        return dim_order(self, ambiguity_check)

    def is_distributed(self) -> bool:
        """Whether parts of the tensor are in other processes: never."""
        return False

    def reinforce(self, reward: Any) -> Any:
        """Was removed from PyTorch.

        Raises:
            RuntimeError: always: use ``torch.distributions`` and ``log_prob``.
        """
        raise RuntimeError(
            "reinforce() was removed.\nUse torch.distributions instead: the loss is "
            "-distribution.log_prob(action) * reward."
        )

    # --- copies --------------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[Any, Any]) -> Self:
        """Copies storage, attributes and ``.grad``; aliasing within one deep copy is kept.

        Raises:
            RuntimeError: for tensors that are no leaves.
        """
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment.  If you were attempting to deepcopy a module, this may "
                "be because of a torch.nn.utils.weight_norm usage, see "
                "https://github.com/pytorch/pytorch/pull/103001"
            )
        if id(self) in memo:
            return cast("Self", memo[id(self)])
        if self.layout is not _C.strided:
            new = self.detach().clone()
            new.requires_grad = self.requires_grad
        else:
            # The copy holds the resolved values.
            is_plain = not self.is_conj() and not self.is_neg()
            new = _deep_copied(self if is_plain else self.detach().clone(), memo)
            new.requires_grad = self.requires_grad
        memo[id(self)] = new
        if self.grad is not None:
            new.grad = copy.deepcopy(self.grad, memo)
        _set_state(new, copy.deepcopy(_state(self), memo))
        return cast("Self", new)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        _hooks.warn_if_has_hooks(self)
        kind = type(self)
        given = getattr(kind, "__getstate__", None)
        # A class with state of its own defines what is kept; CPython's default knows no tensors.
        has_own = given is not None and given is not getattr(object, "__getstate__", None)
        state = given(self) if has_own and given is not None else _state(self)
        func, arguments = _reduced(self)
        if self.requires_grad and self.layout is not _C.strided:
            # (The function that rebuilds a sparse tensor has no argument for it.)
            attributes, slots = state if isinstance(state, tuple) else (state, None)
            state = (attributes, {**(slots or {}), "requires_grad": True})
        if kind is Tensor and not state:
            return func, arguments
        return _rebuild_from_type_v2, (func, kind, arguments, state)

    def __setstate__(self, state: Any) -> None:
        """Takes over attributes, or what PyTorch's oldest files hold.

        These are (storage, offset, size, stride), (requires_grad, _, hooks) and (data, _, hooks,
        requires_grad, _).

        Raises:
            RuntimeError: for tensors that are no leaves.
            ValueError: for anything else.
        """
        if not self.is_leaf:
            raise RuntimeError("__setstate__ can be only called on leaf Tensors")
        if not isinstance(state, tuple) or len(state) == 2:
            _set_state(self, state)
            return
        if len(state) == 4:
            self.set_(*state)
            return
        if len(state) == 5:
            data, _, hooks, requires_grad, _ = state
            self.data = cast("Tensor", data)
        elif len(state) == 3:
            requires_grad, _, hooks = state
        else:
            raise ValueError(f"a tensor's state has 2 to 5 parts, not {len(state)}")
        self.requires_grad = cast("bool", requires_grad)
        for hook in (hooks or {}).values():
            self.register_hook(hook)

    # --- Python protocols ----------------------------------------------------------------------

    def module_load(self, other: Any, assign: bool = False) -> Tensor:
        """What ``load_state_dict`` puts in this tensor's place where it exchanges tensors.

        Args:
            other: what the state dict has.
            assign: whether that is taken as it is; otherwise it is copied into this tensor.

        Raises:
            TypeError: ``other`` is no tensor.
        """
        if not isinstance(other, Tensor) and not hasattr(other, "__torch_function__"):
            raise TypeError(f"expected a tensor to load, got {type(other)}")
        if assign:
            return other.detach()  # type: ignore[no-any-return]
        return self.copy_(other).detach()

    def __iter__(self) -> Iterator[Tensor]:
        if self.dim() == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return self._repr(tensor_contents)

    def _repr_html_(self) -> str:
        """The HTML for notebooks: shape, dtype, statistics and a heat map of the elements."""
        from ._html import tensor_html

        return tensor_html(self)

    def __rdiv__(self, other: Any) -> Tensor:
        """``other / self``, under the name of the operator before Python 3."""
        return self.__rtruediv__(other)

    def __reversed__(self) -> Tensor:
        return self if self.dim() == 0 else self.flip(0)

    def __contains__(self, element: object) -> bool:
        if isinstance(element, (Tensor, int, float, complex, bool)):
            return bool((self == element).any().item())
        raise RuntimeError(
            "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
            f"{type(element)}."
        )

    def __complex__(self) -> complex:
        if self.numel() != 1:
            raise ValueError(
                "only one element tensors can be converted to Python scalars, "
                f"not one of {self.numel()}"
            )
        return complex(self.item())

    def __format__(self, spec: str) -> str:
        if self.dim() == 0 and not self.is_meta and type(self) is Tensor:
            return format(self.item(), spec)
        return object.__format__(self, spec)

    def __dir__(self) -> list[str]:
        return sorted({*dir(type(self)), *self.__dict__})

    # --- other libraries -----------------------------------------------------------------------

    def __array__(self, dtype: Any = None) -> Any:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __array_wrap__(
        self, array: Any, context: Any = None, return_scalar: bool = False
    ) -> Tensor:
        if array.dtype == bool:
            array = array.astype("uint8")
        return _C.from_numpy(array)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
        read_only: bool = False,
    ) -> Any:
        """A DLPack capsule that shares this tensor's memory.

        With ``read_only`` it says that the consumer must not write; a lazy clone stays one.

        Raises:
            BufferError: if the tensor requires grad, or lives elsewhere than asked for; for
                ``read_only`` without a ``max_version`` of 1.0 or more, which has a word for it.
            TypeError: if ``stream`` is no int.
        """
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        if stream is not None and type(stream) is not int:
            raise TypeError("stream must be ``int`` or ``none``")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"cannot export a tensor on cpu to DLPack device {dl_device}")
        versioned = max_version is not None and max_version[0] >= 1
        source = self.clone() if copy else self
        return source._to_dlpack(versioned, bool(copy), bool(read_only))

    def __dlpack_device__(self) -> tuple[int, int]:
        if self.device.type != "cpu":
            raise ValueError(f"Unknown device type {self.device} for Dlpack")
        return (1, 0)

    @property
    def __cuda_array_interface__(self) -> Any:
        raise AttributeError(
            f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()} "
            "If CUDA data is required use tensor.cuda() to copy tensor to device memory."
        )

    # --- conveniences --------------------------------------------------------------------------

    def storage(self) -> TypedStorage:
        """The storage with its dtype; deprecated, as :meth:`untyped_storage` is the one in use."""
        from .storage import _typed, _warn_typed_storage_removal

        _warn_typed_storage_removal()
        return _typed(self.untyped_storage(), self.dtype)

    def storage_type(self) -> type:
        """The class of storages of this dtype, as ``FloatStorage``."""
        from .storage import _class_of

        return _class_of(self.dtype)

    def is_shared(self) -> bool:
        """Whether processes that are forked from this one share the memory with it."""
        return bool(self.untyped_storage().is_shared())

    def share_memory_(self) -> Self:
        """Moves the memory to where other processes can share it with this one.

        All tensors over the same storage go with it. NumPy arrays over the memory stay with the old
        one, and see no later writes. Shared memory cannot grow. Processes that are forked later
        share it, and so does whoever is sent the tensor by :mod:`torch.multiprocessing`.
        """
        self.untyped_storage().share_memory_()
        return self


for _name, _method in _methods_elsewhere().items():
    setattr(Tensor, _name, _method)
_make_overridable(
    Tensor,
    (
        "__array__",
        "__contains__",
        "__deepcopy__",
        "__format__",
        "__rdiv__",
        "__repr__",
        "__reversed__",
        "apply_",
        "backward",
        "dim_order",
        "is_distributed",
        "map2_",
        "map_",
        "module_load",
        "nonzero",
        "register_hook",
        "register_post_accumulate_grad_hook",
        "storage",
        "storage_type",
        "unique",
        "unique_consecutive",
    ),
)
_C._set_tensor_class(Tensor)
