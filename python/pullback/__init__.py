"""Tensors with automatic differentiation: PyTorch's autograd system in Rust, under PyTorch's names.

``import pullback as torch`` runs a program written for PyTorch. The functions of ops come from the
registry of the extension; subpackages that a program may not need are loaded when first used.
"""

from __future__ import annotations

import sys
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi
from typing import TYPE_CHECKING, Any

from . import _C, _absent, _batch_norm_parts, _lazy, _sparse
from ._batch_norm_parts import batch_norm_backward_elemt as batch_norm_backward_elemt
from ._batch_norm_parts import batch_norm_backward_reduce as batch_norm_backward_reduce
from ._batch_norm_parts import batch_norm_elemt as batch_norm_elemt
from ._batch_norm_parts import batch_norm_gather_stats as batch_norm_gather_stats
from ._batch_norm_parts import (
    batch_norm_gather_stats_with_counts as batch_norm_gather_stats_with_counts,
)
from ._batch_norm_parts import batch_norm_stats as batch_norm_stats
from ._build import (
    AcceleratorError,
    classproperty,
    compiled_with_cxx11_abi,
    cudnn_is_acceptable,
    get_device,
    get_device_module,
    get_file_path,
    get_num_interop_threads,
    has_lapack,
    has_mkl,
    has_openmp,
    has_spectral,
    init_num_threads,
    is_vulkan_available,
    prepare_multiprocessing_environment,
    profiler_allow_cudagraph_cupti_lazy_reinit_cuda12,
    set_flush_denormal,
    set_num_interop_threads,
)
from ._C import (
    Generator,
    OutOfMemoryError,
    Size,
    UntypedStorage,
    as_tensor,
    asarray,
    autocast_decrement_nesting,
    autocast_increment_nesting,
    can_cast,
    clear_autocast_cache,
    default_generator,
    device,
    dtype,
    from_numpy,
    frombuffer,
    get_autocast_dtype,
    get_default_dtype,
    get_num_threads,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    is_autocast_cache_enabled,
    is_autocast_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    is_tensor,
    is_warn_always_enabled,
    layout,
    memory_format,
    promote_types,
    set_anomaly_enabled,
    set_autocast_cache_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
    set_default_dtype,
    set_num_threads,
    set_printoptions,
    set_warn_always,
    tensor,
)
from ._capturing import capture
from ._check import *  # noqa: F403
from ._control_flow import (
    cond,
    fork,
    wait,
    while_loop,
)
from ._deterministic import (
    are_deterministic_algorithms_enabled,
    get_deterministic_debug_mode,
    is_deterministic_algorithms_warn_only_enabled,
    set_deterministic_debug_mode,
    use_deterministic_algorithms,
)
from ._diagnosis import memory_budget, memory_report, record, trace_nan
from ._distance import (
    cosine_embedding_loss,
    cosine_similarity,
    hinge_embedding_loss,
    margin_ranking_loss,
    norm_except_dim,
    pairwise_distance,
    poisson_nll_loss,
    triplet_margin_loss,
)
from ._dlpack import from_dlpack
from ._extension import fill as _fill_extension
from ._file import from_file
from ._function import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_tensors,
    einsum,
    meshgrid,
    nonzero,
    tensordot,
    unique,
    unique_consecutive,
)
from ._future import Future
from ._grid import (
    block_diag,
    broadcast_shapes,
    cartesian_prod,
    cdist,
    histogramdd,
    unravel_index,
)
from ._info import finfo, get_printoptions, iinfo
from ._jagged_layout import jagged as jagged
from ._legacy import CLASSES as _TENSOR_CLASSES
from ._legacy import set_default_tensor_type
from ._linalg_utils import cholesky, eig, lstsq, matrix_rank, qr, solve, symeig
from ._lobpcg import lobpcg
from ._lowrank import chain_matmul, lu, pca_lowrank, svd_lowrank
from ._older import (
    batch_norm_update_stats,
    bilinear,
    ccol_indices_copy,
    col_indices_copy,
    crow_indices_copy,
    detach_,
    dsmm,
    embedding_renorm_,
    hsmm,
    indices_copy,
    is_distributed,
    is_same_size,
    is_signed,
    native_norm,
    resize_as_sparse_,
    row_indices_copy,
    rrelu,
    rrelu_,
    saddmm,
    spmm,
    to_dlpack,
    values_copy,
)
from ._placeholder.top import placeholders as _placeholders
from ._private import *  # noqa: F403
from ._promotion import result_type
from ._question import (
    is_complex,
    is_conj,
    is_floating_point,
    is_inference,
    is_neg,
    numel,
    resize_as_,
    typename,
)
from ._scaling import (
    _amp_foreach_non_finite_check_and_unscale_ as _amp_foreach_non_finite_check_and_unscale_,
)
from ._scaling import _amp_update_scale_ as _amp_update_scale_
from ._script import ScriptFunction
from ._sparse import _validate_sparse_bsc_tensor_args as _validate_sparse_bsc_tensor_args
from ._sparse import _validate_sparse_bsr_tensor_args as _validate_sparse_bsr_tensor_args
from ._sparse import (
    _validate_sparse_compressed_tensor_args as _validate_sparse_compressed_tensor_args,
)
from ._sparse import _validate_sparse_coo_tensor_args as _validate_sparse_coo_tensor_args
from ._sparse import _validate_sparse_csc_tensor_args as _validate_sparse_csc_tensor_args
from ._sparse import _validate_sparse_csr_tensor_args as _validate_sparse_csr_tensor_args
from ._sparse import sparse_bsc_tensor as sparse_bsc_tensor
from ._sparse import sparse_bsr_tensor as sparse_bsr_tensor
from ._sparse import sparse_compressed_tensor as sparse_compressed_tensor
from ._sparse import sparse_coo_tensor as sparse_coo_tensor
from ._sparse import sparse_csc_tensor as sparse_csc_tensor
from ._sparse import sparse_csr_tensor as sparse_csr_tensor
from ._stream import Event, Stream
from ._symbol import SymInt as SymInt
from ._symbol import (
    sym_constrain_range,
    sym_constrain_range_for_size,
    sym_float,
    sym_int,
    sym_ite,
    sym_max,
    sym_min,
    sym_not,
    sym_sqrt,
    sym_sum,
)
from ._tag import Tag
from ._tensor import Tensor
from ._vmap import vmap
from .amp import GradScaler, autocast
from .amp._setting import (
    get_autocast_cpu_dtype,
    get_autocast_gpu_dtype,
    get_autocast_ipu_dtype,
    get_autocast_xla_dtype,
    is_autocast_cpu_enabled,
    is_autocast_ipu_enabled,
    is_autocast_xla_enabled,
    set_autocast_cpu_dtype,
    set_autocast_cpu_enabled,
    set_autocast_gpu_dtype,
    set_autocast_ipu_dtype,
    set_autocast_ipu_enabled,
    set_autocast_xla_dtype,
    set_autocast_xla_enabled,
)
from .autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from .random import (
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
    thread_safe_generator,
)
from .serialization import load, save
from .storage import _CLASSES as _STORAGE_CLASSES
from .storage import TypedStorage
from .torch_version import __version__ as __version__

if TYPE_CHECKING:
    from builtins import bool as _bool
    from builtins import int as _int

    from . import __config__ as __config__
    from . import accelerator as accelerator
    from . import amp as amp
    from . import ao as ao
    from . import autograd as autograd
    from . import backends as backends
    from . import classes as classes
    from . import compiler as compiler
    from . import cpp as cpp
    from . import cpu as cpu
    from . import cuda as cuda
    from . import distributed as distributed
    from . import distributions as distributions
    from . import export as export
    from . import fft as fft
    from . import foreach as foreach
    from . import func as func
    from . import functional as functional
    from . import functorch as functorch
    from . import futures as futures
    from . import fx as fx
    from . import hub as hub
    from . import jit as jit
    from . import library as library
    from . import linalg as linalg
    from . import masked as masked
    from . import memory as memory
    from . import monitor as monitor
    from . import mps as mps
    from . import mtia as mtia
    from . import multiprocessing as multiprocessing
    from . import nn as nn
    from . import numa as numa
    from . import onnx as onnx
    from . import ops as ops
    from . import optim as optim
    from . import overrides as overrides
    from . import package as package
    from . import profiler as profiler
    from . import quantization as quantization
    from . import quasirandom as quasirandom
    from . import random as random
    from . import return_types as return_types
    from . import serialization as serialization
    from . import signal as signal
    from . import sparse as sparse
    from . import special as special
    from . import storage as storage
    from . import testing as testing
    from . import torch_version as torch_version
    from . import types as types
    from . import utils as utils
    from . import version as version
    from . import xpu as xpu
    from ._C import bcomplex32 as bcomplex32
    from ._C import bfloat16 as bfloat16
    from ._C import bool as bool
    from ._C import cdouble as cdouble
    from ._C import cfloat as cfloat
    from ._C import chalf as chalf
    from ._C import channels_last as channels_last
    from ._C import channels_last_3d as channels_last_3d
    from ._C import complex32 as complex32
    from ._C import complex64 as complex64
    from ._C import complex128 as complex128
    from ._C import contiguous_format as contiguous_format
    from ._C import double as double
    from ._C import float as float
    from ._C import float4_e2m1fn_x2 as float4_e2m1fn_x2
    from ._C import float8_e4m3fn as float8_e4m3fn
    from ._C import float8_e4m3fnuz as float8_e4m3fnuz
    from ._C import float8_e5m2 as float8_e5m2
    from ._C import float8_e5m2fnuz as float8_e5m2fnuz
    from ._C import float8_e8m0fnu as float8_e8m0fnu
    from ._C import float16 as float16
    from ._C import float32 as float32
    from ._C import float64 as float64
    from ._C import half as half
    from ._C import int as int
    from ._C import int8 as int8
    from ._C import int16 as int16
    from ._C import int32 as int32
    from ._C import int64 as int64
    from ._C import long as long
    from ._C import preserve_format as preserve_format
    from ._C import short as short
    from ._C import sparse_bsc as sparse_bsc
    from ._C import sparse_bsr as sparse_bsr
    from ._C import sparse_coo as sparse_coo
    from ._C import sparse_csc as sparse_csc
    from ._C import sparse_csr as sparse_csr
    from ._C import strided as strided
    from ._C import uint8 as uint8
    from ._C import uint16 as uint16
    from ._C import uint32 as uint32
    from ._C import uint64 as uint64

    # The older classes make tensors of their dtype, and are no classes of objects: to a type
    # checker they are the class that their objects have.
    DoubleTensor = Tensor
    FloatTensor = Tensor
    HalfTensor = Tensor
    BFloat16Tensor = Tensor
    LongTensor = Tensor
    IntTensor = Tensor
    ShortTensor = Tensor
    CharTensor = Tensor
    ByteTensor = Tensor
    BoolTensor = Tensor
    Storage = storage.TypedStorage
    DoubleStorage = storage.TypedStorage
    FloatStorage = storage.TypedStorage
    HalfStorage = storage.TypedStorage
    BFloat16Storage = storage.TypedStorage
    LongStorage = storage.TypedStorage
    IntStorage = storage.TypedStorage
    ShortStorage = storage.TypedStorage
    CharStorage = storage.TypedStorage
    ByteStorage = storage.TypedStorage
    BoolStorage = storage.TypedStorage
    ComplexDoubleStorage = storage.TypedStorage
    ComplexFloatStorage = storage.TypedStorage

    # (Only a stub: the functions of ops that are defined nowhere else.)
    from ._C._public import *  # noqa: F403

_absent.install()
_lazy.install()

# The constants: dtypes with their second names, layouts, memory formats.
for _name in dir(_C):
    if type(getattr(_C, _name)).__name__ in ("dtype", "layout", "memory_format"):
        globals()[_name] = getattr(_C, _name)
# The functions of ops; what is written by hand above wins.
_private = [name for name in dir(_C._VariableFunctions) if name[0] == "_" != name[1]]
for _name in [*_C._public_names(), *_private]:
    globals().setdefault(_name, getattr(_C._VariableFunctions, _name))
del _name, _private
_lazy.submodules(
    globals(),
    "__config__",
    "_VF",
    "_dynamo",
    "_functorch",
    "_higher_order_ops",
    "_jit_internal",
    "_ops",
    "_prims_common",
    "_utils",
    "_vmap_internals",
    "_weights_only_unpickler",
    "accelerator",
    "ao",
    "classes",
    "cpp",
    "functional",
    "backends",
    "compiler",
    "cpu",
    "cuda",
    "distributed",
    "distributions",
    "export",
    "fft",
    "foreach",
    "func",
    "functorch",
    "futures",
    "fx",
    "hub",
    "jit",
    "library",
    "linalg",
    "masked",
    "memory",
    "monitor",
    "mps",
    "mtia",
    "multiprocessing",
    "nested",
    "nn",
    "numa",
    "onnx",
    "ops",
    "optim",
    "overrides",
    "package",
    "profiler",
    "quantization",
    "quasirandom",
    "return_types",
    "signal",
    "sparse",
    "special",
    "testing",
    "types",
    "utils",
    "xpu",
)
if "multiprocessing.reduction" in sys.modules:
    # A process that was started by another, or that may start some, shares tensors through memory.
    _lazy.load(globals()["multiprocessing"])

for _name, _thing in _placeholders().items():
    globals().setdefault(_name, _thing)
del _name, _thing
globals().update(_TENSOR_CLASSES)
_fill_extension(_C)
_tensor_classes = set(_TENSOR_CLASSES.values())
_storage_classes = set(_STORAGE_CLASSES.values())
globals().update(_STORAGE_CLASSES, Storage=_STORAGE_CLASSES["FloatStorage"])

legacy_contiguous_format = _C.contiguous_format
newaxis = None
_float32_matmul_precision = "highest"


def is_storage(obj: object) -> _bool:
    """Whether ``obj`` is a storage."""
    return isinstance(obj, (UntypedStorage, TypedStorage))


def set_default_device(device: Any) -> None:
    """Makes new tensors of this thread on a device if none is named, until None is given.

    Raises:
        RuntimeError: for a device that this build has not.
    """
    from .utils._device import set_default

    set_default(device)


def get_default_device() -> Any:
    """The device of new tensors."""
    from .utils._device import default

    return default()


def compile(
    model: Any = None,
    *,
    fullgraph: _bool = False,
    dynamic: _bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: _bool = False,
    recompile_limit: _int | None = None,
    isolate_recompiles: _bool = False,
    dynamic_shapes: Any = None,
) -> Any:
    """Runs a function or a module unchanged, or, in two modes, by :func:`capture`.

    In the modes ``"reduce-overhead"`` and ``"max-autotune"`` calls are recorded and replayed
    without Python where that gives the same bits; what the function does besides computing is
    missing from replays then. What is asked for is checked as PyTorch checks it; results are the
    same whatever it is.

    Args:
        model: the function or module; without one, a decorator is returned.
        fullgraph: whether all of it must be captured.
        dynamic: whether sizes may change without new compilation.
        backend: who compiles: one of ``torch.compiler.list_backends(None)``.
        mode: how the backend ``"inductor"`` does it.
        options: the same in detail, in place of a mode.
        name: what logs call it.
        disable: whether ``model`` itself is returned.
        recompile_limit: how often it may be compiled anew.
        isolate_recompiles: whether other calls' compilations do not count.
        dynamic_shapes: which sizes may change.

    Returns:
        A function that calls the function; a module whose part ``_orig_mod`` is the module.

    Raises:
        InvalidBackend: if there is no such backend.
        NotImplementedError: for a backend that is a function, which would get the captured graph.
        RuntimeError: for ``mode`` with ``options``, and for a mode that does not exist.
        TypeError: for a value of another kind than is asked for.
        AssertionError: for what cannot be called.
    """
    from . import _dynamo

    if disable is True and model is not None:
        return model
    _dynamo.check_flags(
        fullgraph=fullgraph,
        dynamic=dynamic,
        disable=disable,
        isolate_recompiles=isolate_recompiles,
    )
    _dynamo.check_choice(backend, mode, options)
    if disable:
        return lambda given: given
    is_captured = mode in _dynamo.CAPTURING_MODES and backend in (None, "inductor")
    compiled = _dynamo.captured if is_captured else _dynamo.compiled
    return compiled if model is None else compiled(model)


def get_float32_matmul_precision() -> str:
    """The setting of :func:`set_float32_matmul_precision`."""
    return _float32_matmul_precision


def set_float32_matmul_precision(precision: str) -> None:
    """Sets how exact products of ``float32`` matrices must be: here they are as exact as the dtype.

    Args:
        precision: ``"highest"``; ``"high"`` and ``"medium"`` allow less, which is not made use of.

    Raises:
        RuntimeError: for another word.
    """
    global _float32_matmul_precision
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(
            f"float32_matmul_precision should be 'highest', 'high' or 'medium', not {precision!r}"
        )
    _float32_matmul_precision = precision


def as_torch(*, children: _bool = True) -> None:
    """Makes ``import torch`` mean this package, for a program written for PyTorch.

    So does ``import functorch``, and ``importlib.metadata.version("torch")`` gives the version of
    PyTorch that this package stands for.

    Args:
        children: whether processes that the program starts are to find the same: the variable
            ``PYTHONPATH`` of its environment then names a folder of this package.

    Raises:
        RuntimeError: if PyTorch itself was imported already.
    """
    present = sys.modules.get("torch")
    this = sys.modules[__name__]
    if present is not None and present is not this:
        raise RuntimeError("torch was imported already; call pullback.as_torch() first")
    from ._alias import install, install_in_children

    install()
    if children:
        install_in_children()


__all__ = [
    "SymInt",
    "Future",
    "classproperty",
    "AcceleratorError",
    "Event",
    "ScriptFunction",
    "Stream",
    "compiled_with_cxx11_abi",
    "cond",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cudnn_is_acceptable",
    "fork",
    "get_device",
    "get_device_module",
    "get_file_path",
    "get_num_interop_threads",
    "has_lapack",
    "has_mkl",
    "has_openmp",
    "has_spectral",
    "hinge_embedding_loss",
    "init_num_threads",
    "is_vulkan_available",
    "margin_ranking_loss",
    "norm_except_dim",
    "batch_norm_update_stats",
    "bilinear",
    "ccol_indices_copy",
    "col_indices_copy",
    "crow_indices_copy",
    "detach_",
    "dsmm",
    "embedding_renorm_",
    "hsmm",
    "indices_copy",
    "is_distributed",
    "is_same_size",
    "is_signed",
    "native_norm",
    "resize_as_sparse_",
    "row_indices_copy",
    "rrelu",
    "rrelu_",
    "saddmm",
    "spmm",
    "to_dlpack",
    "values_copy",
    "pairwise_distance",
    "poisson_nll_loss",
    "prepare_multiprocessing_environment",
    "profiler_allow_cudagraph_cupti_lazy_reinit_cuda12",
    "set_flush_denormal",
    "set_num_interop_threads",
    "sym_constrain_range",
    "sym_constrain_range_for_size",
    "sym_float",
    "sym_int",
    "sym_ite",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sqrt",
    "sym_sum",
    "triplet_margin_loss",
    "wait",
    "while_loop",
    "Generator",
    "GradScaler",
    "autocast",
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "clear_autocast_cache",
    "get_autocast_cpu_dtype",
    "get_autocast_dtype",
    "get_autocast_gpu_dtype",
    "get_autocast_ipu_dtype",
    "get_autocast_xla_dtype",
    "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled",
    "is_autocast_enabled",
    "is_autocast_ipu_enabled",
    "is_autocast_xla_enabled",
    "set_anomaly_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "set_autocast_gpu_dtype",
    "set_autocast_ipu_dtype",
    "set_autocast_ipu_enabled",
    "set_autocast_xla_dtype",
    "set_autocast_xla_enabled",
    "OutOfMemoryError",
    "Tag",
    "Size",
    "Tensor",
    "TypedStorage",
    "UntypedStorage",
    "as_tensor",
    "are_deterministic_algorithms_enabled",
    "as_torch",
    "asarray",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "can_cast",
    "cartesian_prod",
    "cdist",
    "chain_matmul",
    "cholesky",
    "compile",
    "default_generator",
    "device",
    "dtype",
    "eig",
    "einsum",
    "enable_grad",
    "finfo",
    "from_dlpack",
    "from_file",
    "from_numpy",
    "frombuffer",
    "get_default_dtype",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "get_num_threads",
    "get_printoptions",
    "get_rng_state",
    "histogramdd",
    "iinfo",
    "inference_mode",
    "initial_seed",
    "thread_safe_generator",
    "is_complex",
    "is_conj",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_floating_point",
    "is_grad_enabled",
    "is_inference",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_inference_mode_enabled",
    "is_neg",
    "is_warn_always_enabled",
    "is_storage",
    "is_tensor",
    "layout",
    "load",
    "manual_seed",
    "meshgrid",
    "memory_format",
    "capture",
    "memory_budget",
    "memory_report",
    "no_grad",
    "nonzero",
    "numel",
    "promote_types",
    "record",
    "resize_as_",
    "result_type",
    "save",
    "seed",
    "set_default_dtype",
    "set_default_tensor_type",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_grad_enabled",
    "set_num_threads",
    "set_printoptions",
    "set_rng_state",
    "set_warn_always",
    "tensor",
    "tensordot",
    "trace_nan",
    "typename",
    "unique",
    "unique_consecutive",
    "unravel_index",
    "lobpcg",
    "lstsq",
    "lu",
    "matrix_rank",
    "pca_lowrank",
    "qr",
    "solve",
    "svd_lowrank",
    "symeig",
    "use_deterministic_algorithms",
    "vmap",
    *_batch_norm_parts.__all__,
    *_sparse.__all__,
    *_TENSOR_CLASSES,
    *_STORAGE_CLASSES,
    *_C._public_names(),
]
