"""Private names of PyTorch that libraries import or call, and what these do here."""

from __future__ import annotations

import contextlib
import importlib
import subprocess
import sys
from typing import Any

import pytest

import pullback as torch
from pullback import _C, _custom_ops, _ops, _private, _tensor_str, library, onnx
from pullback._prims_common import alert_not_deterministic, is_contiguous_or_false
from pullback.fx import _pytree as fx_pytree
from pullback.nn import functional, init
from pullback.nn.modules.module import _EXTRA_STATE_KEY_SUFFIX
from pullback.nn.utils._named_member_accessor import swap_tensor
from pullback.utils import _pytree
from pullback.utils.data import IterDataPipe, MapDataPipe, functional_datapipe

extension: Any = _C
key: Any = extension.DispatchKey
levels: Any = extension._functorch


def key_set(*names: str) -> Any:
    found = extension.DispatchKeySet()
    for name in names:
        found = found | extension.DispatchKeySet(key.__members__[name])
    return found


# ---- dispatch keys ----


def test_dispatch_keys_have_pytorchs_names_and_numbers() -> None:
    assert (repr(key.CPU), str(key.CPU), int(key.CPU)) == (
        "<DispatchKey.CPU: 49>",
        "DispatchKey.CPU",
        49,
    )
    assert [int(key.__members__[name]) for name in ("Meta", "AutogradCPU", "AutocastCUDA")] == [
        64,
        134,
        32,
    ]
    assert len(key.__members__) == 145
    assert key.CPU == key.CPU
    assert key.CPU != key.CUDA
    assert hash(key.EndOfDenseBackends) == hash(key.Meta)


def test_sets_of_dispatch_keys_are_sets() -> None:
    both = key_set("AutocastCPU", "CPU")
    assert repr(both) == "DispatchKeySet(CPU, AutocastCPU)"
    assert both.has(key.CPU)
    assert not both.has("Meta")
    assert both - key_set("CPU") == key_set("AutocastCPU")
    assert both & key_set("CPU", "Meta") == key_set("CPU")
    assert both.remove(key.CPU).add(key.Meta) == key_set("Meta", "AutocastCPU")
    assert both.highestPriorityTypeId() == key.AutocastCPU
    assert extension.DispatchKeySet().highestPriorityTypeId() == key.Undefined
    with pytest.raises(TypeError, match="DispatchKeySet is expected, got int"):
        both | 3
    with pytest.raises(TypeError, match="dispatch key is expected, got 3"):
        both.has(3)


def test_a_guard_leaves_out_autocast_or_recording() -> None:
    x = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        assert (x @ x).dtype == torch.bfloat16
        with extension._ExcludeDispatchKeyGuard(key_set("AutocastCPU", "AutocastCUDA")):
            assert (x @ x).dtype == torch.float32
        with extension._DisableAutocast():
            assert (x @ x).dtype == torch.float32
    with extension._AutoDispatchBelowAutograd():
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad
    with pytest.raises(NotImplementedError, match="the layer Conjugate cannot be left out"):
        extension._ExcludeDispatchKeyGuard(key_set("Conjugate"))


def test_an_op_of_a_program_has_a_kernel_for_autocast() -> None:
    lib = library.Library("autocast_of_a_test", "DEF")
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: x * 2, "CPU")
    op = torch.ops.autocast_of_a_test.twice

    def cast(x: Any) -> Any:
        with extension._ExcludeDispatchKeyGuard(key_set("AutocastCPU")):
            return op(x.to(torch.float64))

    lib.impl("twice", cast, "AutocastCPU")
    lib.impl("twice", cast, "AutocastCUDA")
    lib.impl("twice", cast, "PrivateUse1")
    assert op(torch.ones(1)).dtype == torch.float32
    with torch.autocast("cpu"):
        assert op(torch.ones(1)).dtype == torch.float64
    with pytest.raises(RuntimeError, match="could not parse dispatch key: Nope"):
        lib.impl("twice", cast, "Nope")


# ---- torch._C ----


def test_levels_of_transforms_are_told() -> None:
    seen = []

    def see(x: Any) -> Any:
        seen.append(
            (
                levels.is_batchedtensor(x),
                levels.maybe_get_level(x) > 0,
                levels.current_level(),
                list(levels.get_unwrapped(x).shape),
                extension._are_functorch_transforms_active(),
            )
        )
        return x

    torch.vmap(see)(torch.ones(3, 2))
    assert seen == [(True, True, 1, [3, 2], True)]
    plain = torch.ones(1)
    assert not levels.is_batchedtensor(plain)
    assert levels.maybe_get_bdim(plain) == -1
    assert levels.maybe_current_level() is None
    assert not extension._are_functorch_transforms_active()
    with pytest.raises(RuntimeError, match="No wrappers present"):
        levels.get_unwrapped(plain)
    with pytest.raises(RuntimeError, match="no function transform is open"):
        levels.current_level()


def test_a_level_is_opened_and_closed_by_hand() -> None:
    x = torch.arange(6.0).view(2, 3)
    level = levels._vmap_increment_nesting(3, "error")
    try:
        doubled = levels._add_batch_dim(x, 1, level) * 2
        assert doubled.shape == (2,)
        result = levels._remove_batch_dim(doubled, level, 3, 1)
    finally:
        levels._vmap_decrement_nesting()
    assert torch.equal(result, 2 * x)
    with pytest.raises(RuntimeError, match="no level was opened"):
        levels._vmap_decrement_nesting()


def test_the_extension_answers_what_libraries_ask() -> None:
    x = torch.arange(4.0)
    assert extension._is_alias_of(x, x[1:])
    assert not extension._is_alias_of(x, x.clone())
    assert extension._has_storage(x)
    assert extension._get_default_device() == "cpu"
    assert extension._get_accelerator() == torch.device("cpu")
    assert extension._jit_set_profiling_executor(False) is False
    assert extension._jit_can_fuse_on_cpu() is False
    with pytest.raises(NotImplementedError, match="TorchScript"):
        extension.Graph()


def test_modules_of_the_extension_are_found_by_import() -> None:
    program = (
        "from torch._C._functorch import is_batchedtensor\n"
        "import torch\n"
        "assert torch.torch.nn is torch.nn\n"
        "assert torch._C._functorch.is_batchedtensor is is_batchedtensor\n"
    )
    command = [sys.executable, "-m", "pullback", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# ---- torch.ops.aten ----


def test_ops_of_python_are_found_beside_the_others() -> None:
    aten: Any = torch.ops.aten
    x = torch.arange(6.0).view(2, 3)
    assert aten.sym_size.int(x, 1) == 3
    assert aten.sym_size.default(x) == [2, 3]
    assert aten.sym_numel(x) == 6
    assert torch.equal(aten.mul.Scalar(x, 2), 2 * x)
    assert torch.equal(aten.sub.Scalar(x, 2, 3), x - 6)
    assert torch.equal(aten.div.Scalar_mode(x, 2, rounding_mode="floor"), x // 2)
    assert aten.to.dtype(x, torch.float64).dtype == torch.float64
    assert aten.to.dtype_layout(x, dtype=torch.int64).dtype == torch.int64
    assert not aten._is_all_true(x > 0)
    assert aten._is_any_true(x > 0)
    assert str(aten.mul.Scalar) == "aten.mul.Scalar"
    assert "Scalar other" in str(aten.mul.Scalar._schema)
    with pytest.raises(RuntimeError, match=r"Expected: \[2\], Got: \[2, 3\]"):
        aten._assert_tensor_metadata(x, size=[2])
    with pytest.raises(RuntimeError, match="too small"):
        aten._assert_scalar(False, "too small")
    with pytest.raises(RuntimeError, match=r"Invalid value range for 3 between \[4, None\]"):
        aten.sym_constrain_range_for_size(3, min=4)
    with pytest.raises(AttributeError, match="has no overload name 'Nope'"):
        aten.mul.Nope  # noqa: B018


def test_attention_as_an_op_is_that_of_the_functions_with_gradients() -> None:
    q = torch.randn(1, 2, 3, 4, requires_grad=True)
    found = torch.ops.aten.scaled_dot_product_attention(q, q, q, is_causal=True)
    expected = functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    assert torch.equal(found, expected)
    assert found.requires_grad


def test_a_higher_order_operator_runs_what_is_registered() -> None:
    class Twice(_ops.HigherOrderOperator):
        def __init__(self) -> None:
            super().__init__("twice")

    twice = Twice()
    with pytest.raises(NotImplementedError, match="twice: no rule is registered"):
        twice(lambda x: x, 1)
    twice.py_impl(key.CompositeExplicitAutograd)(lambda f, x: f(f(x)))
    assert twice(lambda x: x + 1, 1) == 3
    with pytest.raises(RuntimeError, match="Direct instantiation"):
        _ops.HigherOrderOperator("x")


# ---- functions of the main namespace ----


def test_sparse_indices_are_turned_into_each_other() -> None:
    dense = torch.tensor([[0.0, 2, 3], [0, 0, 0], [4, 0, 0]])
    rows, columns = dense.nonzero(as_tuple=True)
    starts = _private._convert_indices_from_coo_to_csr(rows, 3, out_int32=True)
    assert (starts.tolist(), starts.dtype) == ([0, 2, 2, 3], torch.int32)
    both = _private._convert_indices_from_csr_to_coo(starts, columns)
    assert torch.equal(both, torch.stack([rows, columns]))
    turned = _private._convert_indices_from_csr_to_coo(starts, columns, transpose=True)
    assert torch.equal(turned, torch.stack([columns, rows]))
    with pytest.raises(RuntimeError, match="supposed to be a vector"):
        _private._convert_indices_from_coo_to_csr(dense.long(), 3)


def test_private_functions_are_the_public_ones() -> None:
    x = torch.arange(6.0).view(2, 3)
    assert torch._shape_as_tensor(x).tolist() == [2, 3]
    lengths = torch.tensor([1, 1])
    assert torch.equal(
        torch._segment_reduce(x, "sum", lengths=lengths),
        torch.segment_reduce(x, "sum", lengths=lengths),
    )
    with pytest.raises(ValueError, match="all"):
        torch._check_tensor_all_with(ValueError, x > 0, "all")


# ---- texts ----


def test_the_elements_of_a_text_are_taken_alone() -> None:
    x = torch.tensor([[1, 2], [3, 4]], dtype=torch.int32)
    assert _tensor_str._tensor_str(x, 2) == "[[1, 2],\n   [3, 4]]"
    assert _tensor_str._tensor_str(torch.tensor(3.5), 0) == "3.5000"
    assert _tensor_str._str_intern(x, tensor_contents="...") == "tensor(..., dtype=torch.int32)"
    assert _tensor_str._add_suffixes("f(1", ["a=1", "b=2"], 2, True) == "f(1,\n  a=1, b=2)"
    with _tensor_str.printoptions(precision=1):
        assert _tensor_str.PRINT_OPTS.precision == 1
        assert _tensor_str._tensor_str(torch.tensor(3.25), 0) == "3.2"
    assert _tensor_str.PRINT_OPTS.precision == 4


# ---- modules and containers ----


def test_parameters_and_buffers_are_exchanged() -> None:
    module = torch.nn.BatchNorm1d(2)
    former, new = module.running_mean, torch.ones(2)
    assert swap_tensor(module, "running_mean", new) is former
    assert module.running_mean is new
    with pytest.raises(AttributeError, match="has no attribute `nope`"):
        swap_tensor(module, "nope", new)
    with pytest.raises(KeyError, match="contain"):
        swap_tensor(module, "a.b", new)
    assert _EXTRA_STATE_KEY_SUFFIX == "_extra_state"
    filled = init._no_grad_fill_(torch.nn.Parameter(torch.zeros(2)), 3.0)
    assert filled.tolist() == [3.0, 3.0]


def test_masks_become_numbers() -> None:
    mask = torch.tensor([True, False])
    found = functional._canonical_mask(mask, "mask", None, "other", torch.float32)
    assert found is not None
    assert found.tolist() == [float("-inf"), 0.0]
    assert functional._none_or_dtype(mask) == torch.bool
    assert functional._none_or_dtype(None) is None
    with pytest.warns(UserWarning, match="mismatched mask and other"):
        functional._canonical_mask(mask, "mask", torch.float32, "other", torch.float32)


def test_containers_of_a_program_are_taken_apart_as_lists_are() -> None:
    class Items(list):  # type: ignore[type-arg]
        pass

    _pytree.register_pytree_node(
        Items,
        _pytree._list_flatten,
        lambda values, context: Items(_pytree._list_unflatten(values, context)),
        flatten_with_keys_fn=_pytree._list_flatten_with_keys,
    )
    assert _pytree.tree_map(lambda x: x + 1, Items([1, 2])) == Items([2, 3])
    leaves, _ = _pytree.tree_flatten_with_path(Items([1, 2]))
    assert [str(path[0]) for path, _ in leaves] == ["[0]", "[1]"]


def test_leaves_are_found_by_a_structure_that_is_given() -> None:
    _, spec = _pytree.tree_flatten({"a": 1, "b": (2, [3])})
    assert fx_pytree.tree_flatten_spec({"b": (5, [6]), "a": 4}, spec) == [4, 5, 6]
    with pytest.raises(RuntimeError, match="does not have a flatten_fn_spec"):
        fx_pytree.tree_flatten_spec({1}, _pytree.TreeSpec(set, None, []))


# ---- data ----


def test_pipes_are_methods_of_pipes() -> None:
    class Added(IterDataPipe):
        def __init__(self, source: Any, number: int) -> None:
            self.source, self.number = source, number

        def __iter__(self) -> Any:
            return (item + self.number for item in self.source)

    class Source(IterDataPipe):
        def __iter__(self) -> Any:
            return iter([1, 2])

    functional_datapipe("added_of_a_test")(Added)
    pipe: Any = Source()
    assert list(pipe.added_of_a_test(3).added_of_a_test(4)) == [8, 9]
    assert repr(pipe).endswith("Source")
    with pytest.raises(AttributeError, match="has no attribute 'nope"):
        pipe.nope  # noqa: B018
    with pytest.raises(Exception, match="already taken"):
        functional_datapipe("added_of_a_test")(Added)
    with pytest.raises(TypeError, match="can only decorate"):
        functional_datapipe("other")(int)
    assert issubclass(MapDataPipe, torch.utils.data.Dataset)


# ---- what answers ----


@pytest.mark.parametrize(
    ("module", "name", "result"),
    [
        ("_subclasses.fake_tensor", "is_fake", False),
        ("fx.experimental.proxy_tensor", "get_proxy_mode", None),
        ("_guards", "active_fake_mode", None),
        ("_inductor", "list_options", []),
        ("utils._triton", "has_triton", False),
        ("_dynamo.eval_frame", "is_dynamo_supported", False),
    ],
)
def test_questions_about_compilers_are_answered(module: str, name: str, result: Any) -> None:
    function = getattr(importlib.import_module(f"pullback.{module}"), name)
    arguments = [torch.ones(1)] if name == "is_fake" else []
    assert function(*arguments) == result


def test_fake_tensors_can_be_named_and_not_made() -> None:
    from pullback._subclasses.fake_tensor import FakeTensor, FakeTensorMode

    assert not isinstance(torch.ones(1), FakeTensor)
    with pytest.raises(NotImplementedError, match='device="meta"'):
        FakeTensorMode()


def test_exports_of_ops_are_decorated_and_registered() -> None:
    from pullback.onnx.symbolic_helper import parse_args

    function = parse_args("v", "i")(lambda g, x: x)
    assert function(None, 1) == 1
    onnx.register_custom_op_symbolic("mine::op", function, 11)
    assert onnx.TensorProtoDataType.FLOAT == 1
    from pullback.jit.annotations import BroadcastingList2, List

    assert List[int]
    assert BroadcastingList2[int] is None


def test_nondeterminism_is_told_where_it_is_asked_for() -> None:
    alert_not_deterministic("mine")
    torch.use_deterministic_algorithms(True)
    try:
        with pytest.raises(RuntimeError, match="mine does not have a deterministic"):
            alert_not_deterministic("mine")
        torch.use_deterministic_algorithms(True, warn_only=True)
        with pytest.warns(UserWarning, match="mine does not have a deterministic"):
            alert_not_deterministic("mine")
    finally:
        torch.use_deterministic_algorithms(False)
    assert is_contiguous_or_false(torch.ones(2, 2))
    assert not is_contiguous_or_false(torch.ones(2, 3).T)


def test_ops_are_defined_in_the_way_of_before() -> None:
    name = "custom_ops_of_a_test::scaled"

    @_custom_ops.custom_op(name)
    def scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
        raise NotImplementedError

    _custom_ops.impl(name)(lambda x, factor: x * factor)
    _custom_ops.impl_save_for_backward(name)(lambda inputs, output: inputs.factor)
    _custom_ops.impl_backward(name)(lambda ctx, saved, grad: {"x": grad * saved})
    x = torch.ones(2, requires_grad=True)
    torch.ops.custom_ops_of_a_test.scaled(x, 3.0).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="There is no operator"):
        _custom_ops.impl_backward("custom_ops_of_a_test::nope", func=lambda ctx, saved: {})
    with contextlib.suppress(NotImplementedError):
        scaled(x, 1.0)


# ---- functions as libraries call them ----


def test_traces_have_conditions_and_einsums_as_they_are_called_one_by_one() -> None:
    from pullback import fx

    class Model(torch.nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            torch._assert(a.shape[0] == 2, "two rows")
            return torch.einsum("ij,jk->ik", [a, b])

    traced = fx.symbolic_trace(Model())
    calls = [node for node in traced.graph.nodes if node.target is torch.einsum]
    assert [[str(arg) for arg in node.args] for node in calls] == [["ij,jk->ik", "a", "b"]]
    a, b = torch.ones(2, 3), torch.ones(3, 4)
    assert torch.equal(traced(a, b), a @ b)
    with pytest.raises(AssertionError, match="two rows"):
        traced(torch.ones(1, 3), b)
    assert torch.einsum in torch.overrides.get_overridable_functions()[torch]


def test_columns_out_of_order_are_sorted_unless_that_is_to_be_checked() -> None:
    starts, columns = torch.tensor([0, 2, 3]), torch.tensor([3, 0, 1])
    values = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    found = torch.sparse_csr_tensor(starts, columns, values, (2, 4))
    assert found.col_indices().tolist() == [0, 3, 1]
    dense = torch.tensor([[2.0, 0, 0, 1], [0, 3, 0, 0]])
    assert torch.equal(found.to_dense(), dense)
    (found.to_dense() * dense).sum().backward()
    assert values.grad is not None
    assert values.grad.tolist() == [1.0, 2.0, 3.0]
    by_columns = torch.sparse_csc_tensor(starts, columns, values.detach(), (4, 2))
    assert torch.equal(by_columns.to_dense(), dense.T)
    for check in (True, None):
        with (
            torch.sparse.check_sparse_tensor_invariants(check is None),
            pytest.raises(RuntimeError, match="sorted and distinct"),
        ):
            torch.sparse_csr_tensor(starts, columns, values, (2, 4), check_invariants=check)
    with pytest.raises(RuntimeError, match="sorted and distinct"):
        torch.sparse_csr_tensor(starts, torch.tensor([3, 3, 1]), values, (2, 4))


def test_the_strategies_of_opt_einsum_are_taken() -> None:
    from pullback.backends import opt_einsum

    before = opt_einsum.strategy
    try:
        opt_einsum.strategy = "auto-hq"
        assert opt_einsum.strategy == "auto-hq"
    finally:
        opt_einsum.strategy = before


def test_modules_are_of_the_kinds_that_libraries_ask_for() -> None:
    from pullback.nn.modules import activation, module, padding, pooling, utils

    for name in ("Reflection", "Replication"):
        base = getattr(padding, f"_{name}PadNd")
        for dims in (1, 2, 3):
            pad = getattr(torch.nn, f"{name}Pad{dims}d")(1)
            assert isinstance(pad, base)
            assert pad(torch.ones(1, 1, *[3] * dims)).shape == (1, 1, *[5] * dims)
            assert repr(pad) == f"{name}Pad{dims}d({(1,) * (2 * dims)})"
    for dims in (1, 2, 3):
        pool = getattr(torch.nn, f"AvgPool{dims}d")(2)
        assert isinstance(pool, pooling._AvgPoolNd)
        assert "kernel_size=" in repr(pool)
        assert isinstance(getattr(torch.nn, f"LPPool{dims}d")(2, 2), pooling._LPPoolNd)
    attention = torch.nn.MultiheadAttention(2, 1)
    assert isinstance(attention.out_proj, activation.NonDynamicallyQuantizableLinear)
    assert module._addindent("a\nb\n\nc", 2) == "a\n  b\n  \n  c"
    assert utils._list_with_default([None, 3], [7, 8, 9]) == [8, 3]
    with pytest.raises(ValueError, match="at least 3"):
        utils._list_with_default([None, 3], [8, 9])


def test_projections_of_attention_are_linear_maps() -> None:
    q, k, v = torch.randn(3, 5, 4, dtype=torch.float64)
    weight, bias = torch.randn(12, 4, dtype=torch.float64), torch.randn(12, dtype=torch.float64)
    expected = [
        x @ w.T + b for x, w, b in zip((q, k, v), weight.chunk(3), bias.chunk(3), strict=True)
    ]
    packed = functional._in_projection_packed(q, k, v, weight, bias)
    apart = functional._in_projection(q, k, v, *weight.chunk(3), *bias.chunk(3))
    for found in (packed, apart):
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other)


def test_optimisers_of_libraries_find_what_they_are_made_of() -> None:
    from pullback.optim import lr_scheduler, optimizer

    assert optimizer._get_value(torch.tensor(2.0)) == 2.0
    assert optimizer._to_scalar(torch.ones(1)).dim() == 0
    assert optimizer._dispatch_sqrt(4.0) == 2.0
    assert optimizer._dispatch_sqrt(torch.tensor(4.0)).item() == 2.0
    assert optimizer._get_scalar_dtype() == torch.float32
    params, grads = [torch.ones(2, dtype=torch.complex64)], [torch.zeros(2, dtype=torch.complex64)]
    optimizer._view_as_real(params, grads)
    assert (params[0].shape, grads[0].dtype) == ((2, 2), torch.float32)
    assert lr_scheduler.Optimizer is torch.optim.Optimizer

    class Half(torch.optim.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {"differentiable": False})

        @optimizer._use_grad_for_differentiable
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for param in group["params"]:
                    param.mul_(0.5)

    weight = torch.nn.Parameter(torch.ones(1))
    Half([weight]).step()
    assert weight.item() == 0.5


def test_names_of_scripts_are_those_of_python() -> None:
    from pullback import jit

    assert jit._wait(jit._fork(lambda: 3)) == 3
    assert jit._unwrap_optional(3) == 3
    with pytest.raises(AssertionError, match="Unwrapping null optional"):
        jit._unwrap_optional(None)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("onnx.utils", "_export"),
        ("onnx.utils", "export"),
        ("onnx.utils", "_model_to_graph"),
        ("onnx.symbolic_helper", "_get_const"),
        ("onnx.symbolic_helper", "_is_none"),
        ("onnx.symbolic_helper", "quantized_args"),
    ],
)
def test_parts_of_the_exporter_are_imported_and_say_that_there_is_none(
    module: str, name: str
) -> None:
    function = getattr(importlib.import_module(f"pullback.{module}"), name)
    with pytest.raises(NotImplementedError, match=rf"torch\.{module}\.{name} is not available: no"):
        function(1)
    with pytest.raises(AttributeError):
        _ = importlib.import_module(f"pullback.{module}")._no_such_name


def test_registering_for_the_exporter_is_one_function() -> None:
    from pullback.onnx import utils

    assert utils.register_custom_op_symbolic is torch.onnx.register_custom_op_symbolic
    assert utils.is_in_onnx_export() is False
