"""Which names of PyTorch are placeholders: by namespace, by name, and what functions return."""

from __future__ import annotations

import functools
from collections import OrderedDict
from typing import Any, NoReturn

from . import Refusal
from .onnx import FUNCTIONS
from .top import NAMES as _TOP

_EAGER = "torch.save and torch.load keep weights, and the Python class makes the module again"
_QUANTIZED = Refusal(
    "there are no quantized tensors", "compute in float32, bfloat16 or float16 (torch.autocast)"
)
_SCRIPT = Refusal("there is no TorchScript, functions run as Python", _EAGER)
_EXPORT = Refusal("programs run as they are, no graph is captured to be exported", _EAGER)
_PACKAGE = Refusal(
    "packages hold code of PyTorch's own", "install the code that the objects need, and torch.save"
)
_MOBILE = Refusal("there is no runtime for phones", "run the module in Python")
_EXTENSION = Refusal(
    "there is no C++ interface to compile against", "write a torch.autograd.Function, or Rust"
)
_PIPE = Refusal("there are no data pipes", "use torch.utils.data.Dataset and DataLoader")
_XPU = Refusal("Torch not compiled with XPU enabled", "compute on the CPU", AssertionError)
_MTIA = Refusal("Torch not compiled with MTIA enabled", "compute on the CPU", AssertionError)
_MPS = Refusal("it cannot be executed without MPS backend", "compute on the CPU", RuntimeError)
_CUDA = Refusal(
    "device 'cuda' is not available, this build has no cuda backend (only cpu)",
    "compute on the CPU",
    RuntimeError,
)
_ONE_PROCESS = Refusal(
    "a process trains alone here, in a group of one",
    "train on one process, whose ops use all cores",
    RuntimeError,
)
_GUARDS = Refusal("nothing is compiled, and no guard is checked", "call the function itself")
_ARTIFACT = Refusal("nothing is compiled that could be kept", "call the function itself")
_FAKE = Refusal(
    "no program is traced on tensors without elements", 'make tensors with device="meta"'
)
_INDUCTOR = Refusal("nothing is compiled", "call the function itself")
_PASSES = Refusal("passes over captured graphs are not here", "rewrite the module in Python")

# Private modules of placeholder namespaces, from which libraries import; by kind.
PRIVATE: dict[str, dict[str, str]] = {
    "torch._guards": {"active_fake_mode": "function", "detect_fake_mode": "function"},
    "torch._inductor": {
        "cudagraph_mark_step_begin": "function",
        "list_mode_options": "function",
        "list_options": "function",
    },
    "torch._inductor.codecache": {"extract_tensor_metadata_for_cache_key": "function"},
    "torch._inductor.cpp_builder": {"get_cpp_compiler": "function"},
    "torch._inductor.cpu_vec_isa": {"pick_vec_isa": "function"},
    "torch._inductor.runtime.cache_dir_utils": {"cache_dir": "function"},
    "torch._subclasses": dict.fromkeys(
        [
            "CrossRefFakeMode",
            "DynamicOutputShapeException",
            "FakeTensor",
            "FakeTensorMode",
            "UnsupportedFakeTensorException",
        ],
        "class",
    ),
    "torch._subclasses.fake_tensor": {
        "DynamicOutputShapeException": "class",
        "FakeTensor": "class",
        "FakeTensorConverter": "class",
        "FakeTensorMode": "class",
        "UnsupportedFakeTensorException": "class",
        "is_fake": "function",
        "is_fake_tensor": "function",
        "unset_fake_temporarily": "function",
    },
    "torch._subclasses.functional_tensor": {
        "FunctionalTensor": "class",
        "FunctionalTensorMode": "class",
        "mb_unwrap_functional_tensor": "function",
    },
    "torch._subclasses.meta_utils": {"MetaConverter": "class"},
    "torch.distributed._functional_collectives": {
        "AsyncCollectiveTensor": "class",
        "all_gather_tensor": "function",
        "all_reduce": "function",
        "all_to_all_single": "function",
        "all_to_all_single_autograd": "function",
        "reduce_scatter_tensor": "function",
        "wait_tensor": "function",
    },
    "torch.distributed._composable.fsdp": {"FSDPModule": "class", "fully_shard": "function"},
    "torch.distributed._tensor": {"DTensor": "class"},
    "torch.fx.passes.infra.pass_base": {"PassBase": "class", "PassResult": "class"},
    "torch.distributed.algorithms._checkpoint.checkpoint_wrapper": {
        "CheckpointImpl": "class",
        "CheckpointWrapper": "class",
        "apply_activation_checkpointing": "function",
        "checkpoint_wrapper": "function",
        "offload_wrapper": "function",
    },
    "torch.distributed.checkpoint.state_dict": {
        "StateDictOptions": "class",
        "get_model_state_dict": "function",
        "get_optimizer_state_dict": "function",
        "get_state_dict": "function",
        "set_model_state_dict": "function",
        "set_optimizer_state_dict": "function",
        "set_state_dict": "function",
    },
    "torch.distributed.fsdp.sharded_grad_scaler": {"ShardedGradScaler": "class"},
    "torch.distributed.fsdp.wrap": {
        "ModuleWrapPolicy": "class",
        "_or_policy": "function",
        "enable_wrap": "function",
        "lambda_auto_wrap_policy": "function",
        "size_based_auto_wrap_policy": "function",
        "transformer_auto_wrap_policy": "function",
        "wrap": "function",
    },
    "torch.distributed.rpc.api": {"_all_gather": "function", "_require_initialized": "function"},
    "torch.distributed.tensor._utils": {"compute_local_shape_and_global_offset": "function"},
    "torch.fx.experimental.symbolic_shapes": {
        "GuardOnDataDependentSymNode": "class",
        "free_symbols": "function",
        "free_unbacked_symbols": "function",
        "guard_or_false": "function",
        "guard_or_true": "function",
        "statically_known_true": "function",
    },
    **{
        f"torch.onnx.symbolic_opset{number}": dict.fromkeys(
            ["dropout", "masked_fill", "select", "softmax", "squeeze", "unsqueeze"], "function"
        )
        for number in range(9, 21)
    },
    "torch.jit": {"_get_trace_graph": "function", "_unique_state_dict": "function"},
    **{space: dict.fromkeys(names.split(), "function") for space, names in FUNCTIONS.items()},
    "torch.onnx.operators": {
        "reshape_from_tensor_shape": "function",
        "shape_as_tensor": "function",
    },
    "torch.utils.data.datapipes.iter": dict.fromkeys(
        [
            "Batcher",
            "Collator",
            "Concater",
            "Demultiplexer",
            "FileLister",
            "FileOpener",
            "Filter",
            "Forker",
            "Grouper",
            "IterableWrapper",
            "Mapper",
            "Multiplexer",
            "RoutedDecoder",
            "Sampler",
            "ShardingFilter",
            "Shuffler",
            "StreamReader",
            "UnBatcher",
            "Zipper",
        ],
        "class",
    ),
    "torch.utils.data.datapipes.map": dict.fromkeys(
        [
            "Batcher",
            "Concater",
            "Mapper",
            "SequenceWrapper",
            "Shuffler",
            "Zipper",
        ],
        "class",
    ),
}

# A namespace, all that is below it included, where a name has no entry of its own.
SPACES: dict[str, Refusal] = {
    "torch._guards": _GUARDS,
    "torch._inductor": _INDUCTOR,
    "torch._subclasses": _FAKE,
    "torch.accelerator.graphs": _CUDA,
    "torch.accelerator.random": _CUDA,
    "torch.ao": _QUANTIZED,
    "torch.classes": _SCRIPT,
    "torch.cpp": _EXTENSION,
    "torch.backends.python_native": Refusal("kernels are those of Rust", "write an op in Rust"),
    "torch.compiler.config": _GUARDS,
    "torch.cuda.gds": _CUDA,
    "torch.cuda.graphs": _CUDA,
    "torch.cuda.nccl": _CUDA,
    "torch.cuda.profiler": _CUDA,
    "torch.cuda.sparse": _CUDA,
    "torch.cuda.tunable": _CUDA,
    "torch.distributed": _ONE_PROCESS,
    "torch.export": _EXPORT,
    "torch.fx.experimental": _PASSES,
    "torch.fx.passes": _PASSES,
    "torch.jit": _SCRIPT,
    "torch.monitor": Refusal("nothing is monitored", "use torch.profiler"),
    "torch.mps": _MPS,
    "torch.mtia": _MTIA,
    "torch.nn.cpp": _EXTENSION,
    "torch.nn.intrinsic": _QUANTIZED,
    "torch.nn.qat": _QUANTIZED,
    "torch.nn.quantizable": _QUANTIZED,
    "torch.nn.quantized": _QUANTIZED,
    "torch.numa": Refusal(
        "processes are not bound to nodes of memory", "start the program with numactl"
    ),
    "torch.onnx": Refusal("no graph is captured to be exported", _EAGER),
    "torch.package": _PACKAGE,
    "torch.quantization": _QUANTIZED,
    "torch.utils.backend_registration": Refusal(
        "backends of one's own are written in C++", "write ops in Rust"
    ),
    "torch.utils.bundled_inputs": _MOBILE,
    "torch.utils.cpp_extension": _EXTENSION,
    "torch.utils.data.backward_compatibility": _PIPE,
    "torch.utils.data.datapipes": _PIPE,
    "torch.utils.data.graph": _PIPE,
    "torch.utils.data.graph_settings": _PIPE,
    "torch.utils.debug_log": Refusal("gradients are not logged", "use Tensor.register_hook"),
    "torch.utils.file_baton": Refusal(
        "nothing is built in whose turn processes would wait", "use a lock file"
    ),
    "torch.utils.hipify": _EXTENSION,
    "torch.utils.mkldnn": Refusal("oneDNN is not part of this build", "call the module itself"),
    "torch.utils.mobile_optimizer": _MOBILE,
    "torch.utils.model_dump": _SCRIPT,
    "torch.utils.serialization": Refusal(
        "there is nothing to be set", "give torch.save and torch.load arguments"
    ),
    "torch.utils.show_pickle": Refusal("archives of scripts are not read", "use pickletools"),
    "torch.utils.throughput_benchmark": _SCRIPT,
    "torch.xpu": _XPU,
}


def _names(space: str, refusal: Refusal, names: str) -> dict[str, Refusal]:
    return {f"{space}.{name}": refusal for name in names.split()}


# Single names, in namespaces that hold more than placeholders.
NAMES: dict[str, Refusal] = {
    **_TOP,
    **_names(
        "torch.compiler",
        _GUARDS,
        "keep_portable_guards_unsafe keep_tensor_guards_unsafe skip_all_guards_unsafe "
        "skip_guard_on_all_nn_modules_unsafe skip_guard_on_globals_unsafe "
        "skip_guard_on_inbuilt_nn_modules_unsafe",
    ),
    **_names("torch.compiler", _ARTIFACT, "load_cache_artifacts load_compiled_function precompile"),
    **_names(
        "torch.backends.cuda",
        _CUDA,
        "blas_workspace_size cuBLASModule cuFFTPlanCache cuFFTPlanCacheAttrContextProp "
        "cuFFTPlanCacheManager cublas_workspace_size cublaslt_workspace_size cufft_plan_cache",
    ),
    "torch.accelerator.Graph": _CUDA,
    **_names(
        "torch.utils.benchmark",
        Refusal("Valgrind counts only with a wrapper in C++", "measure times, or use perf"),
        "CallgrindStats CopyIfCallgrind FunctionCount FunctionCounts",
    ),
    **_names(
        "torch.utils.data",
        _PIPE,
        "DFIterDataPipe DataChunk argument_validation guaranteed_datapipes_determinism "
        "non_deterministic "
        "runtime_validation runtime_validation_disabled",
    ),
    **_names("torch.compiler", _ARTIFACT, "save_cache_artifacts PrecompileError"),
    **_names(
        "torch.cuda.memory",
        _CUDA,
        "CUDAPluggableAllocator MemPool caching_allocator_alloc caching_allocator_delete "
        "change_current_allocator get_per_process_memory_fraction "
        "set_per_process_memory_fraction use_mem_pool",
    ),
    **_names(
        "torch.cuda",
        _CUDA,
        "CUDAGraph CUDAPluggableAllocator CudaError DeferredCudaCallError ExternalStream "
        "GreenContext MemPool caching_allocator_alloc caching_allocator_delete "
        "change_current_allocator check_error clock_rate cudaStatus cudart current_blas_handle "
        "current_solver_handle device_memory_used export_dot export_graph_data "
        "get_stream_from_external graph graph_annotations graph_pool_handle green_contexts "
        "is_current_stream_capturing "
        "jiterator make_graphed_callables memory_usage power_draw set_per_process_memory_fraction "
        "get_per_process_memory_fraction temperature use_mem_pool utilization",
    ),
}

_NO_STATS: OrderedDict[str, Any] = OrderedDict()
# Results of functions for devices that do not exist: those of PyTorch without the device.
_WITHOUT_DEVICE: dict[str, Any] = {
    "device_count": 0,
    "empty_cache": None,
    "get_arch_list": [],
    "get_gencode_flags": "",
    "get_rng_state_all": [],
    "is_available": False,
    "is_bf16_supported": False,
    "is_current_stream_capturing": False,
    "is_initialized": False,
    "is_tf32_supported": False,
    "manual_seed": None,
    "manual_seed_all": None,
    "max_memory_allocated": 0,
    "max_memory_reserved": 0,
    "memory_allocated": 0,
    "memory_reserved": 0,
    "memory_snapshot": [],
    "memory_stats": _NO_STATS,
    "memory_stats_as_nested_dict": {},
    "record_memory_history": None,
    "reset_accumulated_memory_stats": None,
    "reset_peak_memory_stats": None,
    "seed": None,
    "seed_all": None,
}
# Results of functions, whatever their arguments are; functions with None do nothing.
RESULTS: dict[str, Any] = {
    **{f"torch.xpu.{name}": value for name, value in _WITHOUT_DEVICE.items()},
    **{f"torch.mtia.{name}": value for name, value in _WITHOUT_DEVICE.items()},
    "torch._guards.active_fake_mode": None,
    "torch._guards.detect_fake_mode": None,
    "torch._inductor.cudagraph_mark_step_begin": None,
    "torch._inductor.list_mode_options": {},
    "torch._inductor.list_options": [],
    "torch._subclasses.fake_tensor.is_fake": False,
    "torch._subclasses.fake_tensor.is_fake_tensor": False,
    "torch.cuda.gds.is_available": False,
    "torch.cuda.graphs.is_current_stream_capturing": False,
    "torch.cuda.is_current_stream_capturing": False,
    "torch.cuda.tunable.is_enabled": False,
    "torch.cuda.tunable.record_untuned_is_enabled": False,
    "torch.cuda.tunable.tuning_is_enabled": False,
    "torch.cuda.tunable.wildcard_fallback_is_enabled": False,
    "torch.distributed.autograd.is_available": False,
    "torch.distributed.rpc.is_available": False,
    "torch.mps.device_count": 0,
    "torch.mps.is_available": False,
    "torch.mps.manual_seed": None,
    "torch.package.is_from_package": False,
    "torch.utils.cpp_extension.is_ninja_available": False,
    "torch.utils.cpp_extension.include_paths": [],
    "torch.utils.cpp_extension.library_paths": [],
}


def _require_initialized(func: Any) -> Any:
    """A decorator for functions that need other processes: calling the function is an error."""

    @functools.wraps(func)
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            "RPC has not been initialized. Call torch.distributed.rpc.init_rpc first."
        )

    return refuse


# Values that equal PyTorch's, without the parts that they belong to.
VALUES: dict[str, Any] = {
    "torch.xpu.default_generators": (),
    "torch.mtia.default_generators": (),
    "torch.distributed.rpc.api._require_initialized": _require_initialized,
}
