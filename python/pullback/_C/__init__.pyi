# Written by `cargo xtask gen` from the op registry; edits are lost.

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from types import EllipsisType
from typing import (
    Any,
    ClassVar,
    Final,
    Literal,
    NoReturn,
    SupportsIndex,
    TypeAlias,
    TypeVar,
    final,
    overload,
)

# (Whoever has no NumPy sees arrays as anything.)
import numpy.typing
from typing_extensions import Self

from .. import return_types
from .._tensor import Tensor
from ..storage import TypedStorage
from ..types import (
    DeviceLikeType,
    Number,
    _bool,
    _complex,
    _device,
    _dtype,
    _float,
    _int,
    _layout,
    _size,
)
from . import _fft as _fft
from . import _linalg as _linalg
from . import _nn as _nn
from . import _sparse as _sparse
from . import _special as _special
from . import _VariableFunctions as _VariableFunctions

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T", bound=TensorBase)
_Place: TypeAlias = SupportsIndex | slice | EllipsisType | Tensor | Sequence[Any] | None
_Index: TypeAlias = _Place | tuple[_Place, ...]
_Operand: TypeAlias = Tensor | Number | _complex

_VERSION: Final[str]
_IS_DEBUG: Final[_bool]
has_lapack: Final[_bool]
has_mkl: Final[_bool]
has_mkldnn: Final[_bool]
has_openmp: Final[_bool]
has_spectral: Final[_bool]

# Value types.

@final
class dtype:
    @property
    def is_complex(self) -> _bool: ...
    @property
    def is_floating_point(self) -> _bool: ...
    @property
    def is_signed(self) -> _bool: ...
    @property
    def itemsize(self) -> _int: ...
    def to_complex(self) -> dtype: ...
    def to_real(self) -> dtype: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: Any) -> Self: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class layout:
    def __deepcopy__(self, _memo: Any) -> Self: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class memory_format:
    def __deepcopy__(self, _memo: Any) -> Self: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class device:
    @property
    def index(self) -> _int | None: ...
    @property
    def type(self) -> str: ...
    def __new__(cls, type: str | _int | device, index: _int | None = None) -> Self: ...
    def __deepcopy__(self, _memo: Any) -> Self: ...
    def __enter__(self) -> Self: ...
    def __eq__(self, other: object, /) -> _bool: ...
    def __exit__(self, *_error: object) -> None: ...
    def __hash__(self) -> _int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Size(tuple[_int, ...]):
    def __new__(cls, sizes: Iterable[SupportsIndex] = ...) -> Self: ...
    def __add__(self, other: tuple[_int, ...], /) -> Size: ...  # type: ignore[override]
    def __radd__(self, other: tuple[_int, ...], /) -> Size: ...
    @overload
    def __getitem__(self, index: SupportsIndex, /) -> _int: ...
    @overload
    def __getitem__(self, index: slice, /) -> Size: ...
    def __mul__(self, times: SupportsIndex, /) -> Size: ...
    def __rmul__(self, times: SupportsIndex, /) -> Size: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def numel(self) -> _int: ...

@final
class Generator:
    @property
    def device(self) -> _device: ...
    def __new__(cls, device: DeviceLikeType | None = None) -> Self: ...
    def clone_state(self) -> Generator: ...
    def get_state(self) -> Tensor: ...
    def initial_seed(self) -> _int: ...
    def manual_seed(self, seed: _int) -> Self: ...
    def seed(self) -> _int: ...
    def set_state(self, new_state: Tensor) -> Self: ...

class UntypedStorage:
    is_sparse: ClassVar[_bool]
    is_sparse_csr: ClassVar[_bool]
    @property
    def _cdata(self) -> _int: ...
    @property
    def device(self) -> _device: ...
    @property
    def filename(self) -> str | None: ...
    @property
    def is_cuda(self) -> _bool: ...
    @property
    def is_hpu(self) -> _bool: ...
    @overload
    def __new__(cls, size: _int = 0, *, device: DeviceLikeType | None = None) -> Self: ...
    @overload
    def __new__(cls, sequence: Sequence[_int], *, device: DeviceLikeType | None = None) -> Self: ...
    @staticmethod
    def _from_bytes(data: bytes, device: DeviceLikeType | None = None) -> UntypedStorage: ...
    @staticmethod
    def _over_map(map: Any, filename: str | None) -> UntypedStorage: ...
    @staticmethod
    def from_file(filename: str, shared: _bool = False, nbytes: _int = 0) -> UntypedStorage: ...
    @staticmethod
    def from_buffer(
        buffer: Any,
        byte_order: str | None = None,
        count: _int = -1,
        offset: _int = 0,
        dtype: _dtype | None = None,
    ) -> UntypedStorage: ...
    def __copy__(self) -> UntypedStorage: ...
    def __deepcopy__(self, memo: Any) -> UntypedStorage: ...
    @overload
    def __getitem__(self, index: _int, /) -> _int: ...
    @overload
    def __getitem__(self, index: slice, /) -> UntypedStorage: ...
    def __iter__(self) -> Iterator[_int]: ...
    def __len__(self) -> _int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __setitem__(self, index: _int | slice, value: _int, /) -> None: ...
    def __sizeof__(self) -> _int: ...
    def _bytes(self) -> bytes: ...
    def _to(self, dtype: _dtype) -> TypedStorage: ...
    def bfloat16(self) -> TypedStorage: ...
    def bool(self) -> TypedStorage: ...
    def byte(self) -> TypedStorage: ...
    def byteswap(self, dtype: _dtype) -> None: ...
    def char(self) -> TypedStorage: ...
    def clone(self) -> UntypedStorage: ...
    def complex_double(self) -> TypedStorage: ...
    def complex_float(self) -> TypedStorage: ...
    def copy_(self, source: UntypedStorage, non_blocking: _bool | None = False) -> Self: ...
    def cpu(self) -> Self: ...
    def cuda(self, device: Any = None, non_blocking: _bool = False) -> Self: ...
    def data_ptr(self) -> _int: ...
    def _const_data_ptr(self) -> _int: ...
    def double(self) -> TypedStorage: ...
    def element_size(self) -> _int: ...
    def fill_(self, value: _int) -> Self: ...
    def float(self) -> TypedStorage: ...
    def half(self) -> TypedStorage: ...
    def int(self) -> TypedStorage: ...
    def is_pinned(self, device: Any = None) -> _bool: ...
    def is_shared(self) -> _bool: ...
    def long(self) -> TypedStorage: ...
    def nbytes(self) -> _int: ...
    def new(self) -> UntypedStorage: ...
    def pin_memory(self, device: Any = None) -> Self: ...
    def resizable(self) -> _bool: ...
    def resize_(self, size: _int) -> Self: ...
    def share_memory_(self) -> Self: ...
    def short(self) -> TypedStorage: ...
    def size(self) -> _int: ...
    def to(self, *, device: DeviceLikeType, non_blocking: _bool = False) -> Self: ...
    def tolist(self) -> list[_int]: ...
    def type(self, dtype: Any = None, non_blocking: _bool = False) -> Any: ...
    def untyped(self) -> Self: ...

@final
class PyTorchFileReader:
    def __new__(cls, file: Any) -> Self: ...
    def check_record_size(self, name: str, nbytes: _int) -> None: ...
    def get_all_records(self) -> list[str]: ...
    def get_record(self, name: str) -> bytes: ...
    def get_record_header_offset(self, name: str) -> _int: ...
    def get_record_offset(self, name: str) -> _int: ...
    def get_storage_from_record(self, name: str, nbytes: _int) -> UntypedStorage: ...
    def has_record(self, name: str) -> _bool: ...
    def is_record_stored(self, name: str) -> _bool: ...
    def serialization_id(self) -> str: ...

@final
class PyTorchFileWriter:
    def __new__(
        cls, file: Any, compute_crc32: _bool = True, storage_alignment: _int = 64
    ) -> Self: ...
    def get_all_written_records(self) -> list[str]: ...
    def write_end_of_file(self) -> None: ...
    def write_record(self, name: str, data: bytes | str | UntypedStorage, size: _int) -> None: ...
    def write_record_metadata(self, name: str, size: _int) -> None: ...

class OutOfMemoryError(RuntimeError): ...
class _LinAlgError(RuntimeError): ...

# Constants.

bcomplex32: Final[_dtype]
bfloat16: Final[_dtype]
bool: Final[_dtype]
cdouble: Final[_dtype]
cfloat: Final[_dtype]
chalf: Final[_dtype]
channels_last: Final[memory_format]
channels_last_3d: Final[memory_format]
complex128: Final[_dtype]
complex32: Final[_dtype]
complex64: Final[_dtype]
contiguous_format: Final[memory_format]
double: Final[_dtype]
float: Final[_dtype]
float16: Final[_dtype]
float32: Final[_dtype]
float4_e2m1fn_x2: Final[_dtype]
float64: Final[_dtype]
float8_e4m3fn: Final[_dtype]
float8_e4m3fnuz: Final[_dtype]
float8_e5m2: Final[_dtype]
float8_e5m2fnuz: Final[_dtype]
float8_e8m0fnu: Final[_dtype]
half: Final[_dtype]
int: Final[_dtype]
int16: Final[_dtype]
int32: Final[_dtype]
int64: Final[_dtype]
int8: Final[_dtype]
long: Final[_dtype]
preserve_format: Final[memory_format]
short: Final[_dtype]
sparse_bsc: Final[_layout]
sparse_bsr: Final[_layout]
sparse_coo: Final[_layout]
sparse_csc: Final[_layout]
sparse_csr: Final[_layout]
strided: Final[_layout]
uint16: Final[_dtype]
uint32: Final[_dtype]
uint64: Final[_dtype]
uint8: Final[_dtype]

default_generator: Generator

# Functions that are no ops.

def as_tensor(
    data: Any, dtype: _dtype | None = None, device: DeviceLikeType | None = None
) -> Tensor:
    """A tensor of data, which it shares where it can: arrays of NumPy and tensors of that dtype."""
def asarray(
    obj: Any,
    *,
    dtype: _dtype | None = None,
    device: DeviceLikeType | None = None,
    copy: _bool | None = None,
    requires_grad: _bool = False,
) -> Tensor:
    """A tensor of data, shared with it or copied as `copy` says, or as it can be without."""
def can_cast(from_: _dtype, to: _dtype) -> _bool:
    """Whether a dtype goes into another one without losing its kind."""
def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor over the memory of another library's array (the DLPack protocol)."""
def from_numpy(ndarray: Any) -> Tensor:
    """A tensor over the memory of an array of NumPy; writes are seen by both."""
def frombuffer(
    buffer: Any,
    *,
    dtype: _dtype,
    count: _int = -1,
    offset: _int = 0,
    requires_grad: _bool = False,
) -> Tensor:
    """A tensor of one dimension over the memory of a Python object that shows it."""
def get_default_dtype() -> _dtype:
    """The dtype of new tensors of floating point: `torch.float32` unless it was set."""
def get_num_threads() -> _int:
    """How many threads a kernel may use."""
@final
class _Recording:
    """A step that is being recorded."""

    def has_kept(self, outputs: list[Tensor]) -> _bool: ...
    def finish(self, outputs: list[Tensor], watched: list[Tensor]) -> Any: ...
    def abort(self) -> None: ...

@final
class _Program:
    """A step that can be replayed."""

    def replay(self, inputs: list[Tensor]) -> list[Tensor] | None: ...
    def obstacle(self, inputs: list[Tensor]) -> str | None: ...
    def summary(self) -> tuple[_int, _int, _int, _int, _int]: ...

def _begin_capture(inputs: list[Tensor]) -> Any: ...
def _infer_size(a: Sequence[_int], b: Sequence[_int]) -> Size: ...
def initial_seed() -> _int:
    """The seed that the default generator was given last."""
def autocast_decrement_nesting() -> _int: ...
def autocast_increment_nesting() -> _int: ...
def clear_autocast_cache() -> None: ...
def get_autocast_dtype(device_type: str) -> _dtype: ...
def is_autocast_cache_enabled() -> _bool: ...
def is_autocast_enabled(device_type: str | None = None) -> _bool: ...
def set_autocast_cache_enabled(enabled: _bool) -> None: ...
def set_autocast_dtype(device_type: str, dtype: _dtype) -> None: ...
@overload
def set_autocast_enabled(device_type: str, enabled: _bool) -> None: ...
@overload
def set_autocast_enabled(enabled: _bool) -> None: ...
def _autocast_cached_count() -> _int: ...
def _check_device(device: Any) -> None: ...
def _comm_gather(tensors: list[Tensor], dim: _int, destination: _int) -> Tensor: ...
def _comm_scatter(
    tensor: Tensor, devices: list[_int], sizes: list[_int] | None, dim: _int
) -> tuple[Tensor, ...]: ...
def _cuda_current_device() -> _int: ...
def _cuda_device_count() -> _int: ...
def _cuda_set_device(index: _int) -> _int: ...
def _cuda_simulate(count: _int) -> None: ...
def _delayed_error(message: str, count: _int, args: tuple[Any, ...]) -> Any: ...
def _trace_python(enable: _bool) -> None: ...
def _is_any_autocast_enabled() -> _bool: ...
def _profiler_enabled() -> _bool: ...
def _profiler_start(
    record_shapes: _bool, profile_memory: _bool, with_stack: _bool, with_flops: _bool
) -> None: ...
def _profiler_stop() -> _ProfilerResult: ...
def _record_function_enter(
    name: str, args: str | None = None, kind: Literal["user", "module"] = "user"
) -> _RecordFunction: ...
def _is_autocast_available(device_type: str) -> _bool: ...
def is_grad_enabled() -> _bool:
    """Whether ops of this thread are recorded."""
def is_anomaly_check_nan_enabled() -> _bool: ...
def is_anomaly_enabled() -> _bool: ...
def is_inference_mode_enabled() -> _bool:
    """Whether this thread is in inference mode."""
def set_anomaly_enabled(enabled: _bool, check_nan: _bool | None = None) -> None: ...
def is_warn_always_enabled() -> _bool: ...
def _set_fill_uninitialized(is_filled: _bool) -> None: ...
def is_tensor(obj: object) -> _bool:
    """Whether an object is a tensor."""
def manual_seed(seed: _int) -> Generator:
    """Starts the default generator's stream at a seed."""
def promote_types(type1: _dtype, type2: _dtype) -> _dtype:
    """The smallest dtype that holds both."""
def result_type(tensor1: _Operand, tensor2: _Operand) -> _dtype:
    """The dtype that an op on both operands gives: tensors weigh more than numbers."""
def seed() -> _int:
    """Starts a stream of random numbers that nobody can know, and returns its seed."""
def set_default_dtype(d: _dtype) -> None:
    """Sets the dtype of new tensors of floating point."""
def set_num_threads(threads: _int) -> None:
    """Sets how many threads a kernel may use."""
def set_printoptions(
    precision: _int | None = None,
    threshold: _float | None = None,
    edgeitems: _int | None = None,
    linewidth: _int | None = None,
    profile: str | None = None,
    sci_mode: _bool | None = None,
) -> None:
    """Sets how tensors are printed."""
def set_warn_always(b: _bool, /) -> None: ...
def tensor(
    data: Any,
    *,
    dtype: _dtype | None = None,
    device: DeviceLikeType | None = None,
    requires_grad: _bool = False,
    pin_memory: _bool = False,
) -> Tensor:
    """A new tensor of data: numbers, nested sequences of them, arrays. It is a leaf of the graph."""
# The package puts these four there.
def _cuda_isInBadFork() -> _bool: ...
def _get_privateuse1_backend_name() -> str: ...
def _get_tracing_state() -> None: ...
def _get_deterministic_fill_uninitialized_memory() -> _bool: ...
def _set_deterministic_fill_uninitialized_memory(fills: _bool, /) -> None: ...
def _log_api_usage_once(event: str, /) -> None: ...
# Names of `_extension.py` and of placeholders.
_functorch: Any
_profiler: Any
Argument: Any
Block: Any
FunctionSchema: Any
Graph: Any
Node: Any
TensorType: Any
Type: Any
Value: Any
def _are_functorch_transforms_active() -> _bool: ...
def _is_alias_of(first: Tensor, second: Tensor, /) -> _bool: ...
def _has_storage(tensor: Tensor, /) -> _bool: ...
def _get_default_device() -> str: ...
def _get_accelerator(check: _bool | None = None) -> _device: ...
def _cuda_clearCublasWorkspaces() -> None: ...
def _set_math_sdp_allow_fp16_bf16_reduction(allows: _bool, /) -> None: ...
def parse_schema(schema: str) -> Any: ...
def _jit_get_schemas_for_operator(name: str) -> list[Any]: ...
def _get_schema(name: str, overload: str) -> Any: ...
def _jit_can_fuse_on_cpu() -> _bool: ...
def _jit_can_fuse_on_gpu() -> _bool: ...
def _jit_set_profiling_executor(switch: _bool, /) -> _bool: ...
def _jit_set_profiling_mode(switch: _bool, /) -> _bool: ...
def _jit_override_can_fuse_on_cpu(switch: _bool, /) -> _bool: ...
def _jit_override_can_fuse_on_gpu(switch: _bool, /) -> _bool: ...
def _jit_set_texpr_fuser_enabled(switch: _bool, /) -> _bool: ...
def _jit_set_nvfuser_enabled(switch: _bool, /) -> _bool: ...
def _jit_set_nvfuser_guard_mode(switch: _bool, /) -> _bool: ...
def _adopt_context_class(class_: type) -> None: ...
def _constant_by_name(name: str) -> layout | memory_format: ...
def _cpu_capability() -> str: ...
def _current_autograd_node() -> Any: ...
def _current_graph_task_execution_order() -> list[Any]: ...
def _at_end_of_backward(callback: Callable[[], object]) -> None: ...
def _current_graph_task_id() -> _int: ...
def _current_graph_task_keep_graph() -> _bool: ...
def _describe_ops() -> list[dict[str, Any]]: ...
def _disabled_torch_dispatch_impl(
    func: Callable[..., Any],
    types: Any,
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
) -> Any: ...
def _disabled_torch_function_impl(
    func: Callable[..., Any],
    types: Any,
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
) -> Any: ...
def _is_grad_layout_enforcement_enabled() -> _bool: ...
def _is_multithreading_enabled() -> _bool: ...
def _overloads(name: str) -> list[Any]: ...
def _dispatch_dump(name: str) -> str: ...
# Words for facts that `torch.Tag` names; none for what is no op of the library.
def _op_traits(name: str) -> list[str] | None: ...
# The dispatch key, the function or word, and the line where it stands.
def _dispatch_registrations(name: str) -> list[tuple[str, str, str]]: ...
def _dispatch_has_kernel(name: str) -> _bool: ...
def _dispatch_has_kernel_for_dispatch_key(name: str, dispatch: str) -> _bool: ...
def _dispatch_get_all_op_names() -> list[str]: ...
def _dispatch_keys(tensor: Tensor) -> DispatchKeySet: ...
def _dispatch_tls_local_exclude_set() -> DispatchKeySet: ...
class DispatchKey:
    __members__: dict[str, DispatchKey]
    name: str
    value: _int
    def __int__(self) -> _int: ...
    def __index__(self) -> _int: ...
    def __getattr__(self, name: str) -> Any: ...
class DispatchKeySet:
    def __init__(self, key: Any = None) -> None: ...
    def has(self, key: Any) -> _bool: ...
    def add(self, key: Any) -> DispatchKeySet: ...
    def remove(self, key: Any) -> DispatchKeySet: ...
    def highestPriorityTypeId(self) -> DispatchKey: ...
    def __or__(self, other: DispatchKeySet) -> DispatchKeySet: ...
    def __and__(self, other: DispatchKeySet) -> DispatchKeySet: ...
    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet: ...
class _ExcludeDispatchKeyGuard(ExitStack):
    def __init__(self, keys: DispatchKeySet) -> None: ...
class _AutoDispatchBelowAutograd(ExitStack):
    def __init__(self) -> None: ...
class _DisableAutocast(ExitStack):
    def __init__(self) -> None: ...

def _dtype_by_name(name: str) -> _dtype: ...
# Tensors, their gradients and the inputs are one each, or sequences.
@overload
def _engine_run_backward(
    tensors: Any,
    grad_tensors: Any,
    keep_graph: _bool,
    create_graph: _bool,
    inputs: Any,
    allow_unreachable: _bool,
    accumulate_grad: Literal[False],
) -> tuple[Tensor | None, ...]: ...
@overload
def _engine_run_backward(
    tensors: Any,
    grad_tensors: Any,
    keep_graph: _bool,
    create_graph: _bool,
    inputs: Any = None,
    allow_unreachable: _bool = False,
    accumulate_grad: Literal[True] = True,
) -> None: ...
def _are_dense_floats(tensors: list[Tensor]) -> _bool: ...
def _engine_runs(node: Any) -> _bool: ...
def _find_callable(module: str, name: str, is_method: _bool) -> Callable[..., Any]: ...
def _finfo(dtype: _dtype) -> tuple[_int, _float, _float, _float, _float, _float, str]: ...
def _get_printoptions() -> dict[str, Any]: ...
def _gradient_edge(tensor: Tensor) -> tuple[Any, _int]: ...
def _is_checkpoint_valid() -> _bool: ...
def _get_dispatch_stack_at(index: _int) -> Any: ...
def _get_function_stack_at(index: _int) -> Any: ...
def _get_torch_function_state() -> _TorchFunctionState: ...
def _handle_torch_function(
    function: Callable[..., Any],
    name: str,
    relevant_args: Iterable[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any: ...
def _has_torch_function(relevant_args: Iterable[Any]) -> _bool: ...
def _has_torch_function_unary(obj: object) -> _bool: ...
def _has_torch_function_variadic(*args: object) -> _bool: ...
def _is_torch_function_all_disabled() -> _bool: ...
def _is_torch_function_enabled() -> _bool: ...
def _is_torch_function_mode_enabled() -> _bool: ...
def _set_torch_dispatch_watchers(count: _int) -> _int: ...
def _len_torch_dispatch_stack() -> _int: ...
def _len_torch_function_stack() -> _int: ...
def _has_override_among(*args: object) -> _bool: ...
def _overridable(function: Callable[..., Any]) -> _OverridableFunction: ...
def _pop_torch_dispatch_stack(mode_key: Any = None) -> Any: ...
def _pop_torch_function_stack() -> Any: ...
def _push_on_torch_dispatch_stack(mode: Any) -> None: ...
def _push_on_torch_function_stack(mode: Any) -> None: ...
def _set_grad_layout_enforcement_enabled(enabled: _bool) -> None: ...
def _set_multithreading_enabled(enabled: _bool) -> None: ...
def _set_torch_function_state(state: _TorchFunctionState) -> None: ...
def _iinfo(dtype: _dtype) -> tuple[_int, _int, _int, str]: ...
def _increment_version(tensors: Sequence[Tensor]) -> None: ...
def _make_device(name: str) -> _device: ...
def _make_size(sizes: Sequence[_int]) -> Size: ...
def _memory_cached() -> _int: ...
def _memory_empty_cache() -> None: ...
def _memory_live() -> _int: ...
def _memory_peak() -> _int: ...
def _memory_reset_peak() -> None: ...
def _memory_set_cache_limit(bytes: _int) -> None: ...
def _enter_dual_level() -> _int: ...
def _exit_dual_level(level: _int) -> None: ...
def _is_fwd_grad_enabled() -> _bool: ...
def _make_dual(tensor: Tensor, tangent: Tensor, level: _int) -> Tensor: ...
def _set_fwd_grad_enabled(enabled: _bool) -> None: ...
def _undefined_grad(args: tuple[Any, ...]) -> Tensor: ...
def _unpack_dual(tensor: Tensor, level: _int) -> tuple[Tensor, Tensor | None]: ...
def _transform_closed() -> None: ...
def _transform_enter() -> _int: ...
def _transform_exit(number: _int) -> None: ...
def _transform_opened() -> None: ...
def _transform_own(tensors: list[Tensor]) -> None: ...
def _vmap_begin_numbers(known: list[_int]) -> None: ...
def _vmap_end_numbers() -> list[_int]: ...
def _is_vmap_fallback_enabled() -> _bool: ...
def _set_vmap_fallback_enabled(enabled: _bool) -> None: ...
def _debug_only_are_vmap_fallback_warnings_enabled() -> _bool: ...
def _debug_only_display_vmap_fallback_warnings(enabled: _bool) -> None: ...
def _vmap_add(value: Tensor, dim: _int, level: _int) -> Tensor: ...
def _vmap_enter(batch_size: _int, randomness: str) -> _int: ...
def _vmap_exit(level: _int) -> None: ...
def _vmap_fallen_back() -> list[str]: ...
def _vmap_is_open() -> _bool: ...
def _vmap_level(value: TensorBase) -> _int: ...
def _vmap_remove(value: Tensor, level: _int, batch_size: _int, out_dim: _int) -> Tensor: ...
def _vmap_unwrapped(value: Tensor) -> Tensor: ...
def _func_arguments(values: list[Tensor]) -> list[Tensor]: ...
def _func_apart(primals: list[Tensor], tangents: list[Tensor]) -> list[Tensor]: ...
def _func_close(inputs: list[Tensor]) -> None: ...
def _func_detach(outputs: list[Tensor], inputs: list[Tensor]) -> list[Tensor]: ...
def _func_input(value: Tensor) -> Tensor: ...
def _func_reaches_out(outputs: list[Tensor], inputs: list[Tensor]) -> _bool: ...
def _jvp_enter() -> _int: ...
def _jvp_exit(level: _int) -> None: ...
def _modes() -> _int: ...
def _peek_sequence_nr() -> _int: ...
def _pop_node_creation_hook() -> None: ...
def _pop_saved_tensors_default_hooks() -> None: ...
def _pop_write_observer() -> None: ...
def _public_names() -> list[str]: ...
def _push_node_creation_hook(hook: Callable[[Any], None]) -> None: ...
def _push_saved_tensors_default_hooks(
    pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
) -> None: ...
def _push_write_observer(observer: Callable[[Tensor], object]) -> None: ...
def _queue_callback(callback: Callable[[], object]) -> None: ...
def _restore_modes(modes: _int) -> None: ...
def _return_type(name: str, fields: list[str] | None = None) -> Any: ...
def _node_class(name: str) -> type: ...
def _call_site(node: Any) -> tuple[str, _int, str | None, str | None] | None: ...
def _closest_name(given: str, names: Sequence[str]) -> str | None: ...
def _node_op(node: Any) -> tuple[str, list[str], list[str]] | None: ...
def _program_line() -> tuple[str, _int, str | None, str | None] | None: ...
def _saved_memory(node: Any) -> list[tuple[_int, _int]]: ...
def _summary(tensor: Tensor) -> tuple[_int, _int, _float, _float, _float]: ...
def _saved_tensors_default_hooks() -> list[
    tuple[Callable[[Tensor], Any], Callable[[Any], Tensor]]
]: ...
def _saved_tensors_hooks_disable(error_message: str) -> None: ...
def _saved_tensors_hooks_enable() -> None: ...
def _saved_tensors_hooks_get_disabled_error_message() -> str | None: ...
def _set_grad_enabled(enabled: _bool) -> None: ...
def _is_masked_zeros() -> _bool: ...
def _set_masked_zeros(enabled: _bool) -> None: ...
def _is_view_replay_enabled() -> _bool: ...
def _set_view_replay_enabled(enabled: _bool) -> None: ...
def _set_parameter_class(class_: type) -> None: ...
def _set_tensor_class(class_: type) -> None: ...
def _generator_of(state: Tensor) -> Generator: ...
def _legacy_tensor(dtype: _dtype, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor: ...
def _pickle_globals(data: bytes) -> list[tuple[str, str]]: ...
def _resolve_names(data: bytes, prefix: str) -> bytes: ...
def _unpickle(data: bytes, start: _int, rules: Any, encoding: str) -> tuple[Any, _int]: ...
def _is_cow_tensor(tensor: Tensor) -> _bool: ...
def _data_address(tensor: Tensor) -> _int: ...
def _storage_address(tensor: Tensor) -> _int: ...
def _storage_from_bytes(data: bytes, device: DeviceLikeType | None = None) -> UntypedStorage: ...
def _tensor_over(
    storage: UntypedStorage,
    dtype: _dtype,
    offset: _int,
    size: Sequence[_int],
    stride: Sequence[_int],
) -> Tensor: ...
def _unsafe_set_version_counter(
    tensor: Tensor | Sequence[Tensor], version: _int | Sequence[_int]
) -> None: ...
def _will_engine_execute_node(node: Any) -> _bool: ...

# The graph.

@final
class _DisableTorchDispatch:
    def __enter__(self) -> None: ...
    def __exit__(self, *error: Any) -> None: ...

@final
class _RestorePythonTLSSnapshot:
    def __enter__(self) -> None: ...
    def __exit__(self, *error: Any) -> None: ...

@final
class DisableTorchFunction:
    def __enter__(self) -> None: ...
    def __exit__(self, *error: Any) -> None: ...

@final
class DisableTorchFunctionSubclass:
    def __enter__(self) -> None: ...
    def __exit__(self, *error: Any) -> None: ...

@final
class _EnableTorchFunction: ...

@final
class _TorchFunctionState:
    ENABLED: ClassVar[_TorchFunctionState]
    SUBCLASSES_DISABLED: ClassVar[_TorchFunctionState]
    ALL_DISABLED: ClassVar[_TorchFunctionState]
    def __int__(self) -> _int: ...

@final
class _OverridableFunction:
    __wrapped__: Callable[..., Any]
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

class _ModeContext:
    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *_exception: object) -> None: ...
    def _configure(self, kind: str, enabled: _bool) -> None: ...

class _NoGrad(_ModeContext):
    # (As a decorator without brackets it gives the function.)
    @overload
    def __new__(cls, function: _F) -> _F: ...  # type: ignore[misc]
    @overload
    def __new__(cls, function: None = None) -> Self: ...

class _EnableGrad(_ModeContext):
    @overload
    def __new__(cls, function: _F) -> _F: ...  # type: ignore[misc]
    @overload
    def __new__(cls, function: None = None) -> Self: ...

class _ModuleBase:
    def __getattr__(self, name: str) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

def _quicken_module(class_: type[Any]) -> None: ...
def _set_hook_tables(active: dict[_int, Any], global_: Sequence[dict[_int, Any]]) -> None: ...

@final
class _ProfilerResult:
    def duration_ns(self) -> _int: ...
    def events(self) -> list[tuple[Any, ...]]: ...
    def experimental_event_tree(self) -> list[Any]: ...
    def inputs(self) -> list[list[Any] | None]: ...
    def memory(self) -> list[tuple[_int, _int, _int, _int, _int]]: ...
    def save(self, path: str, metadata: dict[str, str]) -> None: ...
    def trace_start_ns(self) -> _int: ...

@final
class _RecordFunction:
    def close(self) -> None: ...

@final
class SavedTensor:
    def register_hooks(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None: ...

# The package puts these two there.
_autograd: Any
_functions: Any

@final
class _WeakTensorRef:
    def __new__(cls, tensor: Tensor) -> Self: ...
    def expired(self) -> _bool: ...

class _NodeBase:
    @property
    def _input_metadata(self) -> tuple[Any, ...]: ...
    @property
    def metadata(self) -> dict[Any, Any]: ...
    @property
    def next_functions(self) -> tuple[tuple[Any, _int], ...]: ...
    @property
    def requires_grad(self) -> _bool: ...
    @property
    def variable(self) -> Tensor: ...
    # The package puts these onto the class.
    _repr_html_: ClassVar[Callable[..., Any]]
    register_hook: ClassVar[Callable[..., Any]]
    register_prehook: ClassVar[Callable[..., Any]]
    def __call__(self, *args: Any) -> Any: ...
    def __dir__(self) -> list[str]: ...
    # What a node saved, as `_saved_self`.
    def __getattr__(self, name: str) -> Any: ...
    def _post_hooks(self) -> dict[_int, Any]: ...
    def _pre_hooks(self) -> dict[_int, Any]: ...
    def _register_hook_dict(self, tensor: Tensor) -> None: ...
    def _sequence_nr(self) -> _int: ...
    def _set_sequence_nr(self, number: _int) -> None: ...
    def name(self) -> str: ...

@final
class _Extension:
    def __new__(cls, address: _int) -> _Extension: ...
    def ops(self) -> list[tuple[str, str]]: ...
    def call(
        self, op: _int, arguments: Iterable[Any]
    ) -> tuple[_ExtensionProgram, list[Tensor]]: ...

@final
class _ExtensionProgram:
    def vjp(self, marks: Sequence[_bool]) -> _ExtensionProgram: ...
    def jvp(self, marks: Sequence[_bool]) -> _ExtensionProgram: ...
    def vmap(self, dims: Sequence[_int | None]) -> _ExtensionProgram: ...
    def run(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]: ...

@final
class _FunctionApply:
    @property
    def __doc__(self) -> str: ...  # type: ignore[override]
    @property
    def __name__(self) -> str: ...
    @property
    def __qualname__(self) -> str: ...
    @property
    def __self__(self) -> type: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __new__(cls, function: type, /) -> Self: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

class _FunctionBase:
    # Each can be set, as in PyTorch's older way of writing functions.
    dirty_tensors: Any
    materialize_grads: _bool
    needs_input_grad: Any
    non_differentiable: Any
    saved_for_forward: Any
    to_save: Any
    _materialize_non_diff_grads: _bool
    @property
    def _input_metadata(self) -> tuple[Any, ...]: ...
    @property
    def metadata(self) -> dict[Any, Any]: ...
    @property
    def next_functions(self) -> tuple[tuple[Any, _int], ...]: ...
    @property
    def requires_grad(self) -> _bool: ...
    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor, ...]: ...
    # (Where None was saved there is None.)
    @property
    def saved_tensors(self) -> tuple[Tensor, ...]: ...
    @property
    def saved_variables(self) -> tuple[Any, ...]: ...
    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self: ...
    def _call_node(self, *args: Any) -> Any: ...
    def _post_hooks(self) -> dict[_int, Any]: ...
    def _pre_hooks(self) -> dict[_int, Any]: ...
    def _register_hook_dict(self, tensor: Tensor) -> None: ...
    def _sequence_nr(self) -> _int: ...
    def _set_sequence_nr(self, number: _int) -> None: ...
    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any: ...
    def mark_dirty(self, *tensors: Tensor) -> None: ...
    def mark_non_differentiable(self, *tensors: Tensor) -> None: ...
    def maybe_clear_saved_tensors(self) -> None: ...
    def name(self) -> str: ...
    def save_for_backward(self, *tensors: Tensor | None) -> None: ...
    def set_materialize_grads(self, value: _bool) -> None: ...

# Tensors.

class _TensorMeta(type): ...

class TensorBase(metaclass=_TensorMeta):
    _backward_hooks: Any
    _grad: Tensor | None
    _grad_fn: Any
    _post_accumulate_grad_hooks: Any
    data: Tensor
    grad: Tensor | None
    requires_grad: _bool
    @property
    def _base(self) -> Tensor | None: ...
    @property
    def _cdata(self) -> _int: ...
    @property
    def _version(self) -> _int: ...
    @property
    def device(self) -> _device:
        """Where the memory is."""
    @property
    def dtype(self) -> _dtype:
        """What the elements are."""
    @property
    def grad_fn(self) -> Any:
        """The node of the graph that made it; None for a leaf."""
    @property
    def is_cpu(self) -> _bool: ...
    @property
    def is_cuda(self) -> _bool: ...
    @property
    def is_leaf(self) -> _bool:
        """Whether no recorded op made it: its gradient is kept in `grad`."""
    @property
    def is_meta(self) -> _bool: ...
    @property
    def is_mkldnn(self) -> _bool: ...
    @property
    def is_mps(self) -> _bool: ...
    @property
    def is_nested(self) -> _bool: ...
    @property
    def is_quantized(self) -> _bool: ...
    @property
    def is_sparse(self) -> _bool: ...
    @property
    def is_sparse_csr(self) -> _bool: ...
    @property
    def is_vulkan(self) -> _bool: ...
    @property
    def is_xpu(self) -> _bool: ...
    @property
    def itemsize(self) -> _int:
        """How many bytes an element has."""
    @property
    def layout(self) -> _layout:
        """How the elements are kept: strided, or sparse."""
    @property
    def name(self) -> None: ...
    @property
    def nbytes(self) -> _int:
        """How many bytes the elements take."""
    @property
    def ndim(self) -> _int:
        """How many dimensions it has."""
    @property
    def output_nr(self) -> _int:
        """Which output of its node it is."""
    @property
    def grad_dtype(self) -> _dtype | None:
        """The dtype that the gradient has, the tensor's own at first; ``None`` if it may have any.

        That of a leaf can be set: gradients are converted to it when they arrive.
        """
    @grad_dtype.setter
    def grad_dtype(self, value: _dtype | None) -> None: ...
    @property
    def retains_grad(self) -> _bool:
        """Whether its gradient is kept though it is no leaf."""
    volatile: _bool
    @property
    def shape(self) -> Size:
        """The sizes of its dimensions."""
    @property
    def H(self) -> Tensor:
        """A matrix transposed and conjugated."""
    @property
    def T(self) -> Tensor:
        """All dimensions in reverse order."""
    @property
    def imag(self) -> Tensor:
        """A view of the imaginary parts of a complex tensor."""
    @imag.setter
    def imag(self, value: Tensor | Number) -> None: ...
    @property
    def mH(self) -> Tensor:
        """The last two dimensions swapped, conjugated."""
    @property
    def mT(self) -> Tensor:
        """The last two dimensions swapped; a 0-dim tensor itself."""
    @property
    def real(self) -> Tensor:
        """A view of the real parts; real tensors are returned as they are."""
    @real.setter
    def real(self, value: Tensor | Number) -> None: ...
    # The old constructor: sizes, or data.
    def __new__(cls, *args: Any, device: DeviceLikeType | None = None) -> Self: ...

    # Operators.

    def __abs__(self) -> Tensor: ...
    def __bool__(self) -> _bool: ...
    def __delitem__(self, index: _Index, /) -> NoReturn: ...
    # Comparisons are element by element, where `object` promises a bool.
    def __eq__(self, other: object, /) -> Tensor: ...  # type: ignore[override]
    def __float__(self) -> _float: ...
    def __getitem__(self, index: _Index, /) -> Tensor: ...
    def __hash__(self) -> _int: ...
    def __index__(self) -> _int: ...
    def __int__(self) -> _int: ...
    def __invert__(self) -> Tensor: ...
    def __len__(self) -> _int: ...
    def __ne__(self, other: object, /) -> Tensor: ...  # type: ignore[override]
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __rmatmul__(self, other: Tensor, /) -> Tensor: ...
    def __setitem__(self, index: _Index, value: _Operand, /) -> None: ...
    def __add__(self, other: _Operand, /) -> Tensor: ...
    def __floordiv__(self, other: _Operand, /) -> Tensor: ...
    def __ge__(self, other: _Operand, /) -> Tensor: ...
    def __gt__(self, other: _Operand, /) -> Tensor: ...
    def __iadd__(self, other: _Operand, /) -> Self: ...
    def __ifloordiv__(self, other: _Operand, /) -> Self: ...
    def __imod__(self, other: _Operand, /) -> Self: ...
    def __imul__(self, other: _Operand, /) -> Self: ...
    def __ipow__(self, other: _Operand, /) -> Self: ...
    def __isub__(self, other: _Operand, /) -> Self: ...
    def __itruediv__(self, other: _Operand, /) -> Self: ...
    def __le__(self, other: _Operand, /) -> Tensor: ...
    def __lt__(self, other: _Operand, /) -> Tensor: ...
    def __mod__(self, other: _Operand, /) -> Tensor: ...
    def __mul__(self, other: _Operand, /) -> Tensor: ...
    def __pow__(self, other: _Operand, /) -> Tensor: ...
    def __radd__(self, other: _Operand, /) -> Tensor: ...
    def __rand__(self, other: _Operand, /) -> Tensor: ...
    def __rfloordiv__(self, other: _Operand, /) -> Tensor: ...
    def __rlshift__(self, other: _Operand, /) -> Tensor: ...
    def __rmod__(self, other: _Operand, /) -> Tensor: ...
    def __rmul__(self, other: _Operand, /) -> Tensor: ...
    def __ror__(self, other: _Operand, /) -> Tensor: ...
    def __rpow__(self, other: _Operand, /) -> Tensor: ...
    def __rrshift__(self, other: _Operand, /) -> Tensor: ...
    def __rsub__(self, other: _Operand, /) -> Tensor: ...
    def __rtruediv__(self, other: _Operand, /) -> Tensor: ...
    def __rxor__(self, other: _Operand, /) -> Tensor: ...
    def __sub__(self, other: _Operand, /) -> Tensor: ...
    def __truediv__(self, other: _Operand, /) -> Tensor: ...
    @overload
    def __iand__(self, other: Tensor, /) -> Self: ...
    @overload
    def __iand__(self, other: Number | _complex, /) -> Self: ...
    @overload
    def __ilshift__(self, other: Tensor, /) -> Self: ...
    @overload
    def __ilshift__(self, other: Number | _complex, /) -> Self: ...
    @overload
    def __ior__(self, other: Tensor, /) -> Self: ...
    @overload
    def __ior__(self, other: Number | _complex, /) -> Self: ...
    @overload
    def __irshift__(self, other: Tensor, /) -> Self: ...
    @overload
    def __irshift__(self, other: Number | _complex, /) -> Self: ...
    @overload
    def __ixor__(self, other: Tensor, /) -> Self: ...
    @overload
    def __ixor__(self, other: Number | _complex, /) -> Self: ...

    # Methods that are no ops.

    def _accumulate_hook_dict(self) -> dict[_int, Any]: ...
    def _hook_dict(self) -> dict[_int, Any]: ...
    def _is_view(self) -> _bool: ...
    def _view_func(
        self,
        new_base: Tensor,
        symint_visitor_fn: Callable[[_int], _int] | None = None,
        tensor_visitor_fn: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor | None: ...
    def _view_func_unsafe(
        self,
        new_base: Tensor,
        symint_visitor_fn: Callable[[_int], _int] | None = None,
        tensor_visitor_fn: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor | None: ...
    def _rev_view_func_unsafe(self, new_view: Tensor) -> Tensor | None: ...
    @staticmethod
    def _make_subclass(cls: builtins.type[_T], data: Tensor, require_grad: _bool = False) -> _T: ...
    @staticmethod
    def _make_wrapper_subclass(
        cls: builtins.type[_T],
        size: Sequence[_int],
        strides: Sequence[_int] | None = None,
        storage_offset: _int | None = None,
        memory_format: Any = None,
        dtype: _dtype | None = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: _bool = False,
        requires_grad: _bool = False,
        dispatch_sizes_strides_policy: str | None = None,
        dispatch_device: _bool = False,
        dispatch_layout: _bool = False,
    ) -> _T: ...
    def _repr(self, contents: object) -> str: ...
    def _to_dlpack(
        self, versioned: _bool = False, copied: _bool = False, read_only: _bool = False
    ) -> Any: ...
    def _use_count(self) -> _int: ...
    def as_subclass(self, cls: builtins.type[_T]) -> _T:
        """The same tensor as one of another class."""
    def cpu(self, memory_format: memory_format = ...) -> Tensor:
        """The tensor in main memory; itself if it is there."""
    def cuda(
        self,
        device: DeviceLikeType | None = None,
        non_blocking: _bool = False,
        memory_format: memory_format = ...,
    ) -> Tensor:
        """The tensor on a CUDA device."""
    def data_ptr(self) -> _int:
        """The address of the first element, to be read and written."""
    def const_data_ptr(self) -> _int:
        """The address of the first element, to be read only: a lazy clone stays one."""
    def detach_(self) -> Self:
        """Takes the tensor out of the graph, in place."""
    def dim(self) -> _int:
        """How many dimensions it has."""
    def element_size(self) -> _int:
        """How many bytes an element has."""
    def get_device(self) -> _int:
        """The number of the device; -1 in main memory."""
    def is_complex(self) -> _bool:
        """Whether the dtype is complex."""
    def _is_zerotensor(self) -> _bool: ...
    def is_conj(self) -> _bool:
        """Whether it is a conjugate that has not been computed yet."""
    def is_contiguous(self, memory_format: memory_format = ...) -> _bool:
        """Whether the elements lie one after the other, in the order of the format."""
    def is_floating_point(self) -> _bool:
        """Whether the dtype is one of floating point."""
    def is_inference(self) -> _bool:
        """Whether it was made in inference mode."""
    def is_neg(self) -> _bool:
        """Whether it is a negative that has not been computed yet."""
    def is_pinned(self, device: DeviceLikeType | None = None) -> _bool:
        """Whether the memory is pinned."""
    def pin_memory(self, device: DeviceLikeType | None = None) -> Tensor:
        """A copy in pinned memory."""
    def is_same_size(self, other: Tensor) -> _bool:
        """Whether another tensor has its shape."""
    def is_set_to(self, tensor: Tensor) -> _bool:
        """Whether both show the same memory alike."""
    def is_signed(self) -> _bool:
        """Whether the dtype has negative numbers."""
    # A complex tensor gives a complex number; `Number`, as in PyTorch, keeps the common case usable.
    def item(self) -> Number:
        """The only element, as a number of Python."""
    def ndimension(self) -> _int:
        """How many dimensions it has."""
    def nelement(self) -> _int:
        """How many elements it has."""
    def new(self, *args: Any, device: DeviceLikeType | None = None) -> Tensor: ...
    def new_tensor(
        self,
        data: Any,
        *,
        dtype: _dtype | None = None,
        device: DeviceLikeType | None = None,
        requires_grad: _bool = False,
    ) -> Tensor:
        """A new tensor of data, of this one's dtype and device unless others are given."""
    def numel(self) -> _int:
        """How many elements it has."""
    def numpy(self, *, force: _bool = False) -> numpy.typing.NDArray[Any]:
        """An array of NumPy over the same memory; with `force` also where that takes a copy."""
    def requires_grad_(self, requires_grad: _bool = True) -> Self:
        """Says whether ops on the tensor are recorded, and gives the tensor."""
    @overload
    def resize_(
        self, size: _size, *, memory_format: memory_format | None = None
    ) -> Self:
        """Gives the tensor another shape; new elements have any values."""
    @overload
    def resize_(self, *size: _int, memory_format: memory_format | None = None) -> Self: ...
    def resize_as_(
        self, the_template: Tensor, *, memory_format: memory_format | None = None
    ) -> Self:
        """Gives the tensor the shape of another one."""
    def retain_grad(self) -> None:
        """Keeps the gradient in `grad`, also where the tensor is no leaf."""
    def set_(
        self,
        source: Tensor | UntypedStorage | TypedStorage | None = None,
        storage_offset: _int = 0,
        size: _size | None = None,
        stride: _size | None = None,
    ) -> Self:
        """Lets the tensor show other memory."""
    @overload
    def size(self, dim: None = None) -> Size:
        """The shape, or the size of one dimension."""
    @overload
    def size(self, dim: _int) -> _int: ...
    def storage_offset(self) -> _int:
        """Where the first element is in the storage."""
    @overload
    def stride(self, dim: None = None) -> tuple[_int, ...]:
        """How far apart neighbours are, for all dimensions or for one."""
    @overload
    def stride(self, dim: _int) -> _int: ...
    @overload
    def to(
        self,
        dtype: _dtype,
        non_blocking: _bool = False,
        copy: _bool = False,
        *,
        memory_format: memory_format | None = None,
    ) -> Tensor:
        """The tensor in another dtype or on another device; itself where nothing changes."""
    @overload
    def to(
        self,
        device: DeviceLikeType | None = None,
        dtype: _dtype | None = None,
        non_blocking: _bool = False,
        copy: _bool = False,
        *,
        memory_format: memory_format | None = None,
    ) -> Tensor: ...
    @overload
    def to(
        self,
        other: Tensor,
        non_blocking: _bool = False,
        copy: _bool = False,
        *,
        memory_format: memory_format | None = None,
    ) -> Tensor: ...
    def tolist(self) -> Any:
        """The elements as nested lists of numbers; of a tensor without dimensions the number."""
    @overload
    def type(self, dtype: None = None, non_blocking: _bool = False) -> str:
        """The name of its class by dtype, or the tensor in another dtype."""
    @overload
    def type(self, dtype: str | _dtype, non_blocking: _bool = False) -> Tensor: ...
    def untyped_storage(self) -> UntypedStorage:
        """The memory behind it."""
    def bfloat16(self, memory_format: memory_format = ...) -> Tensor: ...
    def bool(self, memory_format: memory_format = ...) -> Tensor: ...
    def byte(self, memory_format: memory_format = ...) -> Tensor: ...
    def cdouble(self, memory_format: memory_format = ...) -> Tensor: ...
    def cfloat(self, memory_format: memory_format = ...) -> Tensor: ...
    def chalf(self, memory_format: memory_format = ...) -> Tensor: ...
    def char(self, memory_format: memory_format = ...) -> Tensor: ...
    def double(self, memory_format: memory_format = ...) -> Tensor: ...
    def float(self, memory_format: memory_format = ...) -> Tensor: ...
    def half(self, memory_format: memory_format = ...) -> Tensor: ...
    def int(self, memory_format: memory_format = ...) -> Tensor: ...
    def long(self, memory_format: memory_format = ...) -> Tensor: ...
    def short(self, memory_format: memory_format = ...) -> Tensor: ...

    # Methods that are ops.

    @overload
    def __and__(self, other: Tensor, /) -> Tensor: ...
    @overload
    def __and__(self, other: Number | _complex, /) -> Tensor: ...
    @overload
    def __lshift__(self, other: Tensor, /) -> Tensor: ...
    @overload
    def __lshift__(self, other: Number | _complex, /) -> Tensor: ...
    def __matmul__(self, other: Tensor, /) -> Tensor: ...
    @overload
    def __or__(self, other: Tensor, /) -> Tensor: ...
    @overload
    def __or__(self, other: Number | _complex, /) -> Tensor: ...
    @overload
    def __rshift__(self, other: Tensor, /) -> Tensor: ...
    @overload
    def __rshift__(self, other: Number | _complex, /) -> Tensor: ...
    @overload
    def __xor__(self, other: Tensor, /) -> Tensor: ...
    @overload
    def __xor__(self, other: Number | _complex, /) -> Tensor: ...
    @overload
    def _adaptive_avg_pool2d(self, output_size: _int | _size) -> Tensor: ...
    @overload
    def _adaptive_avg_pool2d(self, *output_size: _int) -> Tensor: ...
    @overload
    def _adaptive_avg_pool3d(self, output_size: _int | _size) -> Tensor: ...
    @overload
    def _adaptive_avg_pool3d(self, *output_size: _int) -> Tensor: ...
    def _addmm_activation(self, mat1: Tensor, mat2: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1, use_gelu: _bool = False) -> Tensor: ...
    def _coalesce(self) -> Tensor: ...
    def _coalesced_(self, coalesced: _bool) -> Tensor: ...
    def _conj(self) -> Tensor: ...
    def _conj_physical(self) -> Tensor: ...
    def _conj_physical_(self) -> Tensor: ...
    def _cummaxmin_pick(self, indices: Tensor, dim: _int) -> Tensor: ...
    def _imag_part(self) -> Tensor: ...
    def _indices(self) -> Tensor: ...
    def _lazy_clone(self) -> Tensor: ...
    def _linalg_eigvals(self) -> Tensor: ...
    def _linear_recurrence(self, factor: Tensor, dim: _int, reverse: _bool = False) -> Tensor: ...
    def _local_scalar_dense(self) -> Number | _complex: ...
    def _log_softmax(self, dim: _int, half_to_float: _bool) -> Tensor: ...
    def _neg_view(self) -> Tensor: ...
    def _nnz(self) -> _int: ...
    def _prelu_kernel(self, weight: Tensor) -> Tensor: ...
    def _real_part(self) -> Tensor: ...
    def _renorm_factor(self, maxnorm: _float) -> Tensor: ...
    def _safe_softmax_data(self, dim: _int) -> Tensor: ...
    def _select_along(self, dim: _int, indices: Tensor, keepdim: _bool) -> Tensor: ...
    def _softmax(self, dim: _int, half_to_float: _bool) -> Tensor: ...
    def _to_copy(self, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = None, non_blocking: _bool = False, memory_format: memory_format | None = None) -> Tensor: ...
    def _to_dense(self, dtype: _dtype | None = None, masked_grad: _bool | None = None) -> Tensor: ...
    def _to_sparse(self, sparse_dim: _int | None = None, *, layout: _layout | None = None, blocksize: _int | _size | None = None, dense_dim: _int | None = None) -> Tensor: ...
    def _unique(self, sorted: _bool = True, return_inverse: _bool = False) -> tuple[Tensor, Tensor]: ...
    def _unique2(self, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False) -> tuple[Tensor, Tensor, Tensor]: ...
    @overload
    def _unsafe_view(self, size: _size) -> Tensor: ...
    @overload
    def _unsafe_view(self, *size: _int) -> Tensor: ...
    def _values(self) -> Tensor: ...
    def abs(self) -> Tensor:
        """The distance from zero. Complex numbers give their real dtype; the gradient at 0 is 0."""
    def abs_(self) -> Tensor:
        """The distance from zero. Complex numbers give their real dtype; the gradient at 0 is 0."""
    def absolute(self) -> Tensor:
        """The distance from zero. Complex numbers give their real dtype; the gradient at 0 is 0."""
    def absolute_(self) -> Tensor:
        """The distance from zero. Complex numbers give their real dtype; the gradient at 0 is 0."""
    def acos(self) -> Tensor:
        """The inverse cosine, in `[0, π]`; NaN for real numbers outside `[-1, 1]`."""
    def acos_(self) -> Tensor:
        """The inverse cosine, in `[0, π]`; NaN for real numbers outside `[-1, 1]`."""
    def acosh(self) -> Tensor:
        """The inverse hyperbolic cosine; NaN for real numbers below 1."""
    def acosh_(self) -> Tensor:
        """The inverse hyperbolic cosine; NaN for real numbers below 1."""
    @overload
    def add(self, other: Tensor | Number | _complex, *, alpha: Number | _complex = 1) -> Tensor:
        """Adds `other`, multiplied by `alpha`: `out[i] = self[i] + alpha * other[i]`.
        Shapes broadcast; dtypes promote; for bool this is "or"."""
    @overload
    def add(self, alpha: Number | _complex, other: Tensor | Number | _complex) -> Tensor: ...
    @overload
    def add_(self, other: Tensor | Number | _complex, *, alpha: Number | _complex = 1) -> Tensor:
        """Adds `other`, multiplied by `alpha`: `out[i] = self[i] + alpha * other[i]`.
        Shapes broadcast; dtypes promote; for bool this is "or"."""
    @overload
    def add_(self, alpha: Number | _complex, other: Tensor | Number | _complex) -> Tensor: ...
    @overload
    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1) -> Tensor:
        """`beta * self + alpha * (sum over b of batch1[b] @ batch2[b])`; `self` broadcasts, and the in-place form gives it the
        result's shape."""
    @overload
    def addbmm(self, beta: Number | _complex, alpha: Number | _complex, batch1: Tensor, batch2: Tensor) -> Tensor: ...
    @overload
    def addbmm(self, beta: Number | _complex, batch1: Tensor, batch2: Tensor) -> Tensor: ...
    @overload
    def addbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1) -> Tensor:
        """`beta * self + alpha * (sum over b of batch1[b] @ batch2[b])`; `self` broadcasts, and the in-place form gives it the
        result's shape."""
    @overload
    def addbmm_(self, beta: Number | _complex, alpha: Number | _complex, batch1: Tensor, batch2: Tensor) -> Tensor: ...
    @overload
    def addbmm_(self, beta: Number | _complex, batch1: Tensor, batch2: Tensor) -> Tensor: ...
    @overload
    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: Number | _complex = 1) -> Tensor:
        """`self + value * tensor1 / tensor2`. Shapes broadcast; dtypes promote; integers are refused."""
    @overload
    def addcdiv(self, value: Number | _complex, tensor1: Tensor, tensor2: Tensor) -> Tensor: ...
    @overload
    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: Number | _complex = 1) -> Tensor:
        """`self + value * tensor1 / tensor2`. Shapes broadcast; dtypes promote; integers are refused."""
    @overload
    def addcdiv_(self, value: Number | _complex, tensor1: Tensor, tensor2: Tensor) -> Tensor: ...
    @overload
    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: Number | _complex = 1) -> Tensor:
        """`self + value * tensor1 * tensor2`. Shapes broadcast; dtypes promote."""
    @overload
    def addcmul(self, value: Number | _complex, tensor1: Tensor, tensor2: Tensor) -> Tensor: ...
    @overload
    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: Number | _complex = 1) -> Tensor:
        """`self + value * tensor1 * tensor2`. Shapes broadcast; dtypes promote."""
    @overload
    def addcmul_(self, value: Number | _complex, tensor1: Tensor, tensor2: Tensor) -> Tensor: ...
    @overload
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1) -> Tensor:
        """`beta * self + alpha * (mat1 @ mat2)`; `self` broadcasts to (m, n) and is not read if `beta` is 0."""
    @overload
    def addmm(self, beta: Number | _complex, alpha: Number | _complex, mat1: Tensor, mat2: Tensor) -> Tensor: ...
    @overload
    def addmm(self, beta: Number | _complex, mat1: Tensor, mat2: Tensor) -> Tensor: ...
    @overload
    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1) -> Tensor:
        """`beta * self + alpha * (mat1 @ mat2)`; `self` broadcasts to (m, n) and is not read if `beta` is 0."""
    @overload
    def addmm_(self, beta: Number | _complex, alpha: Number | _complex, mat1: Tensor, mat2: Tensor) -> Tensor: ...
    @overload
    def addmm_(self, beta: Number | _complex, mat1: Tensor, mat2: Tensor) -> Tensor: ...
    @overload
    def addmv(self, mat: Tensor, vec: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1) -> Tensor:
        """`beta * self + alpha * (mat @ vec)`; `self` broadcasts and is not read if `beta` is 0."""
    @overload
    def addmv(self, beta: Number | _complex, alpha: Number | _complex, mat: Tensor, vec: Tensor) -> Tensor: ...
    @overload
    def addmv(self, beta: Number | _complex, mat: Tensor, vec: Tensor) -> Tensor: ...
    @overload
    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1) -> Tensor:
        """`beta * self + alpha * (mat @ vec)`; `self` broadcasts and is not read if `beta` is 0."""
    @overload
    def addmv_(self, beta: Number | _complex, alpha: Number | _complex, mat: Tensor, vec: Tensor) -> Tensor: ...
    @overload
    def addmv_(self, beta: Number | _complex, mat: Tensor, vec: Tensor) -> Tensor: ...
    @overload
    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1) -> Tensor:
        """The sum of a matrix and an outer product: `beta * self + alpha * outer(vec1, vec2)`. `self` broadcasts to the shape
        of the product and is not read if `beta` is 0. Of bools, the product is "and" and the sum "or"."""
    @overload
    def addr(self, beta: Number | _complex, alpha: Number | _complex, vec1: Tensor, vec2: Tensor) -> Tensor: ...
    @overload
    def addr(self, beta: Number | _complex, vec1: Tensor, vec2: Tensor) -> Tensor: ...
    @overload
    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1) -> Tensor:
        """The sum of a matrix and an outer product: `beta * self + alpha * outer(vec1, vec2)`. `self` broadcasts to the shape
        of the product and is not read if `beta` is 0. Of bools, the product is "and" and the sum "or"."""
    @overload
    def addr_(self, beta: Number | _complex, alpha: Number | _complex, vec1: Tensor, vec2: Tensor) -> Tensor: ...
    @overload
    def addr_(self, beta: Number | _complex, vec1: Tensor, vec2: Tensor) -> Tensor: ...
    def adjoint(self) -> Tensor:
        """The last two dimensions swapped, conjugated."""
    @overload
    def all(self) -> Tensor:
        """Whether every element is not zero; true for no elements."""
    @overload
    def all(self, dim: _size | None = None, keepdim: _bool = False) -> Tensor: ...
    @overload
    def all(self, dim: _int, keepdim: _bool = False) -> Tensor: ...
    def allclose(self, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _bool:
        """Whether all elements are close, as `isclose`."""
    def amax(self, dim: _int | _size | None = (), keepdim: _bool = False) -> Tensor:
        """The largest elements over the dimensions `dim` (all if empty). Equal ones share the gradient evenly."""
    def amin(self, dim: _int | _size | None = (), keepdim: _bool = False) -> Tensor:
        """The smallest elements over the dimensions `dim` (all if empty). Equal ones share the gradient evenly."""
    def aminmax(self, *, dim: _int | None = None, keepdim: _bool = False) -> return_types.aminmax:
        """The smallest and the largest elements along `dim`, or of all. Equal ones share the gradient evenly."""
    def angle(self) -> Tensor:
        """The angle with the positive real axis, in `[-π, π]`; of real numbers 0 or π, with gradient 0."""
    @overload
    def any(self) -> Tensor:
        """Whether any element is not zero; false for no elements."""
    @overload
    def any(self, dim: _size | None = None, keepdim: _bool = False) -> Tensor: ...
    @overload
    def any(self, dim: _int, keepdim: _bool = False) -> Tensor: ...
    def arccos(self) -> Tensor:
        """The inverse cosine, in `[0, π]`; NaN for real numbers outside `[-1, 1]`."""
    def arccos_(self) -> Tensor:
        """The inverse cosine, in `[0, π]`; NaN for real numbers outside `[-1, 1]`."""
    def arccosh(self) -> Tensor:
        """The inverse hyperbolic cosine; NaN for real numbers below 1."""
    def arccosh_(self) -> Tensor:
        """The inverse hyperbolic cosine; NaN for real numbers below 1."""
    def arcsin(self) -> Tensor:
        """The inverse sine, in `[-π/2, π/2]`; NaN for real numbers outside `[-1, 1]`."""
    def arcsin_(self) -> Tensor:
        """The inverse sine, in `[-π/2, π/2]`; NaN for real numbers outside `[-1, 1]`."""
    def arcsinh(self) -> Tensor:
        """The inverse hyperbolic sine."""
    def arcsinh_(self) -> Tensor:
        """The inverse hyperbolic sine."""
    def arctan(self) -> Tensor:
        """The inverse tangent, in `[-π/2, π/2]`."""
    def arctan2(self, other: Tensor) -> Tensor:
        """The angle of the point `(other, self)` with the positive first axis, in `[-π, π]`. Integers give the
        default floating dtype. At the origin the gradient is 0."""
    def arctan2_(self, other: Tensor) -> Tensor:
        """The angle of the point `(other, self)` with the positive first axis, in `[-π, π]`. Integers give the
        default floating dtype. At the origin the gradient is 0."""
    def arctan_(self) -> Tensor:
        """The inverse tangent, in `[-π/2, π/2]`."""
    def arctanh(self) -> Tensor:
        """The inverse hyperbolic tangent; NaN for real numbers outside `[-1, 1]`."""
    def arctanh_(self) -> Tensor:
        """The inverse hyperbolic tangent; NaN for real numbers outside `[-1, 1]`."""
    def argmax(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """The index of the first largest element along `dim`, or in the flattened tensor."""
    def argmin(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """The index of the first smallest element along `dim`, or in the flattened tensor."""
    @overload
    def argsort(self, *, stable: _bool, dim: _int = -1, descending: _bool = False) -> Tensor:
        """As `argsort`, which is always stable."""
    @overload
    def argsort(self, dim: _int = -1, descending: _bool = False) -> Tensor: ...
    def argwhere(self) -> Tensor:
        """As `nonzero`."""
    def as_strided(self, size: _size, stride: _size, storage_offset: _int | None = None) -> Tensor:
        """A view by explicit sizes, strides and offset into the storage (in elements)."""
    def as_strided_(self, size: _size, stride: _size, storage_offset: _int | None = None) -> Tensor:
        """Lets this tensor itself see its storage by explicit sizes, strides and offset (in elements)."""
    def as_strided_scatter(self, src: Tensor, size: _size, stride: _size, storage_offset: _int | None = None) -> Tensor:
        """A copy of `self`, in the same order of memory, with `src` where a view by explicit sizes, strides and offset into the
        storage (in elements) shows it. Where several indices of the view mean one element, the last of them counts."""
    def asin(self) -> Tensor:
        """The inverse sine, in `[-π/2, π/2]`; NaN for real numbers outside `[-1, 1]`."""
    def asin_(self) -> Tensor:
        """The inverse sine, in `[-π/2, π/2]`; NaN for real numbers outside `[-1, 1]`."""
    def asinh(self) -> Tensor:
        """The inverse hyperbolic sine."""
    def asinh_(self) -> Tensor:
        """The inverse hyperbolic sine."""
    def atan(self) -> Tensor:
        """The inverse tangent, in `[-π/2, π/2]`."""
    def atan2(self, other: Tensor) -> Tensor:
        """The angle of the point `(other, self)` with the positive first axis, in `[-π, π]`. Integers give the
        default floating dtype. At the origin the gradient is 0."""
    def atan2_(self, other: Tensor) -> Tensor:
        """The angle of the point `(other, self)` with the positive first axis, in `[-π, π]`. Integers give the
        default floating dtype. At the origin the gradient is 0."""
    def atan_(self) -> Tensor:
        """The inverse tangent, in `[-π/2, π/2]`."""
    def atanh(self) -> Tensor:
        """The inverse hyperbolic tangent; NaN for real numbers outside `[-1, 1]`."""
    def atanh_(self) -> Tensor:
        """The inverse hyperbolic tangent; NaN for real numbers outside `[-1, 1]`."""
    @overload
    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1) -> Tensor:
        """`beta * self + alpha * bmm(batch1, batch2)`; `self` broadcasts and is not read if `beta` is 0."""
    @overload
    def baddbmm(self, beta: Number | _complex, alpha: Number | _complex, batch1: Tensor, batch2: Tensor) -> Tensor: ...
    @overload
    def baddbmm(self, beta: Number | _complex, batch1: Tensor, batch2: Tensor) -> Tensor: ...
    @overload
    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1) -> Tensor:
        """`beta * self + alpha * bmm(batch1, batch2)`; `self` broadcasts and is not read if `beta` is 0."""
    @overload
    def baddbmm_(self, beta: Number | _complex, alpha: Number | _complex, batch1: Tensor, batch2: Tensor) -> Tensor: ...
    @overload
    def baddbmm_(self, beta: Number | _complex, batch1: Tensor, batch2: Tensor) -> Tensor: ...
    @overload
    def bernoulli(self, *, generator: Generator | None = None) -> Tensor:
        """Ones with the probabilities `self`, else zeros."""
    @overload
    def bernoulli(self, p: _float, *, generator: Generator | None = None) -> Tensor: ...
    @overload
    def bernoulli_(self, p: Tensor, *, generator: Generator | None = None) -> Tensor:
        """Fills with ones of the probabilities `p` (broadcast), else zeros."""
    @overload
    def bernoulli_(self, p: _float = 0.5, *, generator: Generator | None = None) -> Tensor: ...
    def bincount(self, weights: Tensor | None = None, minlength: _int = 0) -> Tensor:
        """How often each number from 0 up to the largest occurs in a vector (at least `minlength` counts); with `weights` the
        sum of the weights of its indices."""
    @overload
    def bitwise_and(self, other: Tensor) -> Tensor:
        """The bits set in both; for bool "and"."""
    @overload
    def bitwise_and(self, other: Number | _complex) -> Tensor: ...
    @overload
    def bitwise_and_(self, other: Tensor) -> Tensor:
        """The bits set in both; for bool "and"."""
    @overload
    def bitwise_and_(self, other: Number | _complex) -> Tensor: ...
    @overload
    def bitwise_left_shift(self, other: Tensor) -> Tensor:
        """The bits moved to the left by `other` places: `self * 2^other`, wrapping; 0 if `other` is negative or at
        least the width."""
    @overload
    def bitwise_left_shift(self, other: Number | _complex) -> Tensor: ...
    @overload
    def bitwise_left_shift_(self, other: Tensor) -> Tensor:
        """The bits moved to the left by `other` places: `self * 2^other`, wrapping; 0 if `other` is negative or at
        least the width."""
    @overload
    def bitwise_left_shift_(self, other: Number | _complex) -> Tensor: ...
    def bitwise_not(self) -> Tensor:
        """Every bit flipped; for bool the negation."""
    def bitwise_not_(self) -> Tensor:
        """Every bit flipped; for bool the negation."""
    @overload
    def bitwise_or(self, other: Tensor) -> Tensor:
        """The bits set in at least one; for bool "or"."""
    @overload
    def bitwise_or(self, other: Number | _complex) -> Tensor: ...
    @overload
    def bitwise_or_(self, other: Tensor) -> Tensor:
        """The bits set in at least one; for bool "or"."""
    @overload
    def bitwise_or_(self, other: Number | _complex) -> Tensor: ...
    @overload
    def bitwise_right_shift(self, other: Tensor) -> Tensor:
        """The bits moved to the right by `other` places, keeping the sign: `floor(self / 2^other)`; only the sign
        is left if `other` is negative or at least the width."""
    @overload
    def bitwise_right_shift(self, other: Number | _complex) -> Tensor: ...
    @overload
    def bitwise_right_shift_(self, other: Tensor) -> Tensor:
        """The bits moved to the right by `other` places, keeping the sign: `floor(self / 2^other)`; only the sign
        is left if `other` is negative or at least the width."""
    @overload
    def bitwise_right_shift_(self, other: Number | _complex) -> Tensor: ...
    @overload
    def bitwise_xor(self, other: Tensor) -> Tensor:
        """The bits set in exactly one; for bool "exclusive or"."""
    @overload
    def bitwise_xor(self, other: Number | _complex) -> Tensor: ...
    @overload
    def bitwise_xor_(self, other: Tensor) -> Tensor:
        """The bits set in exactly one; for bool "exclusive or"."""
    @overload
    def bitwise_xor_(self, other: Number | _complex) -> Tensor: ...
    def bmm(self, mat2: Tensor) -> Tensor:
        """The products of the matrices of two batches: (b, n, m) times (b, m, p) gives (b, n, p). Batches do not broadcast;
        dtypes must be equal."""
    @overload
    def broadcast_to(self, size: _size) -> Tensor:
        """Expanded to `size`."""
    @overload
    def broadcast_to(self, *size: _int) -> Tensor: ...
    def cauchy_(self, median: _float = 0.0, sigma: _float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fills with Cauchy numbers."""
    def ccol_indices(self) -> Tensor:
        """Where each compressed column begins, and how many values there are: (*batch, columns + 1)."""
    def ceil(self) -> Tensor:
        """The smallest whole number not below each element; integers are copied. The gradient is 0."""
    def ceil_(self) -> Tensor:
        """The smallest whole number not below each element; integers are copied. The gradient is 0."""
    def cholesky_inverse(self, upper: _bool = False) -> Tensor:
        """The inverse of the matrices `A` of which `self` is a Cholesky factor: the lower `L` with `A = L L^H`, or with
        `upper` the upper `R` with `A = R^H R`."""
    def cholesky_solve(self, input2: Tensor, upper: _bool = False) -> Tensor:
        """The solution `X` of `A X = self`, where `input2` is a Cholesky factor of `A`: the lower `L` with `A = L L^H`, or
        with `upper` the upper `R` with `A = R^H R`. Only that triangle of the factor is read; batches broadcast."""
    def chunk(self, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        """At most `chunks` splits of equal size along `dim`, the last one smaller if it does not divide."""
    @overload
    def clamp(self, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
        """Limits element by element to `min..=max`, tensors that broadcast; as `clamp` with numbers, but an element that equals
        one of its limits shares the gradient with it in halves."""
    @overload
    def clamp(self, min: Number | _complex | None = None, max: Number | _complex | None = None) -> Tensor: ...
    @overload
    def clamp_(self, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
        """Limits element by element to `min..=max`, tensors that broadcast; as `clamp` with numbers, but an element that equals
        one of its limits shares the gradient with it in halves."""
    @overload
    def clamp_(self, min: Number | _complex | None = None, max: Number | _complex | None = None) -> Tensor: ...
    @overload
    def clamp_max(self, max: Tensor) -> Tensor:
        """Limits from above element by element; equal elements share the gradient in halves."""
    @overload
    def clamp_max(self, max: Number | _complex) -> Tensor: ...
    @overload
    def clamp_max_(self, max: Tensor) -> Tensor:
        """Limits from above element by element; equal elements share the gradient in halves."""
    @overload
    def clamp_max_(self, max: Number | _complex) -> Tensor: ...
    @overload
    def clamp_min(self, min: Tensor) -> Tensor:
        """Limits from below element by element; equal elements share the gradient in halves."""
    @overload
    def clamp_min(self, min: Number | _complex) -> Tensor: ...
    @overload
    def clamp_min_(self, min: Tensor) -> Tensor:
        """Limits from below element by element; equal elements share the gradient in halves."""
    @overload
    def clamp_min_(self, min: Number | _complex) -> Tensor: ...
    @overload
    def clip(self, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
        """Limits element by element to `min..=max`, tensors that broadcast; as `clamp` with numbers, but an element that equals
        one of its limits shares the gradient with it in halves."""
    @overload
    def clip(self, min: Number | _complex | None = None, max: Number | _complex | None = None) -> Tensor: ...
    @overload
    def clip_(self, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
        """Limits element by element to `min..=max`, tensors that broadcast; as `clamp` with numbers, but an element that equals
        one of its limits shares the gradient with it in halves."""
    @overload
    def clip_(self, min: Number | _complex | None = None, max: Number | _complex | None = None) -> Tensor: ...
    def clone(self, *, memory_format: memory_format | None = None) -> Tensor:
        """Copies the elements into a new tensor that keeps the order of dimensions in memory, or takes
        `memory_format`'s."""
    def coalesce(self) -> Tensor:
        """The tensor coalesced: coordinates in order, each once, values of equal ones added; the tensor itself if it is coalesced."""
    def col_indices(self) -> Tensor:
        """The column of each value of compressed rows: (*batch, n)."""
    def conj(self) -> Tensor:
        """The complex conjugates: a view of complex tensors, which computes nothing; real tensors are returned as they are."""
    def conj_physical(self) -> Tensor:
        """The complex conjugate of every element, computed at once; real tensors are returned as they are."""
    def conj_physical_(self) -> Tensor:
        """Replaces every element by its complex conjugate. Real tensors keep their elements, and count as written to."""
    def contiguous(self, *, memory_format: memory_format = contiguous_format) -> Tensor:
        """The elements in `memory_format`'s order in memory: the tensor itself if they lie so already."""
    def copy_(self, src: Tensor | Number | _complex, non_blocking: _bool = False) -> Tensor:
        """Writes `src`, converted and broadcast, into `self`."""
    @overload
    def copysign(self, other: Tensor) -> Tensor:
        """The size of `self` with the sign of `other` (of zero and NaN too). By `self` the gradient at 0 is 0."""
    @overload
    def copysign(self, other: Number | _complex) -> Tensor: ...
    @overload
    def copysign_(self, other: Tensor) -> Tensor:
        """The size of `self` with the sign of `other` (of zero and NaN too). By `self` the gradient at 0 is 0."""
    @overload
    def copysign_(self, other: Number | _complex) -> Tensor: ...
    def corrcoef(self) -> Tensor:
        """Pearson's correlations of the variables, their covariances divided by their deviations: (m, n) gives (m, m), one variable
        a number. Kept within -1 and 1, complex ones in both parts."""
    def cos(self) -> Tensor:
        """The cosine."""
    def cos_(self) -> Tensor:
        """The cosine."""
    def cosh(self) -> Tensor:
        """The hyperbolic cosine: `(e^self + e^-self) / 2`."""
    def cosh_(self) -> Tensor:
        """The hyperbolic cosine: `(e^self + e^-self) / 2`."""
    @overload
    def count_nonzero(self, dim: _int | None = None) -> Tensor:
        """How many elements are not zero, over `dim` or all dimensions, as int64."""
    @overload
    def count_nonzero(self, dim: _size) -> Tensor: ...
    @overload
    def count_nonzero(self, *dim: _int) -> Tensor: ...
    def cov(self, *, correction: _int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
        """The covariances of the variables, with the sums of products divided by the number of observations less `correction`:
        (m, n) gives (m, m), one variable a number. `fweights` says how often each observation was made, `aweights` how much it
        says. Too few observations give infinities or NaN, and a warning."""
    def cross(self, other: Tensor, dim: _int | None = None) -> Tensor:
        """The cross product of vectors of length 3 along `dim`. Without `dim` it is along the first dimension of size 3, which
        is deprecated; `torch.linalg.cross` is preferred."""
    def crow_indices(self) -> Tensor:
        """Where each compressed row begins, and how many values there are: (*batch, rows + 1)."""
    def cummax(self, dim: _int) -> return_types.cummax:
        """The running maximum along `dim` and where it was last reached; NaN stays."""
    def cummin(self, dim: _int) -> return_types.cummin:
        """The running minimum along `dim` and where it was last reached; NaN stays."""
    def cumprod(self, dim: _int, *, dtype: _dtype | None = None) -> Tensor:
        """The running product along `dim`. Integers and bools multiply in int64 unless `dtype` is given."""
    def cumprod_(self, dim: _int, *, dtype: _dtype | None = None) -> Tensor:
        """The running product along `dim`. Integers and bools multiply in int64 unless `dtype` is given."""
    def cumsum(self, dim: _int, *, dtype: _dtype | None = None) -> Tensor:
        """The running sum along `dim`: `out[i] = self[0] + ... + self[i]`. Integers and bools sum in int64 unless
        `dtype` is given."""
    def cumsum_(self, dim: _int, *, dtype: _dtype | None = None) -> Tensor:
        """The running sum along `dim`: `out[i] = self[0] + ... + self[i]`. Integers and bools sum in int64 unless
        `dtype` is given."""
    def deg2rad(self) -> Tensor:
        """Degrees to radians: `self * π / 180`."""
    def deg2rad_(self) -> Tensor:
        """Degrees to radians: `self * π / 180`."""
    def dense_dim(self) -> _int:
        """How many dimensions the values have of their own; all of a strided tensor."""
    def det(self) -> Tensor:
        """The determinant (*) of square matrices (*, n, n); that of a matrix of order 0 is 1. The gradient is `det(A)^* A^-H`
        times that of the result, and at singular matrices the adjugate, which is computed from the singular values.

        # Errors
        `RuntimeError` for matrices that are not square; `NotImplementedError` for half precision and integer dtypes."""
    def detach(self) -> Tensor:
        """The same memory without history; in-place writes to either are seen by both."""
    def diag(self, diagonal: _int = 0) -> Tensor:
        """Of a vector the matrix that has it on a diagonal, of a matrix a copy of the diagonal; `diagonal` steps above the main
        one."""
    def diag_embed(self, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
        """Zeros with the last dimension of `self` on the diagonals, `offset` steps above the main one, of the planes of the
        result's dimensions `dim1` and `dim2`."""
    def diagflat(self, offset: _int = 0) -> Tensor:
        """The matrix that has all elements, row by row, on the diagonal `offset` steps above the main one."""
    def diagonal(self, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """The diagonals of the planes of `dim1` and `dim2`, `offset` steps above the main one, as the last dimension."""
    def diagonal_scatter(self, src: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """A copy of `self` with `src` on the diagonals of the planes of `dim1` and `dim2`, `offset` steps above the main one;
        the last dimension of `src` goes along them."""
    def diff(self, n: _int = 1, dim: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
        """The `n`-th differences along `dim`, `out[i] = self[i + 1] - self[i]` taken `n` times, of what `prepend`, `self` and
        `append` are together. Of bools, whether neighbours differ."""
    def digamma(self) -> Tensor:
        """The logarithmic derivative of the gamma function."""
    def digamma_(self) -> Tensor:
        """The logarithmic derivative of the gamma function."""
    def dist(self, other: Tensor, p: Number | _complex = 2) -> Tensor:
        """The norm of order `p` of `self - other` over all elements, a 0-dimensional tensor. Shapes broadcast, dtypes promote.
        Where the two are equal the gradient is 0."""
    @overload
    def div(self, other: Tensor | Number | _complex) -> Tensor:
        """Divides by `other`: `out[i] = self[i] / other[i]`. Integers and bools give the default floating dtype;
        division by zero gives an infinity or NaN."""
    @overload
    def div(self, other: Tensor | Number | _complex, *, rounding_mode: str | None) -> Tensor: ...
    @overload
    def div_(self, other: Tensor | Number | _complex) -> Tensor:
        """Divides by `other`: `out[i] = self[i] / other[i]`. Integers and bools give the default floating dtype;
        division by zero gives an infinity or NaN."""
    @overload
    def div_(self, other: Tensor | Number | _complex, *, rounding_mode: str | None) -> Tensor: ...
    @overload
    def divide(self, other: Tensor | Number | _complex) -> Tensor:
        """Divides by `other`: `out[i] = self[i] / other[i]`. Integers and bools give the default floating dtype;
        division by zero gives an infinity or NaN."""
    @overload
    def divide(self, other: Tensor | Number | _complex, *, rounding_mode: str | None) -> Tensor: ...
    @overload
    def divide_(self, other: Tensor | Number | _complex) -> Tensor:
        """Divides by `other`: `out[i] = self[i] / other[i]`. Integers and bools give the default floating dtype;
        division by zero gives an infinity or NaN."""
    @overload
    def divide_(self, other: Tensor | Number | _complex, *, rounding_mode: str | None) -> Tensor: ...
    def dot(self, tensor: Tensor) -> Tensor:
        """The dot product of two vectors of one length: `sum over i of self[i] * tensor[i]`, without conjugation. Empty
        vectors give 0."""
    @overload
    def dsplit(self, sections: _int) -> tuple[Tensor, ...]:
        """`sections` equal splits in depth: along the third dimension."""
    @overload
    def dsplit(self, indices: _size) -> tuple[Tensor, ...]: ...
    @overload
    def dsplit(self, *indices: _int) -> tuple[Tensor, ...]: ...
    @overload
    def eq(self, other: Tensor) -> Tensor:
        """Whether `self == other`, element by element; never for NaN. Shapes broadcast; dtypes promote."""
    @overload
    def eq(self, other: Number | _complex) -> Tensor: ...
    @overload
    def eq_(self, other: Tensor) -> Tensor:
        """Whether `self == other`, element by element; never for NaN. Shapes broadcast; dtypes promote."""
    @overload
    def eq_(self, other: Number | _complex) -> Tensor: ...
    def equal(self, other: Tensor) -> _bool:
        """Whether both tensors have the same shape and the same elements (after promotion; NaN never equals)."""
    def erf(self) -> Tensor:
        """The error function: `2/sqrt(π) * integral of e^(-t^2) from 0 to self`. Integers give the default floating dtype."""
    def erf_(self) -> Tensor:
        """The error function: `2/sqrt(π) * integral of e^(-t^2) from 0 to self`. Integers give the default floating dtype."""
    def erfc(self) -> Tensor:
        """`1 - erf(self)`, without cancellation. Integers give the default floating dtype."""
    def erfc_(self) -> Tensor:
        """`1 - erf(self)`, without cancellation. Integers give the default floating dtype."""
    def erfinv(self) -> Tensor:
        """The inverse of the error function: infinite at ±1, NaN beyond. Integers give the default floating dtype."""
    def erfinv_(self) -> Tensor:
        """The inverse of the error function: infinite at ±1, NaN beyond. Integers give the default floating dtype."""
    def exp(self) -> Tensor:
        """`e^self`. Integers give the default floating dtype."""
    def exp2(self) -> Tensor:
        """`2^self`. Integers give the default floating dtype."""
    def exp2_(self) -> Tensor:
        """`2^self`. Integers give the default floating dtype."""
    def exp_(self) -> Tensor:
        """`e^self`. Integers give the default floating dtype."""
    @overload
    def expand(self, size: _size, *, implicit: _bool = False) -> Tensor:
        """Dimensions of size 1 repeated without copying; -1 keeps a size."""
    @overload
    def expand(self, *size: _int, implicit: _bool = False) -> Tensor: ...
    def expand_as(self, other: Tensor) -> Tensor:
        """Expanded to the shape of `other`."""
    def expm1(self) -> Tensor:
        """`e^self - 1`, exact near 0. Integers give the default floating dtype."""
    def expm1_(self) -> Tensor:
        """`e^self - 1`, exact near 0. Integers give the default floating dtype."""
    def exponential_(self, lambd: _float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fills with exponential numbers of rate `lambd`."""
    @overload
    def fill_(self, value: Tensor) -> Tensor:
        """Writes the element of the 0-dim `value` into every element."""
    @overload
    def fill_(self, value: Number | _complex) -> Tensor: ...
    def fill_diagonal_(self, fill_value: Number | _complex, wrap: _bool = False) -> Tensor:
        """Writes `fill_value` at the elements whose indices are equal in all dimensions.

        With `wrap` the diagonal of a matrix (h, w) of more rows than columns begins anew after every `w + 1` rows, as NumPy's does.
        Tensors of more than two dimensions have equal sizes.

        # Errors
        `RuntimeError` for tensors of less than two dimensions, or of more with different sizes."""
    def fix(self) -> Tensor:
        """The whole part, towards zero; integers are copied. The gradient is 0."""
    def fix_(self) -> Tensor:
        """The whole part, towards zero; integers are copied. The gradient is 0."""
    def flatten(self, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
        """The dimensions `start_dim..=end_dim` as one."""
    @overload
    def flip(self, dims: _size) -> Tensor:
        """The order of elements reversed along `dims`."""
    @overload
    def flip(self, *dims: _int) -> Tensor: ...
    def fliplr(self) -> Tensor:
        """Columns in reverse order."""
    def flipud(self) -> Tensor:
        """Rows in reverse order."""
    @overload
    def float_power(self, exponent: Tensor) -> Tensor:
        """The power in double precision: `out[i] = self[i]^exponent[i]` as `float64`, or as `complex128` if either is complex."""
    @overload
    def float_power(self, exponent: Number | _complex) -> Tensor: ...
    @overload
    def float_power_(self, exponent: Tensor) -> Tensor:
        """Replaces the elements, which must be of double precision, by their powers."""
    @overload
    def float_power_(self, exponent: Number | _complex) -> Tensor: ...
    def floor(self) -> Tensor:
        """The largest whole number not above each element; integers are copied. The gradient is 0."""
    def floor_(self) -> Tensor:
        """The largest whole number not above each element; integers are copied. The gradient is 0."""
    def floor_divide(self, other: Tensor | Number | _complex) -> Tensor:
        """The floor of the quotient, as Python's `//`. Has no derivative."""
    def floor_divide_(self, other: Tensor | Number | _complex) -> Tensor:
        """The floor of the quotient, as Python's `//`. Has no derivative."""
    def fmax(self, other: Tensor) -> Tensor:
        """The larger of the two; if one is NaN the other. Equal elements share the gradient in halves."""
    def fmin(self, other: Tensor) -> Tensor:
        """The smaller of the two; if one is NaN the other. Equal elements share the gradient in halves."""
    @overload
    def fmod(self, other: Tensor) -> Tensor:
        """The remainder with the sign of `self`: `self - other * trunc(self / other)`, as C's `fmod`.
        Integers refuse a zero divisor; for floating-point numbers it gives NaN."""
    @overload
    def fmod(self, other: Number | _complex) -> Tensor: ...
    @overload
    def fmod_(self, other: Tensor) -> Tensor:
        """The remainder with the sign of `self`: `self - other * trunc(self / other)`, as C's `fmod`.
        Integers refuse a zero divisor; for floating-point numbers it gives NaN."""
    @overload
    def fmod_(self, other: Number | _complex) -> Tensor: ...
    def frac(self) -> Tensor:
        """What rounding towards zero leaves: `self - trunc(self)`."""
    def frac_(self) -> Tensor:
        """What rounding towards zero leaves: `self - trunc(self)`."""
    def frexp(self) -> return_types.frexp:
        """Each number as a mantissa, `1/2 <= |mantissa| < 1`, and an exponent (`int32`): `self = mantissa * 2^exponent`. Zeros, infinities and NaN
        are their own mantissas, with exponent 0."""
    def gather(self, dim: _int, index: Tensor, *, sparse_grad: _bool = False) -> Tensor:
        """Elements along `dim` at the indices `index`, which has the shape of the result:
        `out[i][j] = self[index[i][j]][j]` for `dim` 0."""
    def gcd(self, other: Tensor) -> Tensor:
        """The greatest common divisor, not negative (but of the smallest integer and 0); 0 of two zeros. Integers only."""
    def gcd_(self, other: Tensor) -> Tensor:
        """The greatest common divisor, not negative (but of the smallest integer and 0); 0 of two zeros. Integers only."""
    @overload
    def ge(self, other: Tensor) -> Tensor:
        """Whether `self >= other`, element by element; never for NaN. Complex numbers are refused."""
    @overload
    def ge(self, other: Number | _complex) -> Tensor: ...
    @overload
    def ge_(self, other: Tensor) -> Tensor:
        """Whether `self >= other`, element by element; never for NaN. Complex numbers are refused."""
    @overload
    def ge_(self, other: Number | _complex) -> Tensor: ...
    def geometric_(self, p: _float, *, generator: Generator | None = None) -> Tensor:
        """Fills with the numbers of trials up to the first success of probability `p`."""
    def geqrf(self) -> return_types.geqrf:
        """The QR decomposition of matrices (*, m, n) in LAPACK's compact form: `a` holds R in its upper triangle, and below it
        the Householder vectors `v` without their leading ones; `tau` (*, min(m, n)) holds the factors of the reflections
        `H = I - tau v v^H`. The orthogonal factor is `Q = H1 H2 ... Hk`.

        # Errors
        `RuntimeError` for fewer than two dimensions; `NotImplementedError` for half precision and integer dtypes."""
    def ger(self, vec2: Tensor) -> Tensor:
        """The outer product of two vectors: `out[i, j] = self[i] * vec2[j]`, of shape (n, m) for vectors of lengths n and m.
        Dtypes promote."""
    @overload
    def greater(self, other: Tensor) -> Tensor:
        """Whether `self > other`, element by element; never for NaN. Complex numbers are refused."""
    @overload
    def greater(self, other: Number | _complex) -> Tensor: ...
    @overload
    def greater_(self, other: Tensor) -> Tensor:
        """Whether `self > other`, element by element; never for NaN. Complex numbers are refused."""
    @overload
    def greater_(self, other: Number | _complex) -> Tensor: ...
    @overload
    def greater_equal(self, other: Tensor) -> Tensor:
        """Whether `self >= other`, element by element; never for NaN. Complex numbers are refused."""
    @overload
    def greater_equal(self, other: Number | _complex) -> Tensor: ...
    @overload
    def greater_equal_(self, other: Tensor) -> Tensor:
        """Whether `self >= other`, element by element; never for NaN. Complex numbers are refused."""
    @overload
    def greater_equal_(self, other: Number | _complex) -> Tensor: ...
    @overload
    def gt(self, other: Tensor) -> Tensor:
        """Whether `self > other`, element by element; never for NaN. Complex numbers are refused."""
    @overload
    def gt(self, other: Number | _complex) -> Tensor: ...
    @overload
    def gt_(self, other: Tensor) -> Tensor:
        """Whether `self > other`, element by element; never for NaN. Complex numbers are refused."""
    @overload
    def gt_(self, other: Number | _complex) -> Tensor: ...
    def hardshrink(self, lambd: Number | _complex = 0.5) -> Tensor:
        """`self` where its absolute value is above `lambd`, else 0; NaN stays. The gradient is 0 where 0 is taken."""
    @overload
    def hash_tensor(self, dim: _int | _size | None = (), *, keepdim: _bool = False, mode: _int = 0) -> Tensor:
        """The bits of all elements over `dim` (all dimensions if empty) laid over each other by "exclusive or": of whole numbers
        those of their int64, of others those of their double. Gives uint64; `mode` has to be 0."""
    @overload
    def hash_tensor(self, *dim: _int, keepdim: _bool = False, mode: _int = 0) -> Tensor: ...
    def heaviside(self, values: Tensor) -> Tensor:
        """The step function: 0 below 0, 1 above, `values` at 0; 0 for NaN. Both inputs have one dtype."""
    def heaviside_(self, values: Tensor) -> Tensor:
        """The step function: 0 below 0, 1 above, `values` at 0; 0 for NaN. Both inputs have one dtype."""
    def histc(self, bins: _int = 100, min: Number | _complex = 0, max: Number | _complex = 0) -> Tensor:
        """How many elements lie in each of `bins` bins of equal width between `min` and `max`; if these are equal, between the
        smallest and the largest element. Nothing gives zeros."""
    @overload
    def histogram(self, bins: Tensor, *, weight: Tensor | None = None, density: _bool = False) -> return_types.histogram:
        """As `histogram` with the edges of the bins, in ascending order."""
    @overload
    def histogram(self, bins: _int = 100, *, range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False) -> return_types.histogram: ...
    @overload
    def hsplit(self, sections: _int) -> tuple[Tensor, ...]:
        """`sections` equal splits by columns: along the second dimension, of a vector along its only one."""
    @overload
    def hsplit(self, indices: _size) -> tuple[Tensor, ...]: ...
    @overload
    def hsplit(self, *indices: _int) -> tuple[Tensor, ...]: ...
    def hypot(self, other: Tensor) -> Tensor:
        """The length of the hypotenuse: `sqrt(self^2 + other^2)` without overflow."""
    def hypot_(self, other: Tensor) -> Tensor:
        """The length of the hypotenuse: `sqrt(self^2 + other^2)` without overflow."""
    def i0(self) -> Tensor:
        """The modified Bessel function of the first kind, order 0; NaN at infinity. Integers give the default floating dtype."""
    def i0_(self) -> Tensor:
        """The modified Bessel function of the first kind, order 0; NaN at infinity. Integers give the default floating dtype."""
    def igamma(self, other: Tensor) -> Tensor:
        """The regularised lower incomplete gamma function `P(self, other)`; NaN for negative arguments. It has no derivative by `self`."""
    def igamma_(self, other: Tensor) -> Tensor:
        """The regularised lower incomplete gamma function `P(self, other)`; NaN for negative arguments. It has no derivative by `self`."""
    def igammac(self, other: Tensor) -> Tensor:
        """The regularised upper incomplete gamma function `Q(self, other) = 1 - P(self, other)`; NaN for negative arguments. It has no
        derivative by `self`."""
    def igammac_(self, other: Tensor) -> Tensor:
        """The regularised upper incomplete gamma function `Q(self, other) = 1 - P(self, other)`; NaN for negative arguments. It has no
        derivative by `self`."""
    def index_add(self, dim: _int, index: Tensor, source: Tensor, *, alpha: Number | _complex = 1) -> Tensor:
        """Adds slices: `self[:, index[j]] += alpha * source[:, j]` along `dim`."""
    def index_add_(self, dim: _int, index: Tensor, source: Tensor, *, alpha: Number | _complex = 1) -> Tensor:
        """Adds slices: `self[:, index[j]] += alpha * source[:, j]` along `dim`."""
    def index_copy(self, dim: _int, index: Tensor, source: Tensor) -> Tensor:
        """Writes slices: `self[:, index[j]] = source[:, j]` along `dim`."""
    def index_copy_(self, dim: _int, index: Tensor, source: Tensor) -> Tensor:
        """Writes slices: `self[:, index[j]] = source[:, j]` along `dim`."""
    @overload
    def index_fill(self, dim: _int, index: Tensor, value: Tensor) -> Tensor:
        """Writes the 0-dim `value` into the slices `index` along `dim`."""
    @overload
    def index_fill(self, dim: _int, index: Tensor, value: Number | _complex) -> Tensor: ...
    @overload
    def index_fill_(self, dim: _int, index: Tensor, value: Tensor) -> Tensor:
        """Writes the 0-dim `value` into the slices `index` along `dim`."""
    @overload
    def index_fill_(self, dim: _int, index: Tensor, value: Number | _complex) -> Tensor: ...
    def index_put(self, indices: tuple[Tensor | None, ...] | list[Tensor | None], values: Tensor, accumulate: _bool = False) -> Tensor:
        """Writes `values`, broadcast, at the indices that `indices` name (see `index`); with `accumulate` adds them."""
    def index_put_(self, indices: tuple[Tensor | None, ...] | list[Tensor | None], values: Tensor, accumulate: _bool = False) -> Tensor:
        """Writes `values`, broadcast, at the indices that `indices` name (see `index`); with `accumulate` adds them."""
    def index_reduce(self, dim: _int, index: Tensor, source: Tensor, reduce: str, *, include_self: _bool = True) -> Tensor:
        """Joins the slices of `source` with those at the indices `index` along `dim`: `reduce` is "prod", "mean", "amax" or "amin";
        what is there takes part if `include_self`. Gradients are those of `scatter_reduce`."""
    def index_reduce_(self, dim: _int, index: Tensor, source: Tensor, reduce: str, *, include_self: _bool = True) -> Tensor:
        """Joins the slices of `source` with those at the indices `index` along `dim`: `reduce` is "prod", "mean", "amax" or "amin";
        what is there takes part if `include_self`. Gradients are those of `scatter_reduce`."""
    def index_select(self, dim: _int, index: Tensor) -> Tensor:
        """Slices along `dim` at the indices `index` (a vector): `out[:, j] = self[:, index[j]]`."""
    def indices(self) -> Tensor:
        """The coordinates of a coalesced tensor: (`sparse_dim`, n)."""
    def inner(self, other: Tensor) -> Tensor:
        """Sums of products over the last dimensions of both tensors: shapes (*a, k) and (*b, k) give (*a, *b). For two vectors
        this is the dot product; a 0-dimensional tensor multiplies every element of the other."""
    def inverse(self) -> Tensor:
        """The inverse of square matrices (*, n, n).

        # Errors
        `LinAlgError` for a singular matrix; `RuntimeError` for matrices that are not square; `NotImplementedError` for half
        precision and integer dtypes."""
    def is_coalesced(self) -> _bool:
        """Whether the coordinates are known to be in order, each once."""
    def is_nonzero(self) -> _bool:
        """Whether the only element is not zero."""
    def isclose(self, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> Tensor:
        """Whether `|self - other| <= atol + rtol * |other|`, element by element. Equal infinities are close; NaN
        only to NaN and with `equal_nan`. Both tensors have one dtype."""
    def isfinite(self) -> Tensor:
        """Whether each element is neither infinite nor NaN; of a complex number, whether both parts are."""
    def isinf(self) -> Tensor:
        """Whether each element is infinite; of a complex number, whether either part is."""
    def isnan(self) -> Tensor:
        """Whether each element is NaN; of a complex number, whether either part is."""
    def isneginf(self) -> Tensor:
        """Whether each element is minus infinity. Complex numbers are refused."""
    def isposinf(self) -> Tensor:
        """Whether each element is plus infinity. Complex numbers are refused."""
    def isreal(self) -> Tensor:
        """Whether the imaginary part of each element is zero: always, if it has none."""
    def istft(self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, normalized: _bool = False, onesided: _bool | None = None, length: _int | None = None, return_complex: _bool = False) -> Tensor:
        """The inverse of `torch.stft`: frames are transformed back, multiplied by the window, added where they overlap, and
        divided by the sum of the squared windows, which must not vanish. `length` cuts the signal off or pads it with
        zeros."""
    def kron(self, other: Tensor) -> Tensor:
        """The Kronecker product: a block matrix whose blocks are each element of `self` times the whole of `other`. Sizes
        multiply; missing leading dimensions count as 1."""
    def kthvalue(self, k: _int, dim: _int = -1, keepdim: _bool = False) -> return_types.kthvalue:
        """The `k`-th smallest element along `dim` (counted from 1) and its index."""
    def lcm(self, other: Tensor) -> Tensor:
        """The least common multiple, not negative unless it wraps; 0 if either is. Integers only."""
    def lcm_(self, other: Tensor) -> Tensor:
        """The least common multiple, not negative unless it wraps; 0 if either is. Integers only."""
    def ldexp(self, other: Tensor) -> Tensor:
        """Multiplies by a power of two: `out[i] = self[i] * 2^other[i]`. With whole powers the result has the dtype of `self`
        (the default one if that is whole too), and is rounded once."""
    def ldexp_(self, other: Tensor) -> Tensor:
        """Multiplies by a power of two: `out[i] = self[i] * 2^other[i]`. With whole powers the result has the dtype of `self`
        (the default one if that is whole too), and is rounded once."""
    @overload
    def le(self, other: Tensor) -> Tensor:
        """Whether `self <= other`, element by element; never for NaN. Complex numbers are refused."""
    @overload
    def le(self, other: Number | _complex) -> Tensor: ...
    @overload
    def le_(self, other: Tensor) -> Tensor:
        """Whether `self <= other`, element by element; never for NaN. Complex numbers are refused."""
    @overload
    def le_(self, other: Number | _complex) -> Tensor: ...
    @overload
    def lerp(self, end: Tensor, weight: Tensor) -> Tensor:
        """`start + weight * (end - start)`; all three broadcast and have one dtype."""
    @overload
    def lerp(self, end: Tensor, weight: Number | _complex) -> Tensor: ...
    @overload
    def lerp_(self, end: Tensor, weight: Tensor) -> Tensor:
        """`start + weight * (end - start)`; all three broadcast and have one dtype."""
    @overload
    def lerp_(self, end: Tensor, weight: Number | _complex) -> Tensor: ...
    @overload
    def less(self, other: Tensor) -> Tensor:
        """Whether `self < other`, element by element; never for NaN. Complex numbers are refused."""
    @overload
    def less(self, other: Number | _complex) -> Tensor: ...
    @overload
    def less_(self, other: Tensor) -> Tensor:
        """Whether `self < other`, element by element; never for NaN. Complex numbers are refused."""
    @overload
    def less_(self, other: Number | _complex) -> Tensor: ...
    @overload
    def less_equal(self, other: Tensor) -> Tensor:
        """Whether `self <= other`, element by element; never for NaN. Complex numbers are refused."""
    @overload
    def less_equal(self, other: Number | _complex) -> Tensor: ...
    @overload
    def less_equal_(self, other: Tensor) -> Tensor:
        """Whether `self <= other`, element by element; never for NaN. Complex numbers are refused."""
    @overload
    def less_equal_(self, other: Number | _complex) -> Tensor: ...
    def lgamma(self) -> Tensor:
        """The logarithm of the absolute value of the gamma function; infinite at 0 and the negative whole numbers."""
    def lgamma_(self) -> Tensor:
        """The logarithm of the absolute value of the gamma function; infinite at 0 and the negative whole numbers."""
    def log(self) -> Tensor:
        """The natural logarithm; NaN for negative real numbers, -inf at 0. Integers give the default floating dtype."""
    def log10(self) -> Tensor:
        """The logarithm to base 10. Integers give the default floating dtype."""
    def log10_(self) -> Tensor:
        """The logarithm to base 10. Integers give the default floating dtype."""
    def log1p(self) -> Tensor:
        """`ln(1 + self)`, exact near 0. Integers give the default floating dtype."""
    def log1p_(self) -> Tensor:
        """`ln(1 + self)`, exact near 0. Integers give the default floating dtype."""
    def log2(self) -> Tensor:
        """The logarithm to base 2. Integers give the default floating dtype."""
    def log2_(self) -> Tensor:
        """The logarithm to base 2. Integers give the default floating dtype."""
    def log_(self) -> Tensor:
        """The natural logarithm; NaN for negative real numbers, -inf at 0. Integers give the default floating dtype."""
    def log_normal_(self, mean: _float = 1.0, std: _float = 2.0, *, generator: Generator | None = None) -> Tensor:
        """Fills with exponentials of normal numbers."""
    def log_softmax(self, dim: _int, dtype: _dtype | None = None) -> Tensor:
        """`ln(softmax(self, dim))`, computed in `dtype` if one is given, without underflow."""
    def logaddexp(self, other: Tensor) -> Tensor:
        """`ln(e^self + e^other)` without overflow."""
    def logaddexp2(self, other: Tensor) -> Tensor:
        """`log2(2^self + 2^other)` without overflow."""
    def logcumsumexp(self, dim: _int) -> Tensor:
        """`ln` of the running sum of `e^self` along `dim`, without overflow."""
    def logdet(self) -> Tensor:
        """The natural logarithm of the determinant of matrices (*, n, n), of shape (*). It is NaN where a real determinant is
        negative and -inf where it is 0; the determinant of a matrix of order 0 is 1.

        # Errors
        `RuntimeError` for matrices that are not square; `NotImplementedError` for half precision and integer dtypes."""
    def logical_and(self, other: Tensor) -> Tensor:
        """Whether both are not zero; NaN counts as not zero."""
    def logical_and_(self, other: Tensor) -> Tensor:
        """Whether both are not zero; NaN counts as not zero."""
    def logical_not(self) -> Tensor:
        """Whether each element is zero."""
    def logical_not_(self) -> Tensor:
        """Whether each element is zero."""
    def logical_or(self, other: Tensor) -> Tensor:
        """Whether at least one is not zero; NaN counts as not zero."""
    def logical_or_(self, other: Tensor) -> Tensor:
        """Whether at least one is not zero; NaN counts as not zero."""
    def logical_xor(self, other: Tensor) -> Tensor:
        """Whether exactly one is not zero; NaN counts as not zero."""
    def logical_xor_(self, other: Tensor) -> Tensor:
        """Whether exactly one is not zero; NaN counts as not zero."""
    def logit(self, eps: _float | None = None) -> Tensor:
        """`ln(x / (1 - x))` of `self`, limited to `eps..=1 - eps` if `eps` is given and not negative: infinite at 0 and 1, NaN outside, as is
        the gradient there; where the limits hold it is 0."""
    def logit_(self, eps: _float | None = None) -> Tensor:
        """`ln(x / (1 - x))` of `self`, limited to `eps..=1 - eps` if `eps` is given and not negative: infinite at 0 and 1, NaN outside, as is
        the gradient there; where the limits hold it is 0."""
    def logsumexp(self, dim: _int | _size, keepdim: _bool = False) -> Tensor:
        """The logarithm of the sum of exponentials, `ln(sum(e^self))`, over `dim`. It is shifted by the maximum, so that it
        does not overflow. Integers give the default floating dtype; a sum of no elements gives -inf."""
    @overload
    def lt(self, other: Tensor) -> Tensor:
        """Whether `self < other`, element by element; never for NaN. Complex numbers are refused."""
    @overload
    def lt(self, other: Number | _complex) -> Tensor: ...
    @overload
    def lt_(self, other: Tensor) -> Tensor:
        """Whether `self < other`, element by element; never for NaN. Complex numbers are refused."""
    @overload
    def lt_(self, other: Number | _complex) -> Tensor: ...
    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
        """The solution `X` of `A X = self`, where `LU_data` and `LU_pivots` are what `torch.linalg.lu_factor` gives for `A`.
        `torch.linalg.lu_solve`, which takes the factorisation first, is preferred."""
    @overload
    def masked_fill(self, mask: Tensor, value: Tensor) -> Tensor:
        """`value`, a tensor without dimensions, where `mask` (bool, broadcast) holds, else `self`."""
    @overload
    def masked_fill(self, mask: Tensor, value: Number | _complex) -> Tensor: ...
    @overload
    def masked_fill_(self, mask: Tensor, value: Tensor) -> Tensor:
        """`value`, a tensor without dimensions, where `mask` (bool, broadcast) holds, else `self`."""
    @overload
    def masked_fill_(self, mask: Tensor, value: Number | _complex) -> Tensor: ...
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """Writes the elements of `source`, in row-major order, to the indices where `mask` (bool) is true; `self` and `mask`
        broadcast together."""
    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Tensor:
        """Writes the elements of `source`, in row-major order, to the indices where `mask` (bool) is true; `self` and `mask`
        broadcast together."""
    def masked_select(self, mask: Tensor) -> Tensor:
        """The elements where `mask` (bool) is true, in row-major order, as a vector; the shapes broadcast."""
    def matmul(self, other: Tensor) -> Tensor:
        """The matrix product: vectors give a dot product, a matrix and a vector a vector, matrices a matrix; further
        leading dimensions are batches, which broadcast. Dtypes must be equal."""
    def matrix_exp(self) -> Tensor:
        """The matrix exponential `I + A + A^2 / 2! + A^3 / 3! + ...` of matrices (*, n, n), computed in double precision by
        scaling and squaring (N. J. Higham, "The scaling and squaring method for the matrix exponential revisited", 2005).
        Matrices with infinities or NaN give NaN.

        # Errors
        `RuntimeError` for matrices that are not square; `NotImplementedError` for integer dtypes."""
    def matrix_power(self, n: _int) -> Tensor:
        """The `n`-th power of matrices (*, m, m), by repeated squaring. For `n` = 0 it is the identity, for negative `n` a
        power of the inverse.

        # Errors
        `RuntimeError` for matrices that are not square; for negative `n` also `LinAlgError` where there is no inverse."""
    @overload
    def max(self) -> Tensor:
        """The largest of all elements. Equal ones share the gradient evenly."""
    @overload
    def max(self, other: Tensor) -> Tensor: ...
    @overload
    def max(self, dim: _int, keepdim: _bool = False) -> return_types.max: ...
    def maximum(self, other: Tensor) -> Tensor:
        """The larger of the two; NaN if either is. Equal elements share the gradient in halves."""
    @overload
    def mean(self, *, dtype: _dtype | None = None) -> Tensor:
        """The mean of all elements; NaN of none. Integers need `dtype`."""
    @overload
    def mean(self, dim: _int | _size | None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> Tensor: ...
    @overload
    def median(self) -> Tensor:
        """The lower median of all elements; NaN if there is one or no element."""
    @overload
    def median(self, dim: _int, keepdim: _bool = False) -> return_types.median: ...
    @overload
    def min(self) -> Tensor:
        """The smallest of all elements. Equal ones share the gradient evenly."""
    @overload
    def min(self, other: Tensor) -> Tensor: ...
    @overload
    def min(self, dim: _int, keepdim: _bool = False) -> return_types.min: ...
    def minimum(self, other: Tensor) -> Tensor:
        """The smaller of the two; NaN if either is. Equal elements share the gradient in halves."""
    def mm(self, mat2: Tensor) -> Tensor:
        """The product of two matrices: `out[i, j] = sum over k of self[i, k] * mat2[k, j]`; (m, k) times (k, n).
        Integers wrap; dtypes must be equal."""
    def mode(self, dim: _int = -1, keepdim: _bool = False) -> return_types.mode:
        """The most frequent element along `dim` and where it stands last; of equally frequent ones the smallest. Each NaN
        is a value of its own."""
    @overload
    def moveaxis(self, source: _int, destination: _int) -> Tensor:
        """Dimension `source` moved to `destination`."""
    @overload
    def moveaxis(self, source: _size, destination: _size) -> Tensor: ...
    @overload
    def movedim(self, source: _int, destination: _int) -> Tensor:
        """Dimension `source` moved to `destination`."""
    @overload
    def movedim(self, source: _size, destination: _size) -> Tensor: ...
    def msort(self) -> Tensor:
        """The values of `sort` along the first dimension."""
    def mul(self, other: Tensor | Number | _complex) -> Tensor:
        """Multiplies by `other`: `out[i] = self[i] * other[i]`.
        Shapes broadcast; dtypes promote; for bool this is "and"."""
    def mul_(self, other: Tensor | Number | _complex) -> Tensor:
        """Multiplies by `other`: `out[i] = self[i] * other[i]`.
        Shapes broadcast; dtypes promote; for bool this is "and"."""
    def multinomial(self, num_samples: _int, replacement: _bool = False, *, generator: Generator | None = None) -> Tensor:
        """`num_samples` category numbers per row of weights `self` ((n) or (m, n)), with or without replacement."""
    def multiply(self, other: Tensor | Number | _complex) -> Tensor:
        """Multiplies by `other`: `out[i] = self[i] * other[i]`.
        Shapes broadcast; dtypes promote; for bool this is "and"."""
    def multiply_(self, other: Tensor | Number | _complex) -> Tensor:
        """Multiplies by `other`: `out[i] = self[i] * other[i]`.
        Shapes broadcast; dtypes promote; for bool this is "and"."""
    def mv(self, vec: Tensor) -> Tensor:
        """A matrix times a vector: `out[i] = sum over k of self[i, k] * vec[k]`."""
    def mvlgamma(self, p: _int) -> Tensor:
        """The logarithm of the multivariate gamma function of dimension `p`: the sum of `lgamma(self - i/2)` for `i` below `p`, and
        `p (p-1) / 4 ln π`. Integers give the default floating dtype; `p` is at least 1."""
    def mvlgamma_(self, p: _int) -> Tensor:
        """The logarithm of the multivariate gamma function of dimension `p`: the sum of `lgamma(self - i/2)` for `i` below `p`, and
        `p (p-1) / 4 ln π`. Integers give the default floating dtype; `p` is at least 1."""
    def nan_to_num(self, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
        """NaN replaced by `nan` (0), positive infinity by `posinf` (the dtype's largest number) and negative
        infinity by `neginf` (its smallest). The gradient there is 0."""
    def nan_to_num_(self, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
        """NaN replaced by `nan` (0), positive infinity by `posinf` (the dtype's largest number) and negative
        infinity by `neginf` (its smallest). The gradient there is 0."""
    def nanmean(self, dim: _int | _size | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> Tensor:
        """The mean over `dim` (all dimensions if `None`) of what is not NaN."""
    @overload
    def nanmedian(self) -> Tensor:
        """The lower median of all elements that are not NaN; NaN if there is none."""
    @overload
    def nanmedian(self, dim: _int, keepdim: _bool = False) -> return_types.nanmedian: ...
    @overload
    def nanquantile(self, q: Tensor, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = "linear") -> Tensor:
        """As `quantile` of the elements that are numbers; NaN where there are none."""
    @overload
    def nanquantile(self, q: _float, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = "linear") -> Tensor: ...
    def nansum(self, dim: _int | _size | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> Tensor:
        """The sum over `dim` (all dimensions if `None`) with NaN taken as zero. Complex numbers are refused."""
    @overload
    def narrow(self, dim: _int, start: Tensor, length: _int) -> Tensor:
        """As `narrow`, with a 0-dim integer tensor for `start`."""
    @overload
    def narrow(self, dim: _int, start: _int, length: _int) -> Tensor: ...
    def narrow_copy(self, dim: _int, start: _int, length: _int) -> Tensor:
        """A copy of the `length` indices of dimension `dim` from `start` on."""
    @overload
    def ne(self, other: Tensor) -> Tensor:
        """Whether `self != other`, element by element; always for NaN. Shapes broadcast; dtypes promote."""
    @overload
    def ne(self, other: Number | _complex) -> Tensor: ...
    @overload
    def ne_(self, other: Tensor) -> Tensor:
        """Whether `self != other`, element by element; always for NaN. Shapes broadcast; dtypes promote."""
    @overload
    def ne_(self, other: Number | _complex) -> Tensor: ...
    def neg(self) -> Tensor:
        """The negative: `out[i] = -self[i]`. Integers wrap; bool is refused."""
    def neg_(self) -> Tensor:
        """The negative: `out[i] = -self[i]`. Integers wrap; bool is refused."""
    def negative(self) -> Tensor:
        """The negative: `out[i] = -self[i]`. Integers wrap; bool is refused."""
    def negative_(self) -> Tensor:
        """The negative: `out[i] = -self[i]`. Integers wrap; bool is refused."""
    @overload
    def new_empty(self, size: _size, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
        """Shape `size`, dtype and device of `self`, elements not set."""
    @overload
    def new_empty(self, *size: _int, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
    def new_empty_strided(self, size: _size, stride: _size, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
        """These sizes and strides, dtype and device of `self`, elements not set."""
    def new_full(self, size: _size, fill_value: Number | _complex, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
        """Shape `size`, every element `fill_value`, with dtype and device of `self`."""
    @overload
    def new_ones(self, size: _size, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
        """Ones of shape `size` with dtype and device of `self`."""
    @overload
    def new_ones(self, *size: _int, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
    @overload
    def new_zeros(self, size: _size, *, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
        """Zeros of shape `size` with dtype and device of `self`."""
    @overload
    def new_zeros(self, *size: _int, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor: ...
    def nextafter(self, other: Tensor) -> Tensor:
        """The next number that the dtype has after `self` on the way to `other`; `other` where they are equal. The gradient is
        that of `self`, or zero where they are equal."""
    def nextafter_(self, other: Tensor) -> Tensor:
        """The next number that the dtype has after `self` on the way to `other`; `other` where they are equal. The gradient is
        that of `self`, or zero where they are equal."""
    def nonzero(self) -> Tensor:
        """The coordinates of the elements that are not zero, one row each, in row-major order: (count, ndim)."""
    def nonzero_static(self, *, size: _int, fill_value: _int = -1) -> Tensor:
        """The indices of the first `size` elements that are not zero, a row each, in row-major order; rows of `fill_value` where
        there are fewer."""
    @overload
    def norm(self, p: Number | _complex | None = 2, dim: _int | _size | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> Tensor:
        """The norm of order `p` (2 if `None`) over `dim` (all dimensions if `None`), computed in `dtype`: `sum(|x|^p)^(1/p)`.
        At 0 the gradient is 0. `torch.linalg.norm` is preferred."""
    @overload
    def norm(self, p: str, dim: _int | _size | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> Tensor: ...
    def normal_(self, mean: _float = 0.0, std: _float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fills with normal numbers."""
    @overload
    def not_equal(self, other: Tensor) -> Tensor:
        """Whether `self != other`, element by element; always for NaN. Shapes broadcast; dtypes promote."""
    @overload
    def not_equal(self, other: Number | _complex) -> Tensor: ...
    @overload
    def not_equal_(self, other: Tensor) -> Tensor:
        """Whether `self != other`, element by element; always for NaN. Shapes broadcast; dtypes promote."""
    @overload
    def not_equal_(self, other: Number | _complex) -> Tensor: ...
    def orgqr(self, input2: Tensor) -> Tensor:
        """The first n columns of the product `H1 H2 ... Hk` of Householder reflections, whose vectors are below the diagonal
        of `input` (*, m, n), m >= n, and whose factors are `tau` (*, k), k <= n. The columns of the result (*, m, n) are
        orthonormal if the reflections are those of a QR decomposition.

        # Errors
        `RuntimeError` for shapes or dtypes that do not fit; `NotImplementedError` for half precision and integer dtypes."""
    def ormqr(self, input2: Tensor, input3: Tensor, left: _bool = True, transpose: _bool = False) -> Tensor:
        """The product `Q C` of the square matrix `Q = H1 H2 ... Hk` of Householder reflections in compact form (vectors below
        the diagonal of `self`, factors `input2`) with `C` = `input3`; `C Q` unless `left`; with `transpose`, `Q^H` takes
        the place of `Q`. The matrix `Q` is never formed.

        # Errors
        `RuntimeError` for shapes or dtypes that do not fit; `NotImplementedError` for half precision and integer dtypes."""
    def outer(self, vec2: Tensor) -> Tensor:
        """The outer product of two vectors: `out[i, j] = self[i] * vec2[j]`, of shape (n, m) for vectors of lengths n and m.
        Dtypes promote."""
    @overload
    def permute(self, dims: _size) -> Tensor:
        """The dimensions in another order."""
    @overload
    def permute(self, *dims: _int) -> Tensor: ...
    def pinverse(self, rcond: _float = 1e-15) -> Tensor:
        """The Moore-Penrose pseudoinverse (*, n, m) of matrices (*, m, n): singular values not above `rcond` times the largest
        count as zero. `torch.linalg.pinv` is preferred."""
    def polygamma(self, n: _int) -> Tensor:
        """The `n`-th derivative of `digamma`; infinite at 0 and the negative whole numbers."""
    def polygamma_(self, n: _int) -> Tensor:
        """Replaces this tensor's elements by `polygamma(n, self)`."""
    def positive(self) -> Tensor:
        """`+self`: the tensor itself; bool is refused."""
    @overload
    def pow(self, exponent: Tensor) -> Tensor:
        """Raises to the power: `out[i] = self[i]^exponent[i]`. Shapes broadcast; dtypes promote. By `self` the
        gradient is 0 where the exponent is 0, by `exponent` it is 0 where the base is 0 and the exponent not negative."""
    @overload
    def pow(self, exponent: Number | _complex) -> Tensor: ...
    @overload
    def pow_(self, exponent: Tensor) -> Tensor:
        """Raises to the power: `out[i] = self[i]^exponent[i]`. Shapes broadcast; dtypes promote. By `self` the
        gradient is 0 where the exponent is 0, by `exponent` it is 0 where the base is 0 and the exponent not negative."""
    @overload
    def pow_(self, exponent: Number | _complex) -> Tensor: ...
    def prelu(self, weight: Tensor) -> Tensor:
        """The parametric rectified linear unit: `self` where it is above 0, else `weight * self`, with one weight for all
        elements or one per channel (dimension 1). The gradient of `self` at 0 is `weight`."""
    @overload
    def prod(self, *, dtype: _dtype | None = None) -> Tensor:
        """The product of all elements; 1 of none. Integers and bools multiply in int64 unless `dtype` is given. The
        gradient is exact at zeros too."""
    @overload
    def prod(self, dim: _int, keepdim: _bool = False, *, dtype: _dtype | None = None) -> Tensor: ...
    def put(self, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
        """Writes (or adds) the elements of `source` at row-major positions of `self`."""
    def put_(self, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
        """Writes (or adds) the elements of `source` at row-major positions of `self`."""
    @overload
    def quantile(self, q: Tensor, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = "linear") -> Tensor:
        """The quantiles `q`, a number or vector, over `dim` or all elements; of a vector they are the first dimension of the
        result. `interpolation` says what lies between two elements: linear, the lower, higher or nearest (half to even) of
        them, or their midpoint. Float and double only."""
    @overload
    def quantile(self, q: _float, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = "linear") -> Tensor: ...
    def rad2deg(self) -> Tensor:
        """Radians to degrees: `self * 180 / π`."""
    def rad2deg_(self) -> Tensor:
        """Radians to degrees: `self * 180 / π`."""
    @overload
    def random_(self, *, generator: Generator | None = None) -> Tensor:
        """Fills with whole numbers over the dtype's whole range from 0 on."""
    @overload
    def random_(self, from_: _int, to: _int | None, *, generator: Generator | None = None) -> Tensor: ...
    @overload
    def random_(self, to: _int, *, generator: Generator | None = None) -> Tensor: ...
    def ravel(self) -> Tensor:
        """The elements in row-major order as a vector; copies only if the memory's order asks for it."""
    def reciprocal(self) -> Tensor:
        """`1 / self`. Integers give the default floating dtype."""
    def reciprocal_(self) -> Tensor:
        """`1 / self`. Integers give the default floating dtype."""
    def relu(self) -> Tensor:
        """The rectified linear unit `max(self, 0)`, element by element; NaN stays NaN. The gradient at 0 is 0."""
    def relu_(self) -> Tensor:
        """The rectified linear unit `max(self, 0)`, element by element; NaN stays NaN. The gradient at 0 is 0."""
    @overload
    def remainder(self, other: Tensor) -> Tensor:
        """The remainder with the sign of `other`: `self - other * floor(self / other)`, as Python's `%`.
        Integers refuse a zero divisor; for floating-point numbers it gives NaN."""
    @overload
    def remainder(self, other: Number | _complex) -> Tensor: ...
    @overload
    def remainder_(self, other: Tensor) -> Tensor:
        """The remainder with the sign of `other`: `self - other * floor(self / other)`, as Python's `%`.
        Integers refuse a zero divisor; for floating-point numbers it gives NaN."""
    @overload
    def remainder_(self, other: Number | _complex) -> Tensor: ...
    def renorm(self, p: Number | _complex, dim: _int, maxnorm: Number | _complex) -> Tensor:
        """Scales down those slices along `dim` whose norm of order `p` is above `maxnorm`, so that it becomes `maxnorm`; the
        others stay unchanged. Norms of half-precision slices are computed in single precision."""
    def renorm_(self, p: Number | _complex, dim: _int, maxnorm: Number | _complex) -> Tensor:
        """Scales down those slices along `dim` whose norm of order `p` is above `maxnorm`, so that it becomes `maxnorm`; the
        others stay unchanged. Norms of half-precision slices are computed in single precision."""
    @overload
    def repeat(self, repeats: _size) -> Tensor:
        """The tensor repeated `repeats[d]` times along each dimension; more repeats than dimensions add leading ones."""
    @overload
    def repeat(self, *repeats: _int) -> Tensor: ...
    @overload
    def repeat_interleave(self, repeats: Tensor, dim: _int | None = None, *, output_size: _int | None = None) -> Tensor:
        """Each element (or slice along `dim`) repeated `repeats[i]` times; without `dim` the tensor is flattened."""
    @overload
    def repeat_interleave(self, repeats: _int, dim: _int | None = None, *, output_size: _int | None = None) -> Tensor: ...
    @overload
    def reshape(self, shape: _size) -> Tensor:
        """The same elements with another shape; copies only if the memory's order asks for it."""
    @overload
    def reshape(self, *shape: _int) -> Tensor: ...
    def reshape_as(self, other: Tensor) -> Tensor:
        """As `reshape` to the shape of `other`."""
    def resolve_conj(self) -> Tensor:
        """The tensor itself, unless it is a view of conjugates (`is_conj()`): then a copy that holds them."""
    def resolve_neg(self) -> Tensor:
        """The tensor itself, unless it is a view of negatives (`is_neg()`): then a copy that holds them."""
    def roll(self, shifts: _int | _size, dims: _int | _size | None = ()) -> Tensor:
        """Elements moved by `shifts` along `dims`, those that leave at the end come in at the start; without `dims` the
        tensor is rolled as if it were flat."""
    def rot90(self, k: _int = 1, dims: _size = (0, 1)) -> Tensor:
        """The plane of `dims` rotated by `k` quarter turns from the first of them towards the second."""
    @overload
    def round(self) -> Tensor:
        """The nearest whole number, ties to even; integers are copied. The gradient is 0."""
    @overload
    def round(self, *, decimals: _int) -> Tensor: ...
    @overload
    def round_(self) -> Tensor:
        """The nearest whole number, ties to even; integers are copied. The gradient is 0."""
    @overload
    def round_(self, *, decimals: _int) -> Tensor: ...
    def row_indices(self) -> Tensor:
        """The row of each value of compressed columns: (*batch, n)."""
    def rsqrt(self) -> Tensor:
        """`1 / sqrt(self)`. Integers give the default floating dtype."""
    def rsqrt_(self) -> Tensor:
        """`1 / sqrt(self)`. Integers give the default floating dtype."""
    @overload
    def scatter(self, dim: _int, index: Tensor, src: Tensor) -> Tensor:
        """Writes the elements of `src` at the indices `index` along `dim`: `self[index[i][j]][j] = src[i][j]` for `dim` 0. Of
        repeated indices the last one stays."""
    @overload
    def scatter(self, dim: _int, index: Tensor, src: Tensor, *, reduce: str) -> Tensor: ...
    @overload
    def scatter(self, dim: _int, index: Tensor, value: Number | _complex) -> Tensor: ...
    @overload
    def scatter(self, dim: _int, index: Tensor, value: Number | _complex, *, reduce: str) -> Tensor: ...
    @overload
    def scatter_(self, dim: _int, index: Tensor, src: Tensor) -> Tensor:
        """Writes the elements of `src` at the indices `index` along `dim`: `self[index[i][j]][j] = src[i][j]` for `dim` 0. Of
        repeated indices the last one stays."""
    @overload
    def scatter_(self, dim: _int, index: Tensor, src: Tensor, *, reduce: str) -> Tensor: ...
    @overload
    def scatter_(self, dim: _int, index: Tensor, value: Number | _complex) -> Tensor: ...
    @overload
    def scatter_(self, dim: _int, index: Tensor, value: Number | _complex, *, reduce: str) -> Tensor: ...
    def scatter_add(self, dim: _int, index: Tensor, src: Tensor) -> Tensor:
        """Adds the elements of `src` at the indices `index` along `dim`."""
    def scatter_add_(self, dim: _int, index: Tensor, src: Tensor) -> Tensor:
        """Adds the elements of `src` at the indices `index` along `dim`."""
    def scatter_reduce(self, dim: _int, index: Tensor, src: Tensor, reduce: str, *, include_self: _bool = True) -> Tensor:
        """Joins the elements of `src` at the indices `index` along `dim`: `reduce` is "sum", "prod", "mean", "amax" or "amin";
        what is there takes part if `include_self`. Ties of "amax" and "amin" share the gradient evenly. Where factors of a
        product are zero its derivatives are right up to the fourth."""
    def scatter_reduce_(self, dim: _int, index: Tensor, src: Tensor, reduce: str, *, include_self: _bool = True) -> Tensor:
        """Joins the elements of `src` at the indices `index` along `dim`: `reduce` is "sum", "prod", "mean", "amax" or "amin";
        what is there takes part if `include_self`. Ties of "amax" and "amin" share the gradient evenly. Where factors of a
        product are zero its derivatives are right up to the fourth."""
    def select(self, dim: _int, index: _int) -> Tensor:
        """The slice at `index` of dimension `dim`, without that dimension."""
    def select_scatter(self, src: Tensor, dim: _int, index: _int) -> Tensor:
        """A copy of `self` with `src` at `index` of dimension `dim`."""
    def sgn(self) -> Tensor:
        """`self / |self|`, 0 at 0: the sign, or for complex numbers the direction."""
    def sgn_(self) -> Tensor:
        """`self / |self|`, 0 at 0: the sign, or for complex numbers the direction."""
    def sigmoid(self) -> Tensor:
        """`1 / (1 + e^-self)`. Integers give the default floating dtype."""
    def sigmoid_(self) -> Tensor:
        """`1 / (1 + e^-self)`. Integers give the default floating dtype."""
    def sign(self) -> Tensor:
        """-1, 0 or 1 by the sign; 0 for NaN. The gradient is 0. Complex numbers are refused."""
    def sign_(self) -> Tensor:
        """-1, 0 or 1 by the sign; 0 for NaN. The gradient is 0. Complex numbers are refused."""
    def signbit(self) -> Tensor:
        """Whether the sign of a number is set, of zero and NaN too."""
    def sin(self) -> Tensor:
        """The sine."""
    def sin_(self) -> Tensor:
        """The sine."""
    def sinc(self) -> Tensor:
        """`sin(πx) / (πx)`, 1 at 0 with gradient 0. Integers give the default floating dtype."""
    def sinc_(self) -> Tensor:
        """`sin(πx) / (πx)`, 1 at 0 with gradient 0. Integers give the default floating dtype."""
    def sinh(self) -> Tensor:
        """The hyperbolic sine: `(e^self - e^-self) / 2`."""
    def sinh_(self) -> Tensor:
        """The hyperbolic sine: `(e^self - e^-self) / 2`."""
    def slice_inverse(self, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor:
        """What `self` is the slice of, seen in the memory around it as `src` is seen in its own."""
    def slice_scatter(self, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor:
        """A copy of `self` with `src` at every `step`-th index of dimension `dim` from `start` up to `end`."""
    def slogdet(self) -> return_types.slogdet:
        """The sign of the determinant of square matrices (*, n, n) and the natural logarithm of its absolute value, both of
        shape (*). `sign` has absolute value 1; the logarithm is real and does not overflow where the determinant would. A
        singular matrix gives 0 and -inf.

        # Errors
        `RuntimeError` for matrices that are not square; `NotImplementedError` for half precision and integer dtypes."""
    def smm(self, mat2: Tensor) -> Tensor:
        """The product of a sparse matrix, (m, k), and a dense one, (k, n), as a coordinate list: all elements of the rows that the
        first one specifies elements of."""
    def softmax(self, dim: _int, dtype: _dtype | None = None) -> Tensor:
        """`e^self / sum(e^self)` along `dim`, computed in `dtype` if one is given. It is shifted by the maximum, so that it
        does not overflow; a row of only -inf gives NaN."""
    @overload
    def sort(self, *, stable: _bool | None, dim: _int = -1, descending: _bool = False) -> return_types.sort:
        """As `sort`; every sort here is stable."""
    @overload
    def sort(self, dim: _int = -1, descending: _bool = False) -> return_types.sort: ...
    def sparse_dim(self) -> _int:
        """How many dimensions coordinates count; 0 of a strided tensor."""
    def sparse_mask(self, mask: Tensor) -> Tensor:
        """The elements of `self` at the coordinates that the sparse tensor `mask` specifies, in its layout: those that a sparse `self`
        does not specify are zeros."""
    def sparse_resize_(self, size: _size, sparse_dim: _int, dense_dim: _int) -> Tensor:
        """Gives it other sizes, of which the first `sparse_dim` are sparse. What is specified stays, so that the sizes must not
        shrink, nor the kinds of dimensions change, unless nothing is."""
    def sparse_resize_and_clear_(self, size: _size, sparse_dim: _int, dense_dim: _int) -> Tensor:
        """Gives it other sizes, of which the first `sparse_dim` are sparse; nothing is specified any more."""
    @overload
    def split(self, split_size: _size, dim: _int = 0) -> tuple[Tensor, ...]:
        """Splits of the given sizes along `dim`, which must add up to its size."""
    @overload
    def split(self, split_size: Tensor, dim: _int = 0) -> tuple[Tensor, ...]: ...
    @overload
    def split(self, split_size: _int, dim: _int = 0) -> tuple[Tensor, ...]: ...
    def split_with_sizes(self, split_sizes: _size, dim: _int = 0) -> tuple[Tensor, ...]:
        """Splits of the given sizes along `dim`, which must add up to its size."""
    def sqrt(self) -> Tensor:
        """The square root; NaN for negative real numbers. Integers give the default floating dtype."""
    def sqrt_(self) -> Tensor:
        """The square root; NaN for negative real numbers. Integers give the default floating dtype."""
    def square(self) -> Tensor:
        """`self * self`; bool gives int64."""
    def square_(self) -> Tensor:
        """`self * self`; bool gives int64."""
    @overload
    def squeeze(self) -> Tensor:
        """Without its dimensions of size 1."""
    @overload
    def squeeze(self, dim: _int) -> Tensor: ...
    @overload
    def squeeze(self, dim: _size) -> Tensor: ...
    @overload
    def squeeze(self, *dim: _int) -> Tensor: ...
    @overload
    def squeeze_(self) -> Tensor:
        """Drops this tensor's own dimensions of size 1."""
    @overload
    def squeeze_(self, dim: _int) -> Tensor: ...
    @overload
    def squeeze_(self, dim: _size) -> Tensor: ...
    @overload
    def squeeze_(self, *dim: _int) -> Tensor: ...
    @overload
    def sspaddmm(self, mat1: Tensor, mat2: Tensor, *, beta: Number | _complex = 1, alpha: Number | _complex = 1) -> Tensor:
        """`beta * self + alpha * (mat1 @ mat2)` of coordinate lists `self`, (m, n), and `mat1`, (m, k), and a dense `mat2`, (k, n)."""
    @overload
    def sspaddmm(self, beta: Number | _complex, alpha: Number | _complex, mat1: Tensor, mat2: Tensor) -> Tensor: ...
    @overload
    def sspaddmm(self, beta: Number | _complex, mat1: Tensor, mat2: Tensor) -> Tensor: ...
    @overload
    def std(self, dim: _int | _size | None, unbiased: _bool = True, keepdim: _bool = False) -> Tensor:
        """The standard deviation over `dim` (all dimensions if `None`)."""
    @overload
    def std(self, dim: _int | _size | None = None, *, correction: Number | _complex | None = None, keepdim: _bool = False) -> Tensor: ...
    @overload
    def std(self, *dim: _int, correction: Number | _complex | None = None, keepdim: _bool = False) -> Tensor: ...
    @overload
    def std(self, unbiased: _bool = True) -> Tensor: ...
    def stft(self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, pad_mode: str = "reflect", normalized: _bool = False, onesided: _bool | None = None, return_complex: _bool | None = None, align_to_window: _bool | None = None) -> Tensor:
        """The short-time Fourier transform: the spectra of overlapping frames of a signal (length) or (batch, length), of
        shape (batch, frequencies, frames).

        Frames have `n_fft` elements, `hop_length` (a quarter of `n_fft` by default) from one to the next, multiplied by
        `window`, which is padded with zeros from `win_length` to `n_fft` elements. With `center` the first frame is centred
        at the beginning of the signal, which is padded at both ends by `pad_mode`. `normalized` divides by the square root
        of `n_fft`; `onesided`, the default for real signals, leaves out the half of the spectrum that is the mirror image
        of the other."""
    @overload
    def sub(self, other: Tensor | Number | _complex, *, alpha: Number | _complex = 1) -> Tensor:
        """Subtracts `other`, multiplied by `alpha`: `out[i] = self[i] - alpha * other[i]`.
        Shapes broadcast; dtypes promote; bool is refused."""
    @overload
    def sub(self, alpha: Number | _complex, other: Tensor | Number | _complex) -> Tensor: ...
    @overload
    def sub_(self, other: Tensor | Number | _complex, *, alpha: Number | _complex = 1) -> Tensor:
        """Subtracts `other`, multiplied by `alpha`: `out[i] = self[i] - alpha * other[i]`.
        Shapes broadcast; dtypes promote; bool is refused."""
    @overload
    def sub_(self, alpha: Number | _complex, other: Tensor | Number | _complex) -> Tensor: ...
    @overload
    def subtract(self, other: Tensor | Number | _complex, *, alpha: Number | _complex = 1) -> Tensor:
        """Subtracts `other`, multiplied by `alpha`: `out[i] = self[i] - alpha * other[i]`.
        Shapes broadcast; dtypes promote; bool is refused."""
    @overload
    def subtract(self, alpha: Number | _complex, other: Tensor | Number | _complex) -> Tensor: ...
    @overload
    def subtract_(self, other: Tensor | Number | _complex, *, alpha: Number | _complex = 1) -> Tensor:
        """Subtracts `other`, multiplied by `alpha`: `out[i] = self[i] - alpha * other[i]`.
        Shapes broadcast; dtypes promote; bool is refused."""
    @overload
    def subtract_(self, alpha: Number | _complex, other: Tensor | Number | _complex) -> Tensor: ...
    @overload
    def sum(self, *, dtype: _dtype | None = None) -> Tensor:
        """Sums all elements. Integer and bool inputs sum in int64 unless `dtype` is given."""
    @overload
    def sum(self, dim: _int | _size | None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> Tensor: ...
    @overload
    def sum_to_size(self, size: _size) -> Tensor:
        """Sums over the dimensions that broadcasting from shape `size` to the tensor's has added or repeated: the tensor itself if
        there are none."""
    @overload
    def sum_to_size(self, *size: _int) -> Tensor: ...
    def svd(self, some: _bool = True, compute_uv: _bool = True) -> return_types.svd:
        """The singular value decomposition `A = U diag(S) V^H` in its older form, which gives V in place of its adjoint;
        `some` stands for the reduced factors. Without `compute_uv`, U and V are zeros. It is deprecated: `torch.linalg.svd`
        takes its place."""
    def swapaxes(self, axis0: _int, axis1: _int) -> Tensor:
        """Two dimensions swapped."""
    def swapaxes_(self, axis0: _int, axis1: _int) -> Tensor:
        """Swaps two dimensions of this tensor itself."""
    def swapdims(self, dim0: _int, dim1: _int) -> Tensor:
        """Two dimensions swapped."""
    def swapdims_(self, dim0: _int, dim1: _int) -> Tensor:
        """Swaps two dimensions of this tensor itself."""
    def t(self) -> Tensor:
        """A matrix transposed; vectors and numbers as they are."""
    def t_(self) -> Tensor:
        """Transposes this matrix itself."""
    def take(self, index: Tensor) -> Tensor:
        """Elements at row-major positions of the flattened tensor; negative ones count from the end."""
    def take_along_dim(self, indices: Tensor, dim: _int | None = None) -> Tensor:
        """As `gather`, with the other dimensions of `self` and `indices` broadcast; without `dim` the tensor is flattened.
        Along a `dim` indices go round: beyond the end they count from the start again."""
    def tan(self) -> Tensor:
        """The tangent."""
    def tan_(self) -> Tensor:
        """The tangent."""
    def tanh(self) -> Tensor:
        """The hyperbolic tangent: `sinh(self) / cosh(self)`."""
    def tanh_(self) -> Tensor:
        """The hyperbolic tangent: `sinh(self) / cosh(self)`."""
    @overload
    def tensor_split(self, tensor_indices_or_sections: Tensor, dim: _int = 0) -> tuple[Tensor, ...]:
        """As `tensor_split` with the number of splits in a 0-dim int64 tensor, or with the positions in a vector."""
    @overload
    def tensor_split(self, sections: _int, dim: _int = 0) -> tuple[Tensor, ...]: ...
    @overload
    def tensor_split(self, indices: _size, dim: _int = 0) -> tuple[Tensor, ...]: ...
    @overload
    def tile(self, dims: _size) -> Tensor:
        """As `repeat`; fewer repeats than dimensions mean the last ones."""
    @overload
    def tile(self, *dims: _int) -> Tensor: ...
    def to_dense(self, dtype: _dtype | None = None, *, masked_grad: _bool | None = None) -> Tensor:
        """The same elements in a strided tensor; zero where none are specified. Its gradient is given where elements are specified,
        or with `masked_grad=False` everywhere."""
    @overload
    def to_sparse(self, *, layout: _layout | None = None, blocksize: _int | _size | None = None, dense_dim: _int | None = None) -> Tensor:
        """The elements other than zero as coordinate lists, or in the sparse layout `layout`; of compressed layouts the last
        `dense_dim` dimensions are dense, those before the two of the matrix count batches, and `blocksize` is for those of blocks."""
    @overload
    def to_sparse(self, sparse_dim: _int) -> Tensor: ...
    def to_sparse_bsc(self, blocksize: _int | _size, dense_dim: _int | None = None) -> Tensor:
        """The blocks in which anything is other than zero, in compressed columns: (*batch, rows, columns, *dense)."""
    def to_sparse_bsr(self, blocksize: _int | _size, dense_dim: _int | None = None) -> Tensor:
        """The blocks in which anything is other than zero, in compressed rows: (*batch, rows, columns, *dense)."""
    def to_sparse_csc(self, dense_dim: _int | None = None) -> Tensor:
        """The elements other than zero in compressed columns: (*batch, rows, columns, *dense)."""
    def to_sparse_csr(self, dense_dim: _int | None = None) -> Tensor:
        """The elements other than zero in compressed rows: (*batch, rows, columns, *dense)."""
    def topk(self, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True) -> return_types.topk:
        """The `k` largest (or smallest) elements along `dim`, best first, and their indices."""
    def trace(self) -> Tensor:
        """The sum of a matrix's diagonal; of integers in int64. No elements give 0."""
    def transpose(self, dim0: _int, dim1: _int) -> Tensor:
        """Two dimensions swapped."""
    def transpose_(self, dim0: _int, dim1: _int) -> Tensor:
        """Swaps two dimensions of this tensor itself."""
    def triangular_solve(self, A: Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False) -> return_types.triangular_solve:
        """The solution `X` of `A X = self` (of `A^T X = self` with `transpose`) for triangular `A`, and a copy of `A`. It is
        deprecated: `torch.linalg.solve_triangular`, which takes the matrix first, is its replacement.

        `A` may be sparse: elements that it does not specify are zeros, those of the diagonal make the solution NaN, and no copy is
        given (an empty tensor)."""
    def tril(self, diagonal: _int = 0) -> Tensor:
        """The lower triangle of each matrix up to `diagonal`, zeros above."""
    def tril_(self, diagonal: _int = 0) -> Tensor:
        """The lower triangle of each matrix up to `diagonal`, zeros above."""
    def triu(self, diagonal: _int = 0) -> Tensor:
        """The upper triangle of each matrix from `diagonal`, zeros below."""
    def triu_(self, diagonal: _int = 0) -> Tensor:
        """The upper triangle of each matrix from `diagonal`, zeros below."""
    def true_divide(self, other: Tensor | Number | _complex) -> Tensor:
        """Divides by `other`: `out[i] = self[i] / other[i]`. Integers and bools give the default floating dtype;
        division by zero gives an infinity or NaN."""
    def true_divide_(self, other: Tensor | Number | _complex) -> Tensor:
        """Divides by `other`: `out[i] = self[i] / other[i]`. Integers and bools give the default floating dtype;
        division by zero gives an infinity or NaN."""
    def trunc(self) -> Tensor:
        """The whole part, towards zero; integers are copied. The gradient is 0."""
    def trunc_(self) -> Tensor:
        """The whole part, towards zero; integers are copied. The gradient is 0."""
    def type_as(self, other: Tensor) -> Tensor:
        """The tensor in the dtype and on the device of `other`: itself if it is so already."""
    def unbind(self, dim: _int = 0) -> tuple[Tensor, ...]:
        """All slices along `dim`, without that dimension."""
    def unflatten(self, dim: _int, sizes: _size) -> Tensor:
        """Dimension `dim` cut up into `sizes`, one of which may be -1."""
    def unfold(self, dimension: _int, size: _int, step: _int) -> Tensor:
        """Windows of `size` along `dimension`, every `step`; the elements of a window become the last dimension."""
    def uniform_(self, from_: _float = 0.0, to: _float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fills with uniform numbers in `[from, to)`."""
    def unique_consecutive(self, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """The elements (or slices along `dim`) without those that equal their predecessor; inverse and counts per run."""
    def unsafe_chunk(self, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        """As `chunk`, but to autograd the splits share no memory: they may be written to, if nobody uses `self` afterwards."""
    def unsafe_split(self, split_size: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        """As `split`, but to autograd the splits share no memory: they may be written to, if nobody uses `self` afterwards."""
    def unsafe_split_with_sizes(self, split_sizes: _size, dim: _int = 0) -> tuple[Tensor, ...]:
        """As `split_with_sizes`, but to autograd the splits share no memory: they may be written to, if nobody uses `self` afterwards."""
    def unsqueeze(self, dim: _int) -> Tensor:
        """With a new dimension of size 1 at `dim`."""
    def unsqueeze_(self, dim: _int) -> Tensor:
        """Gives this tensor itself a new dimension of size 1 at `dim`."""
    def values(self) -> Tensor:
        """The values of a coalesced tensor of coordinate lists, or those of a compressed one."""
    @overload
    def var(self, dim: _int | _size | None, unbiased: _bool = True, keepdim: _bool = False) -> Tensor:
        """The variance over `dim` (all dimensions if `None`)."""
    @overload
    def var(self, dim: _int | _size | None = None, *, correction: Number | _complex | None = None, keepdim: _bool = False) -> Tensor: ...
    @overload
    def var(self, *dim: _int, correction: Number | _complex | None = None, keepdim: _bool = False) -> Tensor: ...
    @overload
    def var(self, unbiased: _bool = True) -> Tensor: ...
    def vdot(self, other: Tensor) -> Tensor:
        """The dot product of two vectors, the first conjugated: `sum over i of conj(self[i]) * other[i]`."""
    @overload
    def view(self, dtype: _dtype) -> Tensor:
        """The same bytes read as another dtype; the last dimension grows or shrinks if the sizes of elements differ.
        Shares memory and version, but has no gradient: to autograd it is no view."""
    @overload
    def view(self, size: _size) -> Tensor: ...
    @overload
    def view(self, *size: _int) -> Tensor: ...
    def view_as(self, other: Tensor) -> Tensor:
        """A view in the shape of `other`."""
    @overload
    def vsplit(self, sections: _int) -> tuple[Tensor, ...]:
        """`sections` equal splits by rows: along the first dimension."""
    @overload
    def vsplit(self, indices: _size) -> tuple[Tensor, ...]: ...
    @overload
    def vsplit(self, *indices: _int) -> tuple[Tensor, ...]: ...
    @overload
    def where(self, condition: Tensor, other: Tensor) -> Tensor:
        """`self` where `condition` holds, else `other`. Shapes broadcast; the dtypes of `self` and `other` promote."""
    @overload
    def where(self, condition: Tensor, other: Number | _complex) -> Tensor: ...
    @overload
    def xlogy(self, other: Tensor) -> Tensor:
        """`self * ln(other)`, 0 where `self` is 0 unless `other` is NaN. Integers give the default floating dtype."""
    @overload
    def xlogy(self, other: Number | _complex) -> Tensor: ...
    @overload
    def xlogy_(self, other: Tensor) -> Tensor:
        """`self * ln(other)`, 0 where `self` is 0 unless `other` is NaN. Integers give the default floating dtype."""
    @overload
    def xlogy_(self, other: Number | _complex) -> Tensor: ...
    def zero_(self) -> Tensor:
        """Writes zero into every element."""
