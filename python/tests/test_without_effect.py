"""Settings and parameters that do nothing are listed, with the reason why that cannot matter here.

Found by reading the package's sources: public functions without a body, parameters that no body
uses, and what documentation calls without effect. Whoever adds one says here why no program can
tell; what is no longer so fails.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pullback as torch
from pullback._placeholder import refusal_of
from pullback._placeholder.table import RESULTS
from pullback.backends import _switch

PACKAGE = Path(torch.__file__).parent

EAGER = "nothing is compiled: what would be asked of the compiler changes no result"
HOST = "this build computes in main memory: there is no device to be told, waited for or freed"
ONE_WAY = "there is one implementation, which is the quick one"
ORDERED = "there are no results of devices, which alone arrive late"
SEED = "simulated devices draw from the generator of main memory, which `torch.manual_seed` seeds"
CHECKED = "the invariants of sparse tensors are always checked"
ALWAYS = "all that can be recorded is always recorded"
DECLARED = "PyTorch's own does nothing with it"
KEPT = "a custom function whose only use is to keep its inputs"
PASSED = "a function that callers of its kind pass everything to"
JACOBIAN = "the derivative of this function follows from one of its two arguments, or from neither"
WRITTEN_ALIKE = "PyTorch writes the same file by two ways"
ALONE = "a process alone waits for nobody and sends nothing, so that there is nothing to be told"
REFUSES = "the call is an error whatever it is given"
UNWATCHED = "NVIDIA's profiler is not there to see ranges: what is kept is what the calls return"
OWN_CODE = "only GitHub knows whose a branch is, which is not asked: `trust_repo` decides"
NO_PLACE = "a first-class dimension has no place among the positional ones"
FRAMES = "only frames of Python are read: there are none of TorchScript"
ASKED_ALIKE = "functions that find something out take the function that runs commands"
FORMULA = "a formula takes all arguments of its op; the count depends on some of the shapes"


def alike(reason: str, names: str) -> dict[str, str]:
    """One reason for several; a name with several parameters has them between commas."""
    found = {}
    for entry in names.split():
        function, _, parameters = entry.rstrip(")").partition("(")
        found |= {f"{function}({parameter})": reason for parameter in parameters.split(",")}
    return found


# By module, name and parameter (none where the whole function does nothing); what PyTorch means by
# it is in the function's documentation.
LISTED = {
    "_event_tree.gather_traceback(script)": FRAMES,
    "_event_tree.gather_traceback(cpp)": FRAMES,
    "utils._traceback.CapturedTraceback.extract(script)": FRAMES,
    "utils._traceback.CapturedTraceback.extract(cpp)": FRAMES,
    "masked._tensor.MaskedTensor.to_dense(masked_grad)": DECLARED,
    "functorch.dim._move.stack(dim)": NO_PLACE,
    "_batch_norm_parts.batch_norm_elemt(eps)": DECLARED,
    "_batch_norm_parts.batch_norm_gather_stats_with_counts(input)": DECLARED,
    **alike(
        REFUSES,
        "sparse.semi_structured.SparseSemiStructuredTensor.from_dense(alg_id)"
        " sparse.semi_structured.SparseSemiStructuredTensor.prune_dense_static_sort"
        "(original_tensor,algorithm)",
    ),
    "_dynamo.disable(recursive)": EAGER,
    "_dynamo.disable(reason)": EAGER,
    "_dynamo.reset()": EAGER,
    "__init__.compile(name)": EAGER,
    "__init__.compile(recompile_limit)": EAGER,
    "__init__.compile(dynamic_shapes)": EAGER,
    "_sparse.sparse_coo_tensor(check_invariants)": CHECKED,
    "_dynamo.utils.is_compile_supported(device_type)": EAGER,
    "_levels.is_functionaltensor(tensor)": "functionalize runs functions on tensors as they are",
    "_functorch.vmap.lazy_load_decompositions()": "batching rules are part of the library",
    **alike(
        FORMULA,
        "utils.flop_counter.mm_flop(args,kwargs,out_shape)"
        " utils.flop_counter.addmm_flop(kwargs,out_shape,self_shape)"
        " utils.flop_counter.bmm_flop(kwargs,out_shape)"
        " utils.flop_counter.baddbmm_flop(kwargs,out_shape,self_shape)"
        " utils.flop_counter.conv_flop(args,kwargs)"
        " utils.flop_counter.conv_backward_flop(kwargs,out_shape)"
        " utils.flop_counter.sdpa_flop(args,kwargs,out_shape)"
        " utils.flop_counter.sdpa_backward_flop(args,kwargs,out_shape)"
        " utils.flop_counter.sdpa_backward_flop_count(grad_out_shape)",
    ),
    "_levels.is_gradtrackingtensor(tensor)": "reverse mode records tensors as they are",
    "_levels.is_legacy_batchedtensor(tensor)": "the old vmap batches as the new one does",
    "_ops.HigherOrderOperator.__init__(cacheable)": EAGER,
    "fx._pytree.register_pytree_flatten_spec(flatten_fn_exact_match_spec)": (
        "lengths are not compared when a tree is taken apart by a structure"
    ),
    **dict.fromkeys(
        (
            "onnx.register_custom_op_symbolic()",
            "onnx.register_custom_op_symbolic(opset_version)",
            "onnx.register_custom_op_symbolic(symbolic_fn)",
            "onnx.register_custom_op_symbolic(symbolic_name)",
            "onnx.symbolic_helper.parse_args(arg_descriptors)",
            "onnx.unregister_custom_op_symbolic()",
            "onnx.unregister_custom_op_symbolic(opset_version)",
            "onnx.unregister_custom_op_symbolic(symbolic_name)",
        ),
        "there is no exporter that would ask how an op is written",
    ),
    "utils.data.datapipe.IterDataPipe.reset()": "for pipes of a program to define",
    "utils.data.datapipe.functional_datapipe.__init__(enable_df_api_tracing)": (
        "there are no data frames"
    ),
    "compiler.cudagraph_mark_step_begin()": EAGER,
    "cpu.set_device()": HOST,
    "cpu.set_device(device)": HOST,
    "cpu.synchronize()": HOST,
    "cpu.synchronize(device)": HOST,
    "autograd.graph.save_on_cpu.__init__(device_type)": HOST,
    "autograd.function.Function.__init__(args)": "it warns, as PyTorch does",
    "autograd.function.Function.__init__(kwargs)": "it warns, as PyTorch does",
    "autograd.function.FunctionCtx.mark_shared_storage(pairs)": "it warns, as PyTorch does",
    "autograd.profiler.profile.__init__(post_processing_timeout_s)": ORDERED,
    "autograd.profiler_legacy.profile.export_chrome_trace(metadata)": DECLARED,
    "autograd.graph.set_override_stale_capture_stream()": HOST,
    "autograd.graph.set_override_stale_capture_stream(enabled)": HOST,
    "autograd.graph.set_warn_on_accumulate_grad_stream_mismatch()": HOST,
    "autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(enabled)": HOST,
    "backends.cudnn.is_acceptable(tensor)": HOST,
    "nested.nested_tensor(pin_memory)": HOST,
    "nested._question.is_same_size(func)": PASSED,
    "nested._strided.StridedNestedTensor.numpy(force)": "it is refused in any case",
    "nested._strided.StridedNestedTensor.stride(dim)": "it is refused in any case",
    "nn._spatial.max_pool2d_with_indices(return_indices)": DECLARED,
    **alike(
        DECLARED,
        "nn._pooling.adaptive_max_pool1d_with_indices(return_indices) "
        "nn._pooling.adaptive_max_pool2d_with_indices(return_indices) "
        "nn._pooling.adaptive_max_pool3d_with_indices(return_indices) "
        "nn._pooling.fractional_max_pool2d_with_indices(return_indices) "
        "nn._pooling.fractional_max_pool3d_with_indices(return_indices) "
        "nn._pooling.max_pool1d_with_indices(return_indices) "
        "nn._pooling.max_pool3d_with_indices(return_indices)",
    ),
    **alike(
        "the basis is made orthonormal in one way, which has nothing to be set",
        "_lobpcg.lobpcg(ortho_bparams,ortho_fparams,ortho_iparams)",
    ),
    "nn.modules.linear.Identity.__init__(args)": "documented so, as in PyTorch",
    "nn.modules.linear.Identity.__init__(kwargs)": "documented so, as in PyTorch",
    "nn.modules.rnn.RNNBase.flatten_parameters()": "only cuDNN wants weights in one block",
    "nn.attention._block_mask.noop_mask(head)": "it lets all places pass",
    "nn.attention._block_mask.noop_mask(token_q)": "it lets all places pass",
    "nn.attention._block_mask.noop_mask(token_kv)": "it lets all places pass",
    "nn.attention.flex_attention.create_block_mask(compute_dq_write_order)": ONE_WAY,
    "nn.attention.flex_attention.create_block_mask(dq_kv_order)": ONE_WAY,
    "nn.attention.flex_attention.flex_attention(kernel_options)": ONE_WAY,
    "nn.attention.varlen.varlen_attn(num_splits)": ONE_WAY,
    "nn.utils.prune.BasePruningMethod.compute_mask()": "a subclass must define it",
    "nn.utils.prune.BasePruningMethod.compute_mask(t)": "a subclass must define it",
    "nn.utils.prune.BasePruningMethod.compute_mask(default_mask)": "a subclass must define it",
    "nn.utils.prune.Identity.compute_mask(t)": "this method keeps all, whatever there is",
    "nn.utils.prune.CustomFromMask.compute_mask(t)": "this method keeps what the mask says",
    "nn.parallel.comm.broadcast_coalesced(buffer_size)": HOST,
    "nn.parallel.comm.reduce_add_coalesced(buffer_size)": HOST,
    "nn.utils.clip_grad.clip_grads_with_norm_(foreach)": ONE_WAY,
    "nn.utils.clip_grad.clip_grad_value_(foreach)": ONE_WAY,
    **{
        f"optim.{step}({flag})": ONE_WAY
        for step in (
            "_adafactor.adafactor",
            "adadelta.adadelta",
            "adagrad.adagrad",
            "adamax.adamax",
            "asgd.asgd",
            "nadam.nadam",
            "radam.radam",
            "rmsprop.rmsprop",
            "rprop.rprop",
        )
        for flag in ("foreach", "has_complex")
    },
    "optim.adagrad.adagrad(has_sparse_grad)": ONE_WAY,
    "optim.adam.adam(has_complex)": ONE_WAY,
    "optim.sgd.sgd(foreach)": ONE_WAY,
    "optim.sgd.sgd(has_sparse_grad)": ONE_WAY,
    "overrides.redispatch_function(types)": PASSED,
    "profiler.profiler.tensorboard_trace_handler(use_python_export)": WRITTEN_ALIKE,
    "random.fork_rng(devices)": SEED,
    "random.fork_rng(device_type)": SEED,
    "storage.TypedStorage.type(non_blocking)": HOST,
    "utils.tensorboard.summary.pr_curve_raw(weights)": DECLARED,
    "utils.tensorboard.summary.scalar(collections)": DECLARED,
    "utils.tensorboard.writer.SummaryWriter.add_graph(use_strict_trace)": EAGER,
    **alike(
        "what a class derived from it may use is given to each method alike",
        "fx._symbolic_trace.Tracer.getattr(attr) "
        "fx._symbolic_trace.Tracer.is_leaf_module(module_qualified_name) "
        "fx.interpreter.Interpreter.get_attr(args,kwargs) "
        "fx.interpreter.Interpreter.output(kwargs,target) "
        "fx.interpreter.Interpreter.placeholder(kwargs) "
        "fx.interpreter.Transformer.placeholder(kwargs)",
    ),
    **alike(
        "it is about how a graph is shown, not about what it computes",
        "fx.graph.Graph.python_code(options) fx.graph_module.GraphModule.print_readable(options) "
        "fx.node.Node.format_node(include_tensor_metadata,maybe_return_typename)",
    ),
    **alike(
        "a rule goes with its op, and the op with its library",
        "library.register_autocast(lib) library.register_autograd(lib) library.register_fake(lib) "
        "library.register_torch_dispatch(lib) library.register_vmap(lib)",
    ),
    "fx.graph.Graph.find_nodes(sort)": "nodes are always found in their order",
    **alike(
        "a function has one signature here: no types choose among several",
        "fx.operator_schemas.normalize_function(arg_types,kwarg_types)",
    ),
    "fx.traceback.set_current_meta(pass_name)": "no record of passes is kept",
    "library.infer_schema(tags)": "tags are no part of a signature",
    **alike("nothing but shapes is compared", "library.opcheck.opcheck(atol,rtol)"),
    **alike(
        EAGER,
        "_dynamo.graph_break(,msg) _dynamo.mark_dynamic(,t,index,bounds) "
        "_dynamo.mark_static(,t,index) _dynamo.mark_static_address(,t,guard) "
        "_dynamo.mark_unbacked(,t,index,options) _dynamo.maybe_mark_dynamic(,t,index) "
        "compiler.cudagraph_mark_warmup_incomplete() "
        "compiler.nested_compile_region(max_reuse_entries,options,reuse_hash_fn) "
        "compiler.substitute_in_graph(can_constant_fold_through,skip_signature_check) "
        "jit.TracerWarning.ignore_lib_warnings() jit.annotate(the_type) "
        "jit.enable_onednn_fusion(,enabled) jit.freeze(optimize_numerics,preserved_attrs) "
        "_jit_internal.ignore(kwargs) jit.optimize_for_inference(other_methods) "
        "jit.optimized_execution(should_optimize) jit.script(example_inputs,optimize) "
        "jit.trace(check_inputs,check_tolerance,check_trace,optimize,strict) "
        "jit.trace_module(check_inputs,check_tolerance,check_trace,optimize,strict)",
    ),
    **alike(
        HOST,
        "_build.cudnn_is_acceptable(input) _build.init_num_threads() "
        "_build.prepare_multiprocessing_environment(,path) "
        "accelerator.current_accelerator(check_available) accelerator.memory.empty_cache() "
        "accelerator.memory.empty_host_cache() cpu.Event.record(,stream) cpu.Event.synchronize() "
        "cpu.Event.wait(,stream) cpu.Stream.wait_event(,event) cpu.Stream.wait_stream(,stream) "
        "cpu.current_stream(device) cuda.memory.caching_allocator_enable(,value) "
        "cuda.memory.empty_cache() cuda.memory.memory_snapshot(include_traces,mempool_id) "
        "cuda.memory.reset_accumulated_host_memory_stats() "
        "cuda.memory.reset_peak_host_memory_stats()",
    ),
    **alike(
        ORDERED,
        "_stream.Event.__init__(blocking,interprocess) _stream.Event.synchronize() "
        "_stream.Event.wait(,stream) _stream.Stream.synchronize() "
        "_stream.Stream.wait_event(,event) _stream.Stream.wait_stream(,stream) "
        "cuda.streams.Event.__init__(external)",
    ),
    **alike(
        UNWATCHED,
        "cuda.nvtx.mark(,msg) cuda.nvtx.range_end(,range_id) cuda.nvtx.range_push(msg) "
        "cuda.nvtx.range_start(msg)",
    ),
    **alike(
        ALONE,
        "distributed._collective.barrier(device_ids,timeout) "
        "distributed._collective.monitored_barrier(timeout,wait_all_ranks) "
        "distributed._group.new_group"
        "(device_id,pg_options,sort_ranks,timeout,use_local_synchronization) "
        "distributed._group.rendezvous(kwargs) "
        "distributed._object.broadcast_object_list(device,weights_only) "
        "distributed.device_mesh.DeviceMesh.__init__(preserve_rank_order) "
        "distributed._store.FileStore.__init__(world_size) "
        "distributed._store.TCPStore.__init__(options) distributed._work.Work.synchronize() "
        "distributed._work.Work.wait(timeout) distributed.breakpoint(timeout_s) "
        "distributed.init_process_group(device_id,group_name,pg_options) "
        "nn.parallel.distributed.DistributedDataParallel.__init__"
        "(bucket_cap_mb,bucket_cap_mb_list,check_reduction,init_sync,"
        "skip_all_reduce_unused_params) "
        "nn.parallel.distributed.DistributedDataParallel.join"
        "(divide_by_initial_world_size,enable,throw_on_early_termination)",
    ),
    **alike(
        REFUSES,
        "_linalg_utils.cholesky(args,kwargs) _linalg_utils.eig(args,kwargs) "
        "_linalg_utils.lstsq(args,kwargs) _linalg_utils.matrix_rank(args,kwargs) "
        "_linalg_utils.qr(args,kwargs) _linalg_utils.solve(args,kwargs) "
        "_linalg_utils.symeig(args,kwargs) "
        "_script.ScriptFunction.save(f) jit._module.ScriptModule.save(f) "
        "distributed._collective.irecv(tag) distributed._collective.isend(tag) "
        "distributed._object.recv_object_list(device,object_list,use_batch,weights_only) "
        "distributed._object.send_object_list(device,object_list,use_batch,weights_only) "
        "utils.benchmark.utils.timer.Timer.collect_callgrind(args,kwargs)",
    ),
    **alike(
        OWN_CODE, "hub.help(skip_validation) hub.list(skip_validation) hub.load(skip_validation)"
    ),
    **alike(
        ASKED_ALIKE,
        "utils.collect_env.get_cudnn_version(run_lambda) "
        "utils.collect_env.get_intel_gpu_detected(run_lambda) "
        "utils.collect_env.get_pip_packages(run_lambda) "
        "utils.collect_env.get_windows_version(run_lambda)",
    ),
    "utils.flop_counter.FlopCounterMode.__init__(mods)": DECLARED,
    "utils.flop_counter.FlopCounterMode.__init__(skip_unsupported)": (
        "ops that are not counted are always allowed"
    ),
    "utils.checkpoint.get_device_states(args)": HOST,
    "utils.checkpoint.set_device_states()": HOST,
    "utils.checkpoint.set_device_states(devices)": HOST,
    "utils.checkpoint.set_device_states(states)": HOST,
    "utils.checkpoint.set_device_states(device_type)": HOST,
    "utils.checkpoint._region.KeepInputs.forward(tensors)": KEPT,
    "utils.checkpoint._region.KeepInputs.jvp()": KEPT,
    "utils.checkpoint._region.KeepInputs.jvp(tangents)": KEPT,
    "utils.checkpoint._region.KeepInputs.setup_context(output)": KEPT,
    "utils.data.fetch.MapFetcher.__init__(drop_last)": PASSED,
    "utils.data.collate.collate_tensor_fn(collate_fn_map)": PASSED,
    "distributions._matrix_transform.CorrCholeskyTransform.log_abs_det_jacobian(intermediates)": (
        DECLARED
    ),
    "distributions.transforms.AffineTransform.log_abs_det_jacobian(y)": JACOBIAN,
    "distributions.transforms.CumulativeDistributionTransform.log_abs_det_jacobian(y)": JACOBIAN,
    "distributions.transforms.ExpTransform.log_abs_det_jacobian(y)": JACOBIAN,
    "distributions.transforms.ReshapeTransform.log_abs_det_jacobian(y)": JACOBIAN,
    "distributions.transforms.SigmoidTransform.log_abs_det_jacobian(y)": JACOBIAN,
    "distributions.transforms.SoftplusTransform.log_abs_det_jacobian(y)": JACOBIAN,
    "distributions.transforms.TanhTransform.log_abs_det_jacobian(y)": JACOBIAN,
}


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def functions(tree: ast.AST, outer: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Public functions and methods with their full names; those within functions are not public."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from functions(node, f"{outer}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            yield f"{outer}{node.name}", node


def is_public(name: str) -> bool:
    return all(not part.startswith("_") or part == "__init__" for part in name.split("."))


def unused(function: ast.FunctionDef) -> list[str]:
    """Parameters that the body does not read."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    names = [one.arg for one in every if one.arg not in ("self", "cls", "ctx")]
    read = {
        node.id
        for statement in function.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    return [name for name in names if name not in read and not name.startswith("_")]


def does_nothing(statement: ast.stmt) -> bool:
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_text or isinstance(statement, ast.Pass)


def only_raises(function: ast.FunctionDef) -> bool:
    body = [statement for statement in function.body if not does_nothing(statement)]
    return bool(body) and isinstance(body[0], ast.Raise)


def is_declared_only(function: ast.FunctionDef) -> bool:
    return any("overload" in ast.unparse(decorator) for decorator in function.decorator_list)


def found() -> set[str]:
    """All public functions and parameters without effect."""
    names = set()
    for path in PACKAGE.rglob("*.py"):
        if "_gen" in path.parts:
            continue
        for name, function in functions(ast.parse(path.read_text(encoding="utf-8"))):
            if not is_public(name) or is_declared_only(function) or only_raises(function):
                continue
            full = f"{module_of(path)}.{name}"
            if name.rpartition(".")[2] != "__init__" and all(map(does_nothing, function.body)):
                names.add(f"{full}()")
            names.update(f"{full}({parameter})" for parameter in unused(function))
    return names


def test_what_has_no_effect_is_listed_with_the_reason() -> None:
    assert found() - set(LISTED) == set()


def test_what_is_listed_has_no_effect() -> None:
    assert set(LISTED) - found() == set()


# Parameters that are kept or checked, and change nothing: the documentation says so.
SAID = {
    "_batch_norm_parts.batch_norm_elemt.eps": DECLARED,
    "sparse.semi_structured.to_sparse_semi_structured.transposed": DECLARED,
    "nested.nested_tensor.pin_memory": HOST,
    "nn.functional.gumbel_softmax.eps": "PyTorch's own has been without effect for years",
    "nn.attention.flex_attention.create_block_mask._compile": EAGER,
    "nn.attention.flex_attention.create_block_mask.compute_dq_write_order": ONE_WAY,
    "nn.attention.flex_attention.create_block_mask.dq_kv_order": ONE_WAY,
    "nn.attention.flex_attention.flex_attention.kernel_options": ONE_WAY,
    "nn.attention.varlen.varlen_attn.num_splits": ONE_WAY,
    "autograd.profiler.profile.use_kineto": ALWAYS,
    "autograd.profiler.profile.experimental_config": ALWAYS,
    "autograd.profiler.profile.post_processing_timeout_s": ORDERED,
    "profiler.profiler.profile.experimental_config": ALWAYS,
    "profiler.profiler.profile.post_processing_timeout_s": ORDERED,
    "profiler.profiler.tensorboard_trace_handler.use_python_export": WRITTEN_ALIKE,
}


def said() -> set[str]:
    """Parameters that documentation says have no effect."""
    names = set()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                continue
            for line in (ast.get_docstring(node) or "").splitlines():
                parameter, _, text = line.strip().partition(": ")
                if "has no effect" in text:
                    names.add(f"{module_of(path)}.{node.name}.{parameter}")
    return names


def test_functions_that_only_answer_are_data_with_reasons() -> None:
    # (Those whose answer is None do nothing; `test_placeholders.py` calls them all.)
    for full, value in RESULTS.items():
        assert value is not None or refusal_of(full) is not None, full


def test_what_documentation_calls_without_effect_is_listed() -> None:
    assert said() == set(SAID)


# Switches of other libraries, which nobody here asks: the reason is `HOST`, or that all is exact.
MODULES = [
    "",
    "cpu",
    "cuda",
    "cudnn",
    "cusparselt",
    "kleidiai",
    "mha",
    "miopen",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
    "quantized",
]


def backend(name: str) -> ModuleType:
    module: ModuleType = getattr(torch.backends, name) if name else torch.backends
    return module


@pytest.mark.parametrize("name", MODULES)
def test_switches_that_are_not_there_are_refused(name: str) -> None:
    module = backend(name)
    with pytest.raises(AttributeError, match="has no attribute 'benchmak'"):
        module.benchmak = True
    with pytest.raises(AttributeError, match="has no attribute 'benchmak'"):
        module.benchmak  # noqa: B018 (asking is the point)
    shown = {name for name in vars(module) if not name.startswith("_")}
    assert set(module._switches) <= shown


@pytest.mark.parametrize("name", MODULES)
def test_switches_take_values_of_their_kind_only(name: str) -> None:
    module = backend(name)
    for switch, check in module._switches.items():
        before = getattr(module, switch)
        with pytest.raises((RuntimeError, TypeError), match=r"expects|Unknown precision"):
            setattr(module, switch, object())
        with pytest.raises((RuntimeError, TypeError), match=r"expects|Unknown precision"):
            setattr(module, switch, "x")
        assert getattr(module, switch) == before
        word = {"strategy": "greedy", "engine": "none"}.get(switch, "ieee")
        other: Any = {_switch.is_bool: not before, _switch.is_int: 3}.get(check, word)
        setattr(module, switch, other)
        assert getattr(module, switch) == other
        setattr(module, switch, before)


def test_the_switches_of_products_are_pytorchs() -> None:
    matmul = torch.backends.cuda.matmul
    assert matmul.allow_tf32 is False
    for name in ("foo", "allow_tf31"):
        with pytest.raises(AttributeError, match=f"Unknown attribute {name}"):
            getattr(matmul, name)
        with pytest.raises(AttributeError, match=f"Unknown attribute {name}"):
            setattr(matmul, name, True)
    with pytest.raises(RuntimeError, match="allow_tf32 expects a bool, but got int"):
        matmul.allow_tf32 = 1
    with pytest.raises(TypeError, match="a bool or a tuple/list of bools, but got <class 'str'>"):
        matmul.allow_fp16_reduced_precision_reduction = "x"
    matmul.allow_bf16_reduced_precision_reduction = (True, False)
    assert matmul.allow_bf16_reduced_precision_reduction == (True, False)
    matmul.allow_bf16_reduced_precision_reduction = True


def test_a_context_refuses_values_before_it_changes_any() -> None:
    cudnn = torch.backends.cudnn
    before = (cudnn.enabled, cudnn.benchmark_limit)
    with (
        pytest.raises(RuntimeError, match="benchmark_limit expects an int, but got str"),
        cudnn.flags(enabled=not before[0], benchmark_limit="x"),
    ):
        raise AssertionError("never entered")
    assert (cudnn.enabled, cudnn.benchmark_limit) == before
