"""`functorch` and `torch._functorch`: the transforms under their old names."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import pullback as torch
from pullback import functorch, nn
from pullback._functorch import apis, batch_norm_replacement, eager_transforms, make_functional
from pullback._functorch.vmap import get_chunk_sizes


class Tied(nn.Module):
    """Two layers that share their weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)
        self.second.weight = self.first.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.tanh(self.first(x)))


def test_a_module_as_a_function_of_its_parameters() -> None:
    layer, x = nn.Linear(3, 2), torch.randn(4, 3)
    function, parameters = make_functional.make_functional(layer)
    assert parameters[0] is layer.weight
    assert function.param_names == ("weight", "bias")
    assert torch.equal(function(parameters, x), layer(x))
    zeros = tuple(torch.zeros_like(parameter) for parameter in parameters)
    assert torch.equal(function(zeros, x), torch.zeros(4, 2))
    gradients = torch.func.grad(lambda p: function(p, x).sum())(parameters)
    assert torch.allclose(gradients[0], x.sum(0).expand(2, 3))
    assert torch.equal(gradients[1], torch.full((2,), 4.0))


def test_tied_parameters_are_given_once() -> None:
    module, x = Tied(), torch.randn(2, 3)
    function, parameters = make_functional.make_functional(module)
    assert len(parameters) == 3
    assert function.names_map["first.weight"] == ["first.weight", "second.weight"]
    given = tuple(torch.randn_like(parameter) for parameter in parameters)
    weight, first, second = given
    expected = torch.tanh(x @ weight.T + first) @ weight.T + second
    assert torch.allclose(function(given, x), expected)


def test_buffers_are_arguments_of_their_own() -> None:
    module = nn.BatchNorm1d(2).eval()
    function, parameters, buffers = make_functional.make_functional_with_buffers(module)
    assert function.buffer_names == ("running_mean", "running_var", "num_batches_tracked")
    shifted = (torch.ones(2), torch.ones(2), buffers[2])
    x = torch.randn(3, 2)
    expected = (x - 1) / (1 + module.eps) ** 0.5
    assert torch.allclose(function(parameters, shifted, x), expected, atol=1e-6)
    with pytest.raises(RuntimeError, match="has buffers"):
        make_functional.make_functional(module)


def test_parameters_can_stop_to_require_grad() -> None:
    layer = nn.Linear(2, 2)
    _, parameters = make_functional.make_functional(layer, disable_autograd_tracking=True)
    assert not any(parameter.requires_grad for parameter in parameters)


def test_another_number_of_parameters_is_an_error() -> None:
    function, parameters = make_functional.make_functional(nn.Linear(2, 2))
    with pytest.raises(RuntimeError, match=r"takes 2 tensors \(weight, bias\), got 1"):
        function(parameters[:1], torch.ones(2))


def test_an_ensemble_is_one_function() -> None:
    models = [nn.Linear(3, 2) for _ in range(4)]
    function, parameters, buffers = make_functional.combine_state_for_ensemble(models)
    x = torch.randn(5, 3)
    outputs = torch.vmap(function, in_dims=(0, 0, None))(parameters, buffers, x)
    assert torch.allclose(outputs, torch.stack([model(x) for model in models]), atol=1e-6)
    assert all(p.requires_grad and p.is_leaf for p in parameters)


@pytest.mark.parametrize(
    ("models", "phrase"),
    [
        ([], "at least one model, got 0"),
        ([nn.Linear(1, 1), nn.Linear(1, 1).eval()], "same training/eval mode"),
        (
            [nn.Linear(1, 1), nn.Bilinear(1, 1, 1) if hasattr(nn, "Bilinear") else nn.ReLU()],
            "same class",
        ),
    ],
)
def test_what_is_no_ensemble(models: list[Any], phrase: str) -> None:
    with pytest.raises(RuntimeError, match=phrase):
        make_functional.combine_state_for_ensemble(models)


def test_modules_are_made_in_parts() -> None:
    weights, function, names = make_functional.functional_init(nn.Linear)(3, 2)
    x = torch.randn(5, 3)
    assert names == ("weight", "bias")
    assert torch.allclose(function(weights, (x,)), x @ weights[0].T + weights[1])
    stacked, function, _ = make_functional.functional_init(nn.Linear, (4,))(3, 2)
    assert stacked[0].shape == (4, 2, 3)
    assert all(one.requires_grad and one.is_leaf for one in stacked)
    outputs = torch.vmap(function, in_dims=(0, None))(stacked, (x,))
    expected = torch.stack([x @ w.T + b for w, b in zip(*stacked, strict=True)])
    assert torch.allclose(outputs, expected, atol=1e-6)


def test_modules_with_buffers_are_made_in_parts() -> None:
    make = make_functional.functional_init_with_buffers(nn.BatchNorm1d, [3])
    weights, buffers, function, names, of_buffers = make(2, affine=True)
    assert names == ("weight", "bias")
    assert of_buffers == ("running_mean", "running_var", "num_batches_tracked")
    x = torch.randn(3, 5, 2)
    assert torch.vmap(function)(weights, buffers, (x,)).shape == (3, 5, 2)


@pytest.mark.parametrize(("shape", "phrase"), [((0,), "num_models 0"), ((2, 2), "has one number")])
def test_an_ensemble_has_one_positive_number(shape: Any, phrase: str) -> None:
    for make in (make_functional.functional_init, make_functional.functional_init_with_buffers):
        with pytest.raises(ValueError, match=phrase):
            make(nn.Linear, shape)


def test_names_of_functorch_warn_and_work() -> None:
    with pytest.warns(FutureWarning, match=r"functorch.grad.*torch.func.grad"):
        gradient = functorch.grad(torch.sin)
    assert gradient(torch.tensor(0.0)).item() == 1
    with pytest.warns(FutureWarning, match=r"torch.func.functional_call"):
        functorch.make_functional(nn.Linear(1, 1))
    for name in functorch.__all__:
        assert hasattr(functorch, name)


def test_names_of_the_inner_modules_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert apis.vmap(torch.sin)(torch.zeros(2)).tolist() == [0, 0]
        assert eager_transforms.grad(torch.sin)(torch.tensor(0.0)).item() == 1
        assert functorch.experimental.chunk_vmap is apis.chunk_vmap


@pytest.mark.parametrize("chunks", [1, 2, 3, 7, 12])
def test_vmap_in_chunks_gives_the_same(chunks: int) -> None:
    seen = []

    def square(x: torch.Tensor) -> torch.Tensor:
        seen.append(torch.func.debug_unwrap(x).shape[0])
        return x * x

    x = torch.arange(7.0)
    assert torch.equal(apis.chunk_vmap(square, chunks=chunks)(x), x * x)
    assert sum(seen) == 7
    assert max(seen) == -(-7 // chunks)


def test_vmap_in_no_chunks_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"chunks should be greater than 0. \(got 0\)"):
        apis.chunk_vmap(torch.sin, chunks=0)


def test_sizes_of_chunks() -> None:
    assert get_chunk_sizes(7, 3) == [3, 3, 1]
    assert get_chunk_sizes(6, 3) == [3, 3]


def test_batch_norm_without_statistics() -> None:
    module = nn.BatchNorm1d(2)
    batch_norm_replacement.batch_norm_without_running_stats(module)
    assert module.running_mean is None
    assert not module.track_running_stats
    assert torch.vmap(module)(torch.randn(3, 4, 2)).shape == (3, 4, 2)


REARRANGED = [
    ("a b c -> c (a b)", {}, (4, 6)),
    ("a (b1 b2) c -> (b2 a) b1 c", {"b1": 3}, (2, 3, 4)),
    ("... c -> c ...", {}, (4, 2, 3)),
    ("a b c -> a b 1 c", {}, (2, 3, 1, 4)),
    ("a b c -> a () b c", {}, (2, 1, 3, 4)),
    ("a b c -> (a b c)", {}, (24,)),
    ("a b (c1 c2) -> c2 b (a c1)", {"c2": 2}, (2, 3, 4)),
]


@pytest.mark.parametrize(("pattern", "sizes", "shape"), REARRANGED)
def test_rearranged_dimensions(pattern: str, sizes: dict[str, int], shape: tuple[int, ...]) -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    y = torch.func.rearrange(x, pattern, **sizes)
    assert y.shape == shape
    left, right = pattern.split("->")
    back = torch.func.rearrange(y, f"{right} -> {left}", **_all_sizes(left, right, sizes))
    assert torch.equal(back, x)


def _all_sizes(left: str, right: str, sizes: dict[str, int]) -> dict[str, int]:
    """Sizes of the names that the way back has to be told."""
    names = {"a": 2, "b": 3, "c": 4, "b1": 3, "b2": 1, "c1": 2, "c2": 2}
    inside = right.replace("(", " ( ").replace(")", " ) ").split()
    depth, found = 0, {}
    for token in inside:
        depth += (token == "(") - (token == ")")
        if depth and token in names:
            found[token] = names[token]
    return found


def test_elements_go_where_the_pattern_says() -> None:
    x = torch.arange(24).reshape(2, 3, 4)
    y = torch.func.rearrange(x, "a b (c1 c2) -> (c1 a) (b c2)", c1=2)
    for a in range(2):
        for b in range(3):
            for c in range(4):
                c1, c2 = divmod(c, 2)
                assert y[c1 * 2 + a, b * 2 + c2] == x[a, b, c]
    assert torch.equal(torch.func.rearrange(x, "a ... -> (a ...)"), x.flatten())
    assert torch.func.rearrange([x, x + 1], "n a b c -> a b c n")[..., 1].equal(x + 1)


def test_rearranged_tensors_have_gradients_and_batches() -> None:
    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: torch.func.rearrange(t, "a b c -> (c a) b"), (x,))
    one = torch.vmap(lambda t: torch.func.rearrange(t, "b c -> (c b)"))(x)
    assert torch.equal(one, x.transpose(1, 2).reshape(2, 12))


@pytest.mark.parametrize(
    ("pattern", "sizes", "phrase"),
    [
        ("a b c -> a c", {}, "only on one side"),
        ("a b -> b a", {}, r"Number of dimensions in pattern \(2\)"),
        ("a a c -> c a", {}, "duplicate dimension 'a'"),
        ("a (b c) d -> a b c d", {}, "cannot infer the sizes"),
        ("a (b c) d -> a b c d", {"b": 2}, "does not evenly fit"),
        ("a (b c) d -> a b c d", {"b": 2, "c": 2}, "has 3 elements, not 4"),
        ("a b c -> a b c", {"z": 2}, "not found in rearrange expression"),
        ("a b c", {}, "single '->' separator"),
        ("(a b c -> a", {}, "not balanced"),
        ("a b c) -> a b c", {}, "not balanced"),
        ("a b c -> ... a b c", {}, "Ellipsis found in right side"),
        ("(a ...) c -> a ... c", {"a": 2}, "Ellipsis is parenthesis"),
        ("a b c -> (a (b c))", {}, "one-level"),
        ("a b c -> a 2 c b", {}, "unnamed axes of size 1"),
        ("a b c -> a _ b c", {}, "Invalid axis identifier"),
        ("a b.c -> a", {}, "dots only inside ellipsis"),
        ("a 1 c -> a c", {}, "has 3 elements, not 1"),
    ],
)
def test_patterns_that_do_not_fit(pattern: str, sizes: dict[str, int], phrase: str) -> None:
    with pytest.raises(ValueError, match=phrase):
        torch.func.rearrange(torch.zeros(2, 3, 4), pattern, **sizes)


def test_arguments_are_chosen_by_number() -> None:
    from pullback._functorch.eager_transforms import _slice_argnums

    assert _slice_argnums(("a", "b", "c"), -1) == ("c",)
    assert _slice_argnums(("a", "b", "c"), 0, as_tuple=False) == "a"
    assert _slice_argnums(("a", "b", "c"), (2, 0)) == ("c", "a")
    with pytest.raises(RuntimeError, match="must be unique"):
        _slice_argnums(("a", "b"), (0, -2))


def test_a_context_with_other_saved_tensors_passes_all_else_on() -> None:
    from pullback._functorch.autograd_function import CtxWithSavedTensors

    seen: list[Any] = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            outer = CtxWithSavedTensors(CtxWithSavedTensors(ctx, (1,)), (2, 3))
            outer.note = "kept"
            seen.extend([outer.saved_tensors, outer.needs_input_grad, ctx.note])
            ctx._pt_inner_ctx = 1
            with pytest.raises(RuntimeError, match="name collision"):
                CtxWithSavedTensors(ctx, ())
            return grad * 2

    x = torch.ones(2, requires_grad=True)
    Double.apply(x).sum().backward()
    assert seen == [(2, 3), (True,), "kept"]


def test_a_gradient_is_summed_to_the_examples_of_its_input() -> None:
    from pullback._functorch.autograd_function import reductify_leaf

    grad = torch.arange(24.0).reshape(2, 3, 4)
    assert reductify_leaf(None, None, 0, 2) is None
    assert torch.equal(reductify_leaf(grad, 0, None, 2), grad.sum(0))
    assert torch.equal(reductify_leaf(grad, 0, 1, 2), grad.movedim(0, 1))
    assert torch.equal(reductify_leaf(grad[0], None, 1, 2), grad[0][:, None].expand(3, 2, 4))
    assert torch.equal(reductify_leaf(grad, 0, 1, 2, (4,)), grad.sum(1).T)
    assert torch.equal(reductify_leaf(grad, 0, 0, 2, (1, 4)), grad.sum(1, keepdim=True))


def test_a_guard_says_what_it_leaves_out() -> None:
    excluded = torch._C._dispatch_tls_local_exclude_set
    key = torch._C.DispatchKey.Autograd
    with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
        assert excluded().has(key)
        assert torch.func.grad(torch.sin)(torch.tensor(0.0)).item() == 1.0
    assert not excluded().has(key)


def test_outside_of_vmap_its_key_may_be_left_out() -> None:
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.FuncTorchBatched)
    x = torch.arange(3.0)
    with torch._C._ExcludeDispatchKeyGuard(keys):
        assert torch.equal(torch.vmap(lambda a: a.sum(0) * 2)(x), x * 2)
    with pytest.raises(NotImplementedError, match="FuncTorchBatched cannot be left out"):
        torch.vmap(lambda a: torch._C._ExcludeDispatchKeyGuard(keys))(x)


def test_levels_of_tensors_are_those_of_open_transforms() -> None:
    level = torch._C._functorch.dlevel
    kept: list[torch.Tensor] = []

    def f(x: torch.Tensor) -> torch.Tensor:
        assert level(x) == torch._C._functorch.maybe_get_level(x)
        kept.append(x)
        return x

    torch.vmap(f)(torch.ones(2))
    assert (level(kept[0]), level(torch.ones(2))) == (-1, 0)


def test_custom_functions_under_transforms_take_no_arguments_by_keyword_alone() -> None:
    class Add(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, *, y: Any) -> Any:
            return x + y

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        torch.vmap(Add.apply)(torch.ones(3), y=torch.ones(3))
