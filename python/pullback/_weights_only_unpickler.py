"""What pickles of weights may name, and what they may do with it.

The machine that reads them is native (``crates/pullback/src/io/pickle``) and asks the class here
what names mean: only those of the list below, and of :func:`torch.serialization.add_safe_globals`,
mean anything, and only they are called.
"""

from __future__ import annotations

import functools
import pickle
from _codecs import encode
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

from . import _C, _tensor, _utils
from ._utils import _shown as shown

__all__: list[str] = []

UnpicklingError = pickle.UnpicklingError

# The encodings of texts that bytes are written as; others may take quadratic time.
_ENCODINGS = ("latin1", "latin-1", "iso-8859-1", "utf-8", "utf8", "ascii")

# Modules whose functions are never called, even if a program declares them safe.
_BLOCKED = frozenset({"sys", "os", "posix", "nt"})

# Functions that make a collection of another.
_COPYING = (OrderedDict, Counter, set, bytearray, encode, _C.Size)

_user_globals: set[Any] = set()


def _add_safe_globals(safe_globals: list[Any]) -> None:
    global _user_globals
    _user_globals = _user_globals | set(safe_globals)


def _get_safe_globals() -> list[Any]:
    return list(_user_globals)


def _clear_safe_globals() -> None:
    global _user_globals
    _user_globals = set()


def _remove_safe_globals(globals_to_remove: list[Any]) -> None:
    global _user_globals
    _user_globals = _user_globals - set(globals_to_remove)


def _their_name(module: str) -> str:
    """PyTorch's name of one of this package's modules; another module's own."""
    own, _, rest = module.partition(".")
    if own != __package__:
        return module
    return f"torch.{rest}" if rest else "torch"


def _get_user_allowed_globals() -> dict[str, Any]:
    """The objects that the program has declared safe, by their names in files."""
    named: dict[str, Any] = {}
    for item in _user_globals:
        if not isinstance(item, tuple):
            named[f"{item.__module__}.{item.__qualname__}"] = item
            named[f"{_their_name(item.__module__)}.{item.__qualname__}"] = item
            continue
        if len(item) != 2:
            raise ValueError(
                "Expected tuple of length 2 (global, str of callable full path), but got tuple of "
                f"length: {len(item)}"
            )
        if type(item[1]) is not str:
            raise TypeError(
                "Expected second item in tuple to be str of callable full path, but got: "
                f"{type(item[1])}"
            )
        named[item[1]] = item[0]
    return named


def _rebuild_functions() -> list[Callable[..., Any]]:
    return [
        _utils._rebuild_parameter,
        _utils._rebuild_parameter_with_state,
        _utils._rebuild_qtensor,
        _utils._rebuild_tensor,
        _utils._rebuild_tensor_v2,
        _utils._rebuild_tensor_v3,
        _utils._rebuild_sparse_tensor,
        _utils._rebuild_meta_tensor_no_storage,
        _utils._rebuild_wrapper_subclass,
        _utils._rebuild_nested_jagged,
        _utils._rebuild_nested_tensor,
        _utils._rebuild_nested_strided,
        _utils._rebuild_device_tensor_from_numpy,
        _utils._rebuild_device_tensor_from_cpu_tensor,
    ]


@functools.lru_cache(maxsize=1)
def _get_allowed_globals() -> dict[str, Any]:
    """The names that every file may use."""
    from . import serialization, storage
    from ._legacy import CLASSES
    from .nn.parameter import Parameter

    named: dict[str, Any] = {
        "collections.OrderedDict": OrderedDict,
        "collections.Counter": Counter,
        "torch.nn.parameter.Parameter": Parameter,
        "torch.serialization._get_layout": serialization._get_layout,
        "torch.Size": _C.Size,
        "torch.Tensor": _tensor.Tensor,
        "torch.device": _C.device,
        "_codecs.encode": encode,
        "builtins.bytearray": bytearray,
        "builtins.set": set,
        "builtins.complex": complex,
        "torch.storage.TypedStorage": storage.TypedStorage,
        "torch.storage.UntypedStorage": storage.UntypedStorage,
        "torch._tensor._rebuild_from_type_v2": _tensor._rebuild_from_type_v2,
    }
    named.update({str(value): value for value in vars(_C).values() if isinstance(value, _C.dtype)})
    named.update({f"torch.{name}": kind for name, kind in CLASSES.items()})
    for name in storage._DTYPES:
        named[f"torch.{name}"] = serialization.StorageType(name)
    named["torch.nested._internal.nested_tensor._rebuild_njt"] = _utils._rebuild_njt
    for function in _rebuild_functions():
        named[f"torch._utils.{function.__name__}"] = function
    return named


def _named(path: str) -> str:
    """A name as a program would write it."""
    return path.removeprefix("builtins.")


class _Rules:
    """The rules that the pickle machine calls. ``persistent_load`` gives the file's storages."""

    def __init__(self, persistent_load: Callable[[Any], Any], size: int) -> None:
        self._persistent_load = persistent_load
        # The number of elements that calls may copy: most of them are in the file once.
        self._copies_left = 16 * size + 4096
        trusted = _get_user_allowed_globals()
        self._trusted = {id(value) for value in trusted.values()}
        self._globals = {**trusted, **_get_allowed_globals()}
        # (Not all objects can be hashed, and their equality may run any code.)
        self._ids = {id(value) for value in self._globals.values()}

    def protocol(self, protocol: int) -> None:
        """The pickle says which protocol it follows: all are known."""

    def find_global(self, module: str, name: str) -> Any:
        """The object that a name stands for."""
        module, name = _renamed(module, name)
        path = f"{module}.{name}"
        if module in _BLOCKED:
            raise UnpicklingError(
                f"Trying to load unsupported GLOBAL {path} whose module {module} is blocked."
            )
        if path in self._globals:
            return self._globals[path]
        path = _named(path)
        raise UnpicklingError(
            f"Unsupported global: GLOBAL {path} was not an allowed global by default. Please use "
            f"`torch.serialization.add_safe_globals([{path}])` or the "
            f"`torch.serialization.safe_globals([{path}])` context manager to allowlist this "
            "global if you trust this class/function."
        )

    def reduce(self, function: Any, arguments: Any) -> Any:
        """Calls a function of the list of allowed ones."""
        self._check_call(function, arguments)
        return function(*arguments)

    def _check_call(self, function: Any, arguments: Any) -> None:
        """Refuses calls that are not of the list, and those that no file of weights needs."""
        while True:
            if id(function) not in self._ids:
                raise UnpicklingError(
                    f"Trying to call reduce for unrecognized function {shown(function)}"
                )
            if type(arguments) is not tuple:
                raise UnpicklingError(f"arguments should be a tuple, but got {type(arguments)}")
            self._check_copy(function, arguments)
            _check_arguments(function, arguments)
            if function is not _tensor._rebuild_from_type_v2 or len(arguments) < 3:
                return
            # This one calls another.
            function, _, arguments, *_ = arguments

    def _check_copy(self, function: Any, arguments: tuple[Any, ...]) -> None:
        """Refuses files that have the same things copied again and again."""
        if arguments and any(function is known for known in _COPYING):
            given = arguments[0]
            self._copies_left -= len(given) if hasattr(type(given), "__len__") else 0
            if self._copies_left < 0:
                raise UnpicklingError(f"the file lets {function} copy more than it holds")

    def new_object(self, kind: Any, arguments: Any, keywords: Any) -> Any:
        """An object of a class of the list of allowed ones."""
        from .nn.parameter import Parameter

        if type(arguments) is not tuple or type(keywords or {}) is not dict:
            raise UnpicklingError(f"arguments should be a tuple, but got {type(arguments)}")
        if kind is Parameter and not keywords:
            return Parameter(*arguments)
        if id(kind) not in self._ids or not isinstance(kind, type):
            raise UnpicklingError(
                "Can only create new object for nn.Parameter or classes allowlisted via "
                f"`add_safe_globals` but got {shown(kind)}"
            )
        self._check_copy(kind, arguments)
        _check_arguments(kind, (*arguments, *(keywords or {}).values()))
        return kind.__new__(kind, *arguments, **(keywords or {}))

    def build(self, instance: Any, state: Any) -> None:
        """Gives an object of a class of the list its state."""
        from .nn.parameter import Parameter

        kind = type(instance)
        if id(kind) not in self._trusted:
            _check_state(state)
        if kind in (_tensor.Tensor, Parameter) and type(state) is tuple and len(state) == 4:
            # (That would grow the storage to the size that the tensor needs.)
            _utils._rebuild_tensor(*state)
        if kind is _tensor.Tensor:
            if type(state) is not tuple or len(state) != 4:
                raise UnpicklingError(f"a tensor's state should be a tuple, not {type(state)}")
            instance.set_(*state)
        elif kind is Parameter:
            instance.__setstate__(state)
        elif kind is OrderedDict:
            instance.__dict__.update(state)
        elif id(kind) in self._ids:
            _set_state(instance, state)
        else:
            raise UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via "
                f"`add_safe_globals`, but got {kind}"
            )

    def set_items(self, mapping: Any, items: list[Any]) -> None:
        """Sets items of a mapping that is no plain dictionary: keys and values alternate."""
        if type(mapping) not in (OrderedDict, Counter):
            raise UnpicklingError(
                "Can only SETITEMS for dict, collections.OrderedDict, collections.Counter, but "
                f"got {type(mapping)}"
            )
        for key, value in zip(items[::2], items[1::2], strict=True):
            mapping[key] = value

    def append(self, target: Any, items: list[Any]) -> None:
        """Appends to what is no plain list.

        Raises:
            UnpicklingError: always.
        """
        raise UnpicklingError(f"Can only append to lists, but got {type(target)}")

    def persistent(self, key: Any) -> Any:
        """A storage, or what it is in a part of an old file."""
        if type(key) is not tuple and type(key) is not int:
            raise UnpicklingError(f"persistent_load id must be tuple or int, but got {type(key)}")
        if type(key) is tuple and (not key or key[0] not in ("storage", b"storage")):
            given = shown(key[0]) if key else "()"
            raise UnpicklingError(f"Only persistent_load of storage is allowed, but got {given}")
        return self._persistent_load(key)


def _check_arguments(function: Any, arguments: tuple[Any, ...]) -> None:
    """Refuses what lets a short file take much memory, or time, or memory that is not its own."""
    if arguments and any(function is kind for kind in _without_arguments()):
        raise UnpicklingError(f"{function} takes no arguments in files of weights")
    if function is bytearray and arguments and type(arguments[0]) not in (str, bytes, bytearray):
        raise UnpicklingError(f"a bytearray is made of bytes, not of {shown(arguments[0])}")
    if function is encode and (len(arguments) != 2 or arguments[1] not in _ENCODINGS):
        raise UnpicklingError(f"bytes are written in one of the encodings {_ENCODINGS}")
    takes_state = (_tensor._rebuild_from_type_v2, _utils._rebuild_parameter_with_state)
    if arguments and any(function is known for known in takes_state):
        _check_state(arguments[-1])


@functools.cache
def _without_arguments() -> tuple[Any, ...]:
    """The classes whose objects would be as large as a number says."""
    from . import storage
    from ._legacy import CLASSES

    own = (_tensor.Tensor, storage.TypedStorage, storage.UntypedStorage)
    return (*own, *CLASSES.values())


def _check_state(state: Any) -> None:
    """Refuses attributes that others read from an object, as NumPy the address of its memory."""
    for part in state if type(state) is tuple else (state,):
        for name in part if isinstance(part, dict) else ():
            if type(name) is str and name.startswith("__"):
                raise UnpicklingError(f"files of weights cannot set the attribute {shown(name)}")


def _set_state(instance: Any, state: Any) -> None:
    """Sets the state as an unpickler does."""
    if getattr(instance, "__setstate__", None) is not None:
        instance.__setstate__(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        instance.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(instance, name, value)


def _renamed(module: str, name: str) -> tuple[str, str]:
    """The name in Python 3 of what Python 2 called so, and PyTorch's for this package's."""
    module = _their_name(module)
    if (module, name) in NAME_MAPPING:
        return NAME_MAPPING[(module, name)]
    return IMPORT_MAPPING.get(module, module), name


def get_globals_in_pkl(data: bytes) -> set[str]:
    """The names of classes and functions in a pickle."""
    pairs = (_renamed(*pair) for pair in _C._pickle_globals(data))
    return {f"{module}.{name}" for module, name in pairs}


def load(
    data: bytes, start: int, persistent_load: Callable[[Any], Any], encoding: str
) -> tuple[Any, int]:
    """Reads the pickle that begins at byte ``start``.

    Args:
        data: the bytes.
        start: where it begins.
        persistent_load: makes storages of what the file says of them.
        encoding: of the strings of Python 2, or ``"bytes"``.

    Returns:
        The object, and where the next thing begins.

    Raises:
        UnpicklingError: for what weights do not need, and for pickles that are wrong.
        EOFError: if it ends early.
    """
    return _C._unpickle(data, start, _Rules(persistent_load, len(data)), encoding)
