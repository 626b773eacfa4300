"""The open transforms of a thread, by the names of `torch._C._functorch`."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from typing import Any

import pytest

import pullback as torch
from pullback import _levels as levels
from pullback._functorch import vmap as parts


def test_open_transforms_are_told_as_interpreters() -> None:
    assert levels.peek_interpreter_stack() is None
    assert levels.get_interpreter_stack() is None
    seen: list[Any] = []

    def look(x: torch.Tensor) -> torch.Tensor:
        stack = levels.get_interpreter_stack()
        assert stack is not None
        seen.extend(stack)
        return x.sum()

    with torch.no_grad():
        torch.vmap(torch.func.grad(look), randomness="same")(torch.ones(3, 2))
    assert [one.key().name for one in seen] == ["Vmap", "Grad"]
    batch = levels.CVmapInterpreterPtr(seen[0])
    assert batch.batchSize() == 3
    assert batch.randomness() is levels.RandomnessType.Same
    assert batch.level() == seen[0].level()
    grad = levels.CGradInterpreterPtr(seen[1])
    assert grad.prevGradMode() is False
    assert grad.level() == 2
    with pytest.raises(RuntimeError, match=r"expected an interpreter of TransformType\.Grad"):
        levels.CGradInterpreterPtr(seen[0])
    with pytest.raises(TypeError, match="No constructor defined"):
        levels.CInterpreter()


def test_numbers_of_kinds_are_pytorchs() -> None:
    kinds = {kind.name: int(kind) for kind in levels.TransformType}
    assert kinds == {"Torch": 0, "Vmap": 1, "Grad": 2, "Jvp": 3, "Functionalize": 4}
    choices = {choice.name: int(choice) for choice in levels.RandomnessType}
    assert choices == {"Error": 0, "Same": 1, "Different": 2}


def test_a_gradient_by_hand() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    level = levels._grad_increment_nesting()
    try:
        assert levels.get_dynamic_layer_stack_depth() == 1
        inside = levels._wrap_for_grad(x, level)
        (slope,) = torch.autograd.grad((inside**3).sum(), inside, create_graph=True)
        slope = levels._unwrap_for_grad(slope, level)
        constant = levels._unwrap_for_grad(levels._wrap_for_grad(torch.ones(1), level) * 2, level)
    finally:
        assert levels._grad_decrement_nesting() == level
    assert slope.tolist() == [3.0, 12.0]
    # The history goes on outside of the transform, where there is one.
    slope.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [6.0, 12.0]
    assert not constant.requires_grad
    with pytest.raises(RuntimeError, match="no transform of reverse mode was opened"):
        levels._wrap_for_grad(x, level)


def test_tangents_by_hand() -> None:
    from pullback.autograd import forward_ad

    level = levels._jvp_increment_nesting()
    try:
        view = levels.CJvpInterpreterPtr(levels.peek_interpreter_stack())
        assert view.prevFwdGradMode() is True
        dual = forward_ad.make_dual(torch.tensor(3.0), torch.tensor(1.0), level=level)
        tangent = forward_ad.unpack_dual(dual * dual, level=level).tangent
    finally:
        levels._jvp_decrement_nesting()
    assert tangent is not None
    assert tangent.item() == 6.0


def test_levels_close_in_their_order() -> None:
    levels._vmap_increment_nesting(2, "error")
    levels._grad_increment_nesting()
    with pytest.raises(RuntimeError, match="the innermost is one of grad"):
        levels._vmap_decrement_nesting()
    levels.pop_dynamic_layer_stack_and_undo_to_depth(0)
    assert levels.get_dynamic_layer_stack_depth() == 0
    with pytest.raises(RuntimeError, match="no level was opened"):
        levels._grad_decrement_nesting()

    def inside(x: torch.Tensor) -> torch.Tensor:
        with pytest.raises(RuntimeError, match="not opened by hand"):
            levels.pop_dynamic_layer_stack_and_undo_to_depth(0)
        return x

    torch.vmap(inside)(torch.ones(2))


def test_dead_wrappers_are_taken_off() -> None:
    x = torch.ones(2, 3)
    level = levels._vmap_increment_nesting(2, "error")
    batched = levels._add_batch_dim(x, 0, level)
    value, dim = levels._unwrap_batched(batched, level)
    assert (list(value.shape), dim) == ([2, 3], 0)
    assert levels._unwrap_batched(x, level) == (x, None)
    assert not levels.is_dead_tensor_wrapper(batched)
    levels._vmap_decrement_nesting()
    assert levels.is_dead_tensor_wrapper(batched)
    assert levels.unwrap_if_dead(batched).shape == (2, 3)
    unwrapped, number = levels.unwrap_dead_wrappers((batched, 3))
    assert (list(unwrapped.shape), number) == ([2, 3], 3)
    assert levels.unwrap_if_dead(x) is x


def test_dimensions_are_merged_and_split() -> None:
    x = torch.arange(24).view(2, 3, 4)
    merged = levels.reshape_dim_into(0, 1, x)
    assert merged.tolist() == x.permute(1, 0, 2).reshape(3, 8).tolist()
    assert levels.reshape_dim_into(-1, -1, x).shape == (2, 12)
    assert levels.reshape_dim_outof(-1, 2, x).shape == (2, 3, 2, 2)
    assert torch.equal(levels.reshape_dim_outof(1, 2, merged).movedim(1, 0), x)
    with pytest.raises(IndexError, match=r"range of \[-3, 2\], but got 5"):
        levels.reshape_dim_into(5, 0, x)
    with pytest.raises(RuntimeError, match="dimension 1 of size 3 has no part of 2"):
        levels.reshape_dim_outof(1, 2, x)


def test_requires_grad_within_a_transform_is_allowed_on_this_thread_alone() -> None:
    assert not levels.get_inplace_requires_grad_allowed()

    def mark(x: torch.Tensor) -> torch.Tensor:
        return x * torch.ones(1).requires_grad_()

    with pytest.raises(RuntimeError, match="requires_grad_"):
        torch.vmap(mark)(torch.ones(2))
    levels.set_inplace_requires_grad_allowed(True)
    try:
        assert torch.vmap(mark)(torch.ones(2)).shape == (2, 1)
        elsewhere: list[bool] = []
        thread = threading.Thread(
            target=lambda: elsewhere.append(levels.get_inplace_requires_grad_allowed())
        )
        thread.start()
        thread.join()
        assert elsewhere == [False]
    finally:
        levels.set_inplace_requires_grad_allowed(False)


class Doubled(torch.autograd.Function):
    """A function of the older form, without `setup_context`."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return grad * 2


def test_functions_of_the_older_form_are_allowed_on_request() -> None:
    function = torch.func.grad(lambda x: Doubled.apply(x).sum())
    with pytest.raises(RuntimeError, match="must override the setup_context"):
        torch.vmap(function)(torch.ones(2))
    assert not levels.get_single_level_autograd_function_allowed()
    levels.set_single_level_autograd_function_allowed(True)
    try:
        assert function(torch.ones(2)).tolist() == [2.0, 2.0]
    finally:
        levels.set_single_level_autograd_function_allowed(False)


def test_functions_of_the_older_form_are_allowed_within_a_context() -> None:
    from pullback._functorch import utils

    function = torch.func.grad(lambda x: Doubled.apply(x).sum())
    with utils.enable_single_level_autograd_function():
        assert function(torch.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="must override the setup_context"):
        function(torch.ones(2))

    @utils.exposed_in("torch.func")
    def shown() -> None:
        pass

    assert shown.__module__ == "torch.func"


def test_the_way_through_examples_can_be_switched_off() -> None:
    x = torch.rand(2, 3)

    def counts(row: torch.Tensor) -> torch.Tensor:
        return torch.histc(row, bins=4, max=1)

    assert levels._is_vmap_fallback_enabled()
    levels._set_vmap_fallback_enabled(False)
    try:
        assert not levels._is_vmap_fallback_enabled()
        with pytest.raises(RuntimeError, match="aten::histc hit the vmap fallback which is curren"):
            torch.vmap(counts)(x)
        assert torch.vmap(torch.sin)(x).equal(x.sin())
        written = x.clone()
        with pytest.raises(RuntimeError, match="which is currently disabled"):
            torch.vmap(lambda row: row.index_fill_(0, torch.tensor([1]), row[0]))(written)
        assert written.equal(x)
    finally:
        levels._set_vmap_fallback_enabled(True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.vmap(counts)(x).equal(torch.stack([counts(row) for row in x]))


def test_warnings_of_the_way_through_examples_can_be_switched_off() -> None:
    program = """
import warnings
import pullback as torch
levels = torch._C._functorch
x = torch.rand(2, 3)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    levels._set_vmap_fallback_warning_enabled(False)
    assert not torch._C._debug_only_are_vmap_fallback_warnings_enabled()
    torch.vmap(torch.histc)(x)
    assert not seen
    levels._set_vmap_fallback_warning_enabled(True)
    assert torch._C._debug_only_are_vmap_fallback_warnings_enabled()
    torch.vmap(torch.histc)(x)
    torch.vmap(torch.histc)(x)
assert len(seen) == 1 and "histc has no batching rule" in str(seen[0].message), seen
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_belongs_to_wrappers_alone_says_what_to_use() -> None:
    for name in ("_func_increment_nesting", "_wrap_functional_tensor", "push_dynamic_layer_stack"):
        with pytest.raises(NotImplementedError, match=rf"torch\._C\._functorch\.{name} is not"):
            getattr(levels, name)(1)
    with pytest.raises(NotImplementedError, match="DynamicLayer is not available"):
        levels.DynamicLayer()
    assert not levels.is_functionaltensor(torch.ones(1))


def test_levels_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    def show(x: torch.Tensor) -> torch.Tensor:
        levels.dump_dls()
        assert levels.dump_tensor(x)
        return x

    levels.dump_dls()
    torch.vmap(show)(torch.ones(2, 3))
    empty, stack, tensor = capsys.readouterr().out.splitlines()
    assert empty == "DynamicLayerStack[ ]"
    assert stack.endswith(":Vmap ]")
    assert tensor.startswith("Batched[lvl=")
    assert tensor.endswith(" dim=0, Tensor[2, 3]]")


# ---- the parts of vmap ----


def test_restored_vmap_gives_values_and_dimensions() -> None:
    x = torch.arange(6.0).view(2, 3)
    function = parts.restore_vmap(lambda a, b: {"a": a * 2, "b": b}, (1, None), 3, "error")
    values, dims = function(x, torch.ones(2))
    assert dims == {"a": 0, "b": None}
    assert torch.equal(values["a"], 2 * x.T)
    assert values["b"].tolist() == [1.0, 1.0]
    assert parts.unwrap_batched((), 1) == ((), ())


def test_vmap_in_its_parts() -> None:
    x, y = torch.arange(6.0).view(2, 3), torch.ones(3, 2)
    size, dims, leaves, spec = parts._process_batched_inputs((0, -1), (x, y), torch.add)
    assert (size, dims) == (2, [0, 1])
    assert leaves[0] is x
    result = parts._flat_vmap(torch.add, size, dims, leaves, spec, 0, "error")
    assert torch.equal(result, x + y.T)
    chunks = parts._get_chunked_inputs(leaves, dims, size, 1)
    result = parts._chunked_vmap(torch.add, dims, chunks, spec, 1, "error")
    assert torch.equal(result, (x + y.T).T)
    assert torch.equal(parts.vmap_impl(torch.add, (0, 1), 0, "error", 1, x, y), x + y.T)
    with parts.vmap_increment_nesting(2, "error") as level:
        inside = parts._create_batched_inputs(dims, leaves, level, spec)
        assert [one.shape for one in inside] == [(3,), (3,)]
        outside = parts._unwrap_batched(inside[0], 0, level, 2, torch.add)
    assert torch.equal(outside, x)
    with pytest.raises(ValueError, match="got sizes"):
        parts._validate_and_get_batch_size([0, 0], [x, y])
    with pytest.raises(RuntimeError, match="Only allowed values for randomness"):
        parts._check_randomness_arg("some")
    with pytest.raises(ValueError, match="must be an int, None or"):
        parts._check_int_or_none("x", torch.add, "x")


def test_chunks_of_what_all_examples_share_are_one() -> None:
    flat, spec = parts._flatten_chunks_output([(torch.ones(2), 3), (torch.zeros(1), 3)])
    assert [len(column) for column in flat] == [2, 2]
    joined, shared = parts._concat_chunked_outputs((0, None), spec, flat)
    assert joined.tolist() == [1.0, 1.0, 0.0]
    assert shared == 3
    assert parts._as_tuple(1, 2, lambda: "") == (1, 1)
    with pytest.raises(ValueError, match="two of three"):
        parts._as_tuple((1, 2), 3, lambda: "two of three")
    assert parts._num_outputs((1, 2)) == 2


def test_hooks_on_saved_tensors_are_refused_within() -> None:
    def hooked() -> None:
        with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
            pass

    hooked()
    with pytest.raises(RuntimeError, match="don't yet support saved tensor hooks"):
        parts.doesnt_support_saved_tensors_hooks(hooked)()
