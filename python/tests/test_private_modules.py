"""Modules of PyTorch without a public name, which programs import all the same."""

from __future__ import annotations

import math
import pickle
import sys
import threading
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

import pytest

import pullback as torch
from pullback import _custom_ops
from pullback._custom_op import impl as custom_op_impl
from pullback._higher_order_ops.cond import cond, cond_op
from pullback.fx.immutable_collections import immutable_dict, immutable_list
from pullback.multiprocessing.reductions import StorageWeakRef
from pullback.utils import _pytree
from pullback.utils._device import set_device
from pullback.utils._traceback import CapturedTraceback, format_traceback_short

Point = namedtuple("Point", ["x", "y"])


def test_specs_of_trees_have_lists_of_keys() -> None:
    trees: list[tuple[Any, Any]] = [
        ({"b": 1, "a": 2}, ["b", "a"]),
        (OrderedDict(a=1), ["a"]),
        (defaultdict(list, a=1), [list, ["a"]]),
    ]
    for tree, context in trees:
        spec = _pytree.tree_structure(tree)
        assert (spec.type, spec.context) == (type(tree), context)
        assert _pytree.treespec_loads(_pytree.treespec_dumps(spec)) == spec
    spec = _pytree.tree_structure([1, (2, 3), Point(4, 5)])
    assert spec.children_specs[2].type is namedtuple
    lines = (
        f"TreeSpec(list, None, [*,\n  TreeSpec(tuple, None, [*,\n    *]),\n  "
        f"TreeSpec(namedtuple, {Point}, [*,\n    *])])"
    )
    assert repr(spec) == lines
    assert set(_pytree.__all__) <= set(dir(_pytree))
    frozen = immutable_dict(a=immutable_list([1, 2]))
    paths = [_pytree.keystr(path) for path, _ in _pytree.tree_leaves_with_path(frozen)]
    assert paths == ["['a'][0]", "['a'][1]"]


def test_named_tuples_are_written_by_their_registered_name() -> None:
    spec = _pytree.tree_structure({"a": Point(1, 2)})
    with pytest.raises(NotImplementedError, match="Please register using `_register_namedtuple`"):
        _pytree.treespec_dumps(spec)
    _pytree._register_namedtuple(Point, serialized_type_name="tests.Point")
    text = _pytree.treespec_dumps(spec)
    assert _pytree.treespec_loads(text) == spec
    with pytest.raises(NotImplementedError, match="couldn't find a registered class"):
        _pytree.treespec_loads(text.replace("tests.Point", "tests.Other"))


def test_cond_is_an_op_and_a_function() -> None:
    assert torch._higher_order_ops.cond is cond
    x = torch.tensor(2.0, requires_grad=True)
    result = cond_op(x > 1, lambda x: x * x, lambda x: -x, (x,))
    result.backward()
    assert (result.item(), x.grad.item()) == (4.0, 4.0)  # type: ignore[union-attr]
    assert cond_op.name() == "cond"
    assert cond_op(False, lambda: 1, lambda: 2) == 2


def test_captured_tracebacks_name_the_frames_of_the_caller() -> None:
    def inner() -> CapturedTraceback:
        return CapturedTraceback.extract()

    captured = inner()
    name = "test_captured_tracebacks_name_the_frames_of_the_caller"
    assert [frame.name for frame in captured.summary()][-2:] == [name, "inner"]
    assert "return CapturedTraceback.extract()" in captured.format()[-1]
    assert CapturedTraceback.format_all([captured, None]) == [captured.format(), None]
    profiler: Any = torch._C._profiler
    found = profiler.symbolize_tracebacks([profiler.gather_traceback(True, True, True)])[0][0]
    assert (found["name"], found["filename"]) == (name, __file__)
    assert found["line"] < sys._getframe().f_lineno
    assert profiler.symbolize_tracebacks([profiler.gather_traceback(False, True, True)]) == [[]]
    captured.cleanup()
    assert captured.format() == []
    with pytest.raises(ValueError, match="math domain") as caught:
        math.sqrt(-1)
    assert format_traceback_short(caught.tb).endswith(f" in {name}")


def test_references_to_storages_do_not_keep_them() -> None:
    x, y = torch.ones(3), torch.ones(3)
    reference = StorageWeakRef(x.untyped_storage())
    assert reference == StorageWeakRef(x[1:].untyped_storage())
    assert reference != StorageWeakRef(y.untyped_storage())
    assert len({reference, StorageWeakRef(x.untyped_storage())}) == 1
    assert not reference.expired()
    del x
    assert reference.expired()
    assert reference != StorageWeakRef(y.untyped_storage())


def test_functions_may_run_on_another_device() -> None:
    @set_device("meta")
    def make() -> torch.Tensor:
        return torch.zeros(2)

    assert make().device.type == "meta"
    assert torch.zeros(2).device.type == "cpu"


def test_threads_have_names() -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux keeps names of threads where these are read")
    found: list[str] = []

    def run() -> None:
        torch.multiprocessing._set_thread_name("of_a_test")
        found.append(torch.multiprocessing._get_thread_name())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == ["of_a_test"]
    assert torch.multiprocessing._get_thread_name() != "of_a_test"


def test_futures_are_not_pickled() -> None:
    with pytest.raises(RuntimeError, match=r"Can not pickle torch.futures.Future"):
        pickle.dumps(torch.futures.Future())


def test_tensors_are_as_they_are_said_to_be() -> None:
    torch._assert_tensor_metadata(torch.ones(2, 3), [2, 3], [3, 1], torch.float32)
    with pytest.raises(RuntimeError, match="Tensor dtype mismatch"):
        torch._assert_tensor_metadata(torch.ones(2), None, None, torch.float64)
    assert torch._is_any_true(torch.tensor([False, True]))
    assert not torch._is_all_true(torch.tensor([False, True]))


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("average", [False, True])
def test_attention_of_one_call_is_that_of_the_module(nested: bool, average: bool) -> None:
    torch.manual_seed(0)
    module = torch.nn.MultiheadAttention(8, 2, batch_first=True).double()
    x, other = torch.randn(2, 5, 8).double(), torch.randn(2, 5, 8).double()
    padding = torch.zeros(2, 5, dtype=torch.bool)
    padding[1, 3:] = True
    expected, weights = module(
        x, other, other, key_padding_mask=padding, average_attn_weights=average
    )
    parts = (module.in_proj_weight, module.in_proj_bias)
    parts += (module.out_proj.weight, module.out_proj.bias)
    if nested:
        lengths = [5, 3]
        rows = [
            torch.nested.nested_tensor([row[:n] for row, n in zip(value, lengths, strict=True)])
            for value in (x, other)
        ]
        found, shown = torch._native_multi_head_attention(
            rows[0], rows[1], rows[1], 8, 2, *parts, average_attn_weights=average
        )
        found = found.to_padded_tensor(0.0)
        expected = torch.where(padding[..., None], 0.0, expected)
        keep = torch.where(padding, 0.0, 1.0).double()
        keep = keep[..., None] if average else keep[:, None, :, None]
        shown, weights = shown * keep, weights * keep
    else:
        found, shown = torch._native_multi_head_attention(
            x, other, other, 8, 2, *parts, padding, True, average, 1
        )
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(shown, weights)
    assert torch._native_multi_head_attention(x, x, x, 8, 2, *parts, need_weights=False)[1] is None
    with pytest.raises(RuntimeError, match="expected 3-D `query`, got 2-D tensor"):
        torch._native_multi_head_attention(x[0], x, x, 8, 2, *parts)
    with pytest.raises(RuntimeError, match="embed_dim must divide evenly by num_heads"):
        torch._native_multi_head_attention(x, x, x, 8, 3, *parts)


def test_projections_are_split_into_heads() -> None:
    qkv, bias = torch.arange(24.0).view(1, 2, 12), torch.ones(12)
    q, k, v = torch._transform_bias_rescale_qkv(qkv, bias, 2)
    assert q.shape == k.shape == v.shape == (1, 2, 2, 2)
    assert k[0, 1].tolist() == [[7, 8], [19, 20]]
    torch.testing.assert_close(q[0, 0], torch.tensor([[1.0, 2], [13, 14]]) / math.sqrt(2))
    with pytest.raises(RuntimeError, match="multiple of num_heads, 3"):
        torch._transform_bias_rescale_qkv(qkv, bias, 3)


def test_ops_of_before_are_in_a_registry() -> None:
    name = "private_modules_test::scale"

    @_custom_ops.custom_op(name)
    def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
        raise NotImplementedError

    op = custom_op_impl.get_op(name)
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Autograd has not been implemented for operator"):
        op(x, 2.0)
    _custom_ops.impl(name, device_types="cpu")(lambda x, factor: x * factor)
    assert op(x.detach(), 2.0).tolist() == [2, 2]
    with pytest.raises(ValueError, match="we only support device_type in"):
        _custom_ops.impl(name, device_types=["cpu", "hip"])
    _custom_ops.impl_backward(name)(lambda ctx, saved, grad: grad)
    with pytest.raises(RuntimeError, match="unable to find a 'save_for_backward'"):
        op(x, 2.0)
    _custom_ops.impl_save_for_backward(name)(lambda inputs, output: inputs.factor)
    wrong = [
        (lambda ctx, saved, grad: grad, "to be a dict"),
        (lambda ctx, saved, grad: {"y": grad}, "to have keys {'x'}"),
        (lambda ctx, saved, grad: {"x": grad, "factor": grad}, "non-Tensor-like types"),
        (lambda ctx, saved, grad: {"x": (grad,)}, "either None or a Tensor"),
        (lambda ctx, saved, grad: {}, "to have keys {'x'}"),
    ]
    for rule, phrase in wrong:
        _custom_ops.impl_backward(name)(rule)
        with pytest.raises(RuntimeError, match=phrase):
            op(x, 2.0).sum().backward()
    _custom_ops.impl_backward(name)(lambda ctx, saved, grad: {"x": grad * saved})
    op(x, 3.0).sum().backward()
    assert x.grad.tolist() == [3, 3]  # type: ignore[union-attr]
    _custom_ops._destroy(name)
    assert name not in custom_op_impl.global_registry
    with pytest.raises(RuntimeError, match="no operator"):
        custom_op_impl.get_op(name)
    for bad, text, phrase in (
        ("aten::f", "(Tensor x) -> Tensor", "is a reserved namespace"),
        ("private_modules_test::f.g", "(Tensor x) -> Tensor", "overload"),
        ("private_modules_test::f", "(Tensor(a!) x) -> Tensor", "only supports functional"),
        ("private_modules_test::f", "(Tensor x) -> ()", "only supports functional"),
        ("private_modules_test::f", "(Tensor self) -> Tensor", "'self'"),
    ):
        with pytest.raises(ValueError, match=phrase):
            _custom_ops.custom_op(bad, text)
    with pytest.raises(ValueError, match="to have name 'f'"):
        _custom_ops.custom_op("private_modules_test::f", scale)
    with pytest.raises(RuntimeError, match="constructor is private"):
        custom_op_impl.CustomOp(None)
