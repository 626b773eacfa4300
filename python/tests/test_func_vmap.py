"""``vmap``: values beside loops, dimensions, random numbers, what it refuses."""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch
from pullback.func import debug_unwrap, vmap

Pair = namedtuple("Pair", ["left", "right"])


def counted(*shape: int) -> Any:
    """Different numbers, in double precision."""
    count = 1
    for size in shape:
        count *= size
    return (torch.arange(count, dtype=torch.float64).sin() * 3).reshape(shape)


def same(found: Any, expected: Any) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert torch.allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_a_batch_is_computed_as_a_loop_does() -> None:
    x, w = counted(4, 3), counted(3, 2)

    def function(row: Any) -> Any:
        assert row.shape == (3,)
        assert row.dim() == 1
        return (row @ w).tanh().sum()

    same(vmap(function)(x), torch.stack([function(row) for row in x]))


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_in_dims_says_which_dimension_counts(dim: int) -> None:
    x = counted(2, 3, 4)
    found = vmap(lambda part: part.cumsum(0) * 2, in_dims=dim)(x)
    same(found, torch.stack([part.cumsum(0) * 2 for part in x.unbind(dim)]))


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_out_dims_says_where_it_goes(dim: int) -> None:
    x = counted(2, 3, 4)
    rows = [part.sin() for part in x]
    same(vmap(torch.sin, out_dims=dim)(x), torch.stack(rows, dim))


def test_inputs_and_outputs_are_trees() -> None:
    x, y = counted(4, 3), counted(3, 4)

    def function(given: Any, factor: float) -> Any:
        return {"sum": given["a"][0] + given["a"][1], "pair": Pair(given["b"], given["b"] * factor)}

    dims = ({"a": (0, 1), "b": None}, None)
    found = vmap(function, in_dims=dims)({"a": (x, y), "b": torch.ones(2)}, 2.0)
    same(found["sum"], x + y.mT)
    assert type(found["pair"]) is Pair
    same(found["pair"].right, torch.full((4, 2), 2.0))
    # An int stands for all leaves below it; None for what is not batched.
    found = vmap(function, in_dims=(0, None), out_dims={"sum": 1, "pair": Pair(0, -1)})(
        {"a": (x, x), "b": x}, 3.0
    )
    same(found["sum"], (2 * x).mT)
    same(found["pair"].right, (3 * x).mT)


def test_a_tuple_with_one_out_dim_is_for_one_tensor() -> None:
    x = counted(2, 3)
    same(vmap(torch.sin, out_dims=(1,))(x), x.sin().mT)


def test_arguments_by_keyword_are_the_same_for_all_examples() -> None:
    x, scale = counted(3, 2), counted(5)
    same(vmap(lambda x, scale: x * scale.sum())(x, scale=scale), x * scale.sum())
    same(vmap(lambda x, scale: x * scale)(x, scale=2.0), x * 2)


def test_what_does_not_depend_on_the_batch_is_repeated() -> None:
    found = vmap(lambda x: torch.arange(2))(counted(3))
    assert found.tolist() == [[0, 1]] * 3
    # With None it stays as it is, and need not be a tensor.
    tensor, number, nothing = vmap(
        lambda x: (torch.arange(2), 5, None), out_dims=(None, None, None)
    )(counted(3))
    assert (tensor.tolist(), number, nothing) == ([0, 1], 5, None)


def test_an_empty_batch_is_a_batch() -> None:
    assert vmap(lambda x: x.sum())(counted(0, 3)).shape == (0,)
    assert vmap(torch.sin, chunk_size=2)(counted(0, 3)).shape == (0, 3)


def test_levels_nest() -> None:
    x, y = counted(2, 3), counted(4, 3)
    found = vmap(lambda a: vmap(lambda b: a.dot(b))(y))(x)
    same(found, x @ y.mT)
    found = vmap(vmap(torch.dot, in_dims=(None, 0)), in_dims=(0, None))(x, y)
    same(found, x @ y.mT)
    same(vmap(vmap(torch.sin, in_dims=1), in_dims=-1, out_dims=1)(counted(2, 3, 4)),
         counted(2, 3, 4).sin().permute(1, 2, 0))  # fmt: skip
    # The inner batch may come from the outer examples only.
    same(vmap(lambda a: vmap(lambda b: b * 2)(a))(x), x * 2)
    same(vmap(lambda a: vmap(lambda b: a)(y))(x), x[:, None].expand(2, 4, 3))


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 5, 100])
def test_chunks_give_what_the_whole_batch_gives(chunk_size: int) -> None:
    x, y = counted(5, 3), counted(3, 5)
    sizes: list[Any] = []

    def function(a: Any, b: Any, power: int) -> Any:
        sizes.append(debug_unwrap(a).shape[0])
        return a * b, {"p": a**power, "n": power}

    run = vmap(
        function, in_dims=(0, 1, None), out_dims=(1, {"p": 0, "n": None}), chunk_size=chunk_size
    )
    product, others = run(x, y, 2)
    same(product, (x * y.mT).mT)
    same(others["p"], x**2)
    assert others["n"] == 2
    assert sum(sizes) == 5
    assert max(sizes) <= chunk_size


def test_the_decorated_function_keeps_its_name() -> None:
    @functools.partial(vmap, in_dims=1)
    def columns(x: Any) -> Any:
        """Sums."""
        return x.sum()

    assert (columns.__name__, columns.__doc__) == ("columns", "Sums.")
    same(columns(torch.ones(2, 3)), torch.full((3,), 2.0))


def test_ops_in_place_write_to_the_whole_batch() -> None:
    x, y = torch.zeros(3, 2), torch.ones(3, 2)
    found = vmap(lambda a, b: a.add_(b).mul_(2))(x, y)
    same(found, torch.full((3, 2), 2.0))
    same(x, found)


def test_the_history_of_inputs_goes_on() -> None:
    x = counted(3, 2).requires_grad_()
    w = counted(2).requires_grad_()
    vmap(lambda row: (row * w).sum() ** 2)(x).sum().backward()
    with torch.no_grad():
        inner = (x * w).sum(1)
        same(x.grad, 2 * inner[:, None] * w)
        same(w.grad, (2 * inner[:, None] * x).sum(0))


def test_debug_unwrap_shows_all_examples() -> None:
    x = counted(2, 3, 4)
    seen = []

    def look(example: Any) -> Any:
        seen.append((debug_unwrap(example), debug_unwrap(example, recurse=False)))
        return example

    vmap(vmap(look, in_dims=1), in_dims=1)(x)
    same(seen[0][0], x.permute(1, 2, 0))
    assert seen[0][1].shape == (4, 2)
    assert debug_unwrap(x) is x
    with pytest.raises(TypeError):
        debug_unwrap(3)  # type: ignore[arg-type]


# Random numbers.


def test_random_numbers_are_refused_unless_one_says_which() -> None:
    for function in (lambda x: x + torch.rand(2), torch.rand_like, torch.nn.functional.dropout):
        with pytest.raises(RuntimeError, match="vmap: called random operation while in randomness"):
            vmap(function)(counted(3, 2))


def test_random_numbers_are_the_same_or_different() -> None:
    def noise(x: Any) -> Any:
        return torch.zeros(4) + torch.rand(4), torch.rand_like(x)

    torch.manual_seed(0)
    free, like = vmap(noise, randomness="same")(torch.ones(3, 4))
    for drawn in (free, like):
        assert torch.equal(drawn[0], drawn[1])
        assert torch.equal(drawn[0], drawn[2])
    free, like = vmap(noise, randomness="different")(torch.ones(3, 4))
    for drawn in (free, like):
        assert not torch.equal(drawn[0], drawn[1])
        assert not torch.equal(drawn[1], drawn[2])


def test_the_same_numbers_are_the_same_in_every_chunk() -> None:
    drawn = vmap(lambda x: x * 0 + torch.rand(()), randomness="same", chunk_size=2)(torch.ones(5))
    assert len(set(drawn.tolist())) == 1
    drawn = vmap(lambda x: x * 0 + torch.rand(()), randomness="different", chunk_size=2)(
        torch.ones(5)
    )
    assert len(set(drawn.tolist())) == 5


# What is refused.


def one(x: Any) -> Any:
    return x.sin()


INPUTS: list[tuple[Any, tuple[Any, ...], str]] = [
    ("a", (torch.ones(2),), r"vmap\(one, in_dims=a, .*expected `in_dims` to be int or a"),
    ([0], (torch.ones(2),), r"expected `in_dims` to be int .* got: <class 'list'>"),
    (None, (torch.ones(2),), r"expected `in_dims` to be int .* got: <class 'NoneType'>"),
    (0, (), r"vmap\(one\)\(<inputs>\): got no inputs"),
    ((0, 0), (torch.ones(2),), "in_dims is not compatible with the structure of `inputs`"),
    (([0],), ((torch.ones(2),),), "in_dims is not compatible with the structure of `inputs`"),
    (("a",), (torch.ones(2),), "Got in_dim=a for an input but in_dim must be either an integer"),
    (0, (2.0,), "Got in_dim=0 for an input but the input is of type <class 'float'>"),
    (1, (torch.ones(2),), "Got in_dim=1 for some input, .* satisfy -1 <= in_dim < 1"),
    (-2, (torch.ones(2),), "Got in_dim=-2 for some input"),
    (0, (torch.ones(()),), "dimensionality 0 so expected in_dim to satisfy -0 <= in_dim < 0"),
    (0, (torch.ones(2), torch.ones(3)), r"same size in the mapped dimension, got sizes \[2, 3\]"),
    ((None,), (torch.ones(2),), "vmap: Expected at least one Tensor to vmap over"),
]


@pytest.mark.parametrize(("in_dims", "args", "message"), INPUTS)
def test_inputs_that_do_not_fit_are_named(in_dims: Any, args: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        vmap(one, in_dims=in_dims)(*args)


OUTPUTS: list[tuple[Any, Callable[[Any], Any], str]] = [
    (0, lambda x: 3, "must only return Tensors, got type <class 'int'>. Did you mean to set out_d"),
    (0, lambda x: (x, None), "must only return Tensors, got type <class 'NoneType'>"),
    (None, one, "`one` can not return a BatchedTensor when out_dim is None"),
    ("a", one, r"vmap\(one, ..., out_dims=a\): `out_dims` must be an int, None or a python coll"),
    ((0, 0), one, "out_dims is not compatible with the structure of `outputs`"),
    ([0, 0], lambda x: (x, x), "out_dims is not compatible with the structure of `outputs`"),
]


@pytest.mark.parametrize(("out_dims", "function", "message"), OUTPUTS)
def test_outputs_that_do_not_fit_are_named(out_dims: Any, function: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        vmap(function, out_dims=out_dims)(torch.ones(3))


def test_functions_without_a_name_are_named_in_errors() -> None:
    with pytest.raises(ValueError, match=r"functools.partial\(<lambda>, ...\)"):
        vmap(functools.partial(lambda x: 3))(torch.ones(2))


@pytest.mark.parametrize("dim", [2, -3])
def test_out_dims_out_of_range_are_index_errors(dim: int) -> None:
    for function in (one, lambda x: torch.ones(2)):
        with pytest.raises(IndexError, match=r"expected to be in range of \[-2, 1\]"):
            vmap(function, out_dims=dim)(torch.ones(3, 2))


def test_settings_are_checked_before_there_are_inputs() -> None:
    with pytest.raises(RuntimeError, match="Only allowed values for randomness are 'error', 'diff"):
        vmap(one, randomness="x")
    with pytest.raises(ValueError, match=r"chunk_size should be None or greater than 0. \(got 0\)"):
        vmap(one, chunk_size=0)


def test_elements_of_a_batch_cannot_be_looked_at() -> None:
    for look in (
        lambda x: x.sum().item(),
        lambda x: x if x.sum() > 0 else -x,
        lambda x: x.tolist(),
    ):
        with pytest.raises(RuntimeError, match="vmap: "):
            vmap(look)(torch.ones(2, 3))


def test_a_batch_does_not_fit_into_a_tensor_that_has_none() -> None:
    with pytest.raises(RuntimeError):
        vmap(lambda a, b: a.add_(b), in_dims=(None, 0))(torch.ones(2), torch.ones(3, 2))


def test_backward_is_refused_within_a_transform() -> None:
    x = torch.ones(3, 2, requires_grad=True)
    message = r"backward\(\) called inside a functorch transform"
    with pytest.raises(RuntimeError, match=message):
        vmap(lambda row: row.sum().backward())(x)
    with pytest.raises(RuntimeError, match=message):
        torch.func.grad(lambda row: torch.autograd.backward(row.sum()))(x)
    x.sum().backward()
    assert x.grad is not None


def test_a_level_is_closed_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        vmap(lambda x: vmap(lambda y: 1 // 0)(x))(torch.ones(2, 2))
    same(vmap(one)(torch.zeros(2)), torch.zeros(2))
    torch.ones((), requires_grad=True).backward()


# The old one.


def test_the_old_vmap_takes_tuples_and_dimensions_from_zero_on() -> None:
    from pullback._vmap_internals import _vmap
    from pullback._vmap_internals import vmap as old

    x = counted(3, 2)
    first, second = _vmap(lambda a: (a.sin(), a.sum()), 1, (1, 0))(x)
    same(first, x.sin())
    same(second, x.sum(0))
    assert _vmap(lambda a: (a, None), allow_none_pass_through=True)(x)[1] is None
    with pytest.warns(FutureWarning, match=r"Please use `torch\.vmap`"):
        same(old(torch.sin)(x), x.sin())
    for call, message in (
        (lambda: _vmap(one, -1)(x), "satisfy 0 <= in_dim < 2"),
        (lambda: _vmap(lambda a: (a, 3))(x), "got type <class 'int'> for return 1"),
        (lambda: _vmap(lambda a: [a])(x), "got type <class 'list'> as the return"),
        (lambda: _vmap(one, 0, (0, 0))(x), r"one dim per output \(got 1 outputs\) of one"),
        (lambda: _vmap(one, 0, None)(x), "`out_dims` must be an int or a tuple of int"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(RuntimeError, match="We do not yet support calling random operations"):
        _vmap(lambda a: a + torch.rand(2))(x)
    with pytest.raises(RuntimeError, match=r"backward\(\) called inside torch.vmap"):
        _vmap(lambda a: torch.ones((), requires_grad=True).backward())(x)


def test_an_example_does_not_see_the_memory_of_the_next() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    same(vmap(lambda row: row.as_strided((2,), (2,)))(x), x[:, ::2])
    with pytest.raises(RuntimeError, match="can access memory outside of `tensor`"):
        vmap(lambda row: row.as_strided((5,), (1,)))(x)
    # Here the examples lie in each other: what one shows is still its own.
    same(vmap(lambda row: row.as_strided((2,), (3,)), in_dims=1)(x.t().contiguous()), x[:, :2])


@pytest.mark.parametrize(
    ("draw", "phrase"),
    [
        (lambda x: torch.bernoulli(x), "does not currently support same randomness"),
        (lambda x: torch.normal(x, 1.0), "does not currently support same randomness"),
    ],
)
def test_what_depends_on_the_example_is_not_drawn_the_same_for_all(draw: Any, phrase: str) -> None:
    with pytest.raises(RuntimeError, match=phrase):
        vmap(draw, randomness="same")(torch.full((3, 2), 0.5))


def test_random_numbers_are_not_written_to_what_all_examples_have() -> None:
    shared = torch.zeros(2)
    with pytest.raises(RuntimeError, match="different inplace randomness on an unbatched tensor"):
        vmap(lambda x: x + shared.normal_(), randomness="different")(torch.ones(3, 2))
    assert shared.tolist() == [0, 0]


def test_the_batch_is_not_padded() -> None:
    pad = torch.constant_pad_nd
    same(vmap(lambda x: pad(x, (1, 0)))(torch.ones(2, 1)), torch.tensor([[0.0, 1.0]] * 2))
    with pytest.raises(RuntimeError, match="Pad length is 4 while the input has 1 dimensions"):
        vmap(lambda x: pad(x, (1, 0, 1, 0)))(torch.ones(2, 1))


@pytest.mark.parametrize("p", [0.25, 0.5])
def test_dropout_of_what_all_examples_share_has_masks_of_its_own(p: float) -> None:
    x = torch.ones(64)
    functions = (
        torch.nn.functional.dropout,
        lambda t, p: torch.nn.functional.alpha_dropout(t, p, training=True),
        lambda t, p: torch.nn.functional.feature_alpha_dropout(t.view(8, 8), p, training=True),
        lambda t, p: torch.nn.functional.dropout1d(t.view(2, 32, 1), p),
    )
    for function in functions:
        found = vmap(lambda _: function(x, p), randomness="different")(torch.ones(3))  # noqa: B023
        assert not found[0].equal(found[1])
        assert not found[1].equal(found[2])
        found = vmap(lambda _: function(x, p), randomness="same")(torch.ones(3))  # noqa: B023
        assert found[0].equal(found[1])


def test_draws_that_examples_share_are_written_to_each() -> None:
    p = torch.tensor([0.0, 1.0, 0.5])
    found = vmap(lambda t: t.clone().bernoulli_(p), randomness="same")(torch.full((4, 3), 7.0))
    assert found.equal(found[:1].expand(4, 3))
    assert found[0, :2].tolist() == [0, 1]
    found = vmap(lambda t: torch.randint_like(t, 3, 9), randomness="same")(torch.zeros(4, 5))
    assert found.equal(found[:1].expand(4, 5))
    with pytest.raises(RuntimeError, match="there exists a Tensor `other` in extra_args that has"):
        vmap(lambda p: torch.zeros(3).bernoulli_(p), randomness="different")(torch.rand(2, 3))


def test_results_are_not_written_into_given_tensors() -> None:
    out = torch.zeros(3)
    with pytest.raises(RuntimeError, match=r"not implemented for aten::abs.out; the fallback path"):
        vmap(lambda x: torch.abs(x, out=out))(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="calling out variants of random"):
        vmap(lambda x: x + torch.randn(3, out=out), randomness="same")(torch.ones(2, 3))


RECURRENT = [
    (torch.nn.LSTM, {}),
    (torch.nn.LSTM, {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    (torch.nn.GRU, {}),
    (torch.nn.RNN, {"bias": False}),
    (torch.nn.RNN, {"nonlinearity": "relu"}),
]


@pytest.mark.parametrize(("kind", "options"), RECURRENT)
def test_recurrent_layers_take_all_examples_at_once(kind: Any, options: Any) -> None:
    from pullback.func import functional_call, grad, stack_module_state

    torch.manual_seed(1)
    models = [kind(3, 4, dtype=torch.float64, **options) for _ in range(2)]
    x = counted(5, 4, 2, 3)

    def output(parameters: Any, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = functional_call(models[0], parameters, (x,))[0]
        return result

    def loss(parameters: Any, x: torch.Tensor) -> torch.Tensor:
        return output(parameters, x).square().sum()

    each = [dict(model.named_parameters()) for model in models]
    stacked, _ = stack_module_state(models)
    levels = torch._C._functorch
    levels._set_vmap_fallback_enabled(False)
    try:
        by_input = vmap(output, (None, 0))(each[0], x)
        by_model = vmap(output, (0, None))(stacked, x[0])
        slopes = vmap(grad(loss), (None, 0))(each[0], x)
        slopes_by_model = vmap(grad(loss), (0, None))(stacked, x[0])
    finally:
        levels._set_vmap_fallback_enabled(True)
    close = functools.partial(torch.testing.assert_close, rtol=1e-9, atol=1e-9)
    close(by_input, torch.stack([output(each[0], row) for row in x]))
    close(by_model, torch.stack([output(own, x[0]) for own in each]))
    for name in each[0]:
        close(slopes[name], torch.stack([grad(loss)(each[0], row)[name] for row in x]))
        close(slopes_by_model[name], torch.stack([grad(loss)(own, x[0])[name] for own in each]))


INDEXED: dict[str, Callable[..., Any]] = {
    "index_add": lambda x, i, s: x.index_add(1, i, s, alpha=2),
    "index_copy": lambda x, i, s: x.index_copy(-1, i, s),
    "index_fill": lambda x, i, s: x.index_fill(1, i - 4, 7.0) + s.sum(),
    "index_reduce": lambda x, i, s: x.index_reduce(1, i, s, "amax"),
    "index_add_": lambda x, i, s: x.clone().index_add_(1, i, s),
    "put": lambda x, i, s: x.put(i - 8, s[0], accumulate=True),
    "put_": lambda x, i, s: x.clone().put_(i, s[0]),
    "masked_scatter": lambda x, i, s: x.masked_scatter(x > 0, (s + i).repeat(4, 1)),
    "isin": lambda x, i, s: torch.isin(i, (s * 2).long()),
    "isin other": lambda x, i, s: torch.isin(2, i, invert=True),
    "searchsorted": lambda x, i, s: torch.searchsorted(x.sort(1)[0], s, right=True),
    "searchsorted of a row": lambda x, i, s: torch.searchsorted(x[0].sort()[0], s),
    "bucketize": lambda x, i, s: torch.bucketize(s, x[0].sort()[0]),
    "multi_margin": lambda x, i, s: torch.nn.functional.multi_margin_loss(
        x, i[:2], weight=s[0].abs().repeat(2)[:4]
    ),
    "nll": lambda x, i, s: torch.nn.functional.nll_loss(
        x, i[:2], s[0].abs().repeat(2)[:4], ignore_index=1
    ),
}


@pytest.mark.parametrize("name", INDEXED)
@pytest.mark.parametrize("dims", [(0, 0, 0), (None, 0, 0), (0, 0, None), (0, None, 0), (0, 1, 2)])
def test_indices_of_each_example_need_no_loop(name: str, dims: Any) -> None:
    function = INDEXED[name]
    # (Four columns, of which an index names three different ones.)
    x, s = counted(3, 2, 4), counted(3, 2, 3) + 0.1
    i = torch.tensor([[0, 2, 3], [3, 1, 0], [1, 0, 2]])
    examples = [
        tuple(t[0 if dim is None else row] for t, dim in zip((x, i, s), dims, strict=True))
        for row in range(3)
    ]
    expected = torch.stack([function(*example) for example in examples])
    batch = [
        t[0] if dim is None else t.movedim(0, dim) for t, dim in zip((x, i, s), dims, strict=True)
    ]
    levels = torch._C._functorch
    if dims[0] is None and name.endswith("_"):
        # (What all examples share has no place for the result of each.)
        with pytest.raises(RuntimeError, match="there exists a Tensor `other` in extra_args that"):
            vmap(function, dims)(*batch)
        return
    levels._set_vmap_fallback_enabled(False)
    try:
        found = vmap(function, dims)(*batch)
    finally:
        levels._set_vmap_fallback_enabled(True)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "phrase"),
    [
        (lambda x, i: x.index_add(0, i, x[: i.numel()]), "out of (range|bounds)"),
        (lambda x, i: x.put(i, x[: i.numel()]), "out of (range|bounds)"),
        (lambda x, i: x.masked_scatter(x > 0, i[:1] * 1.0), "number of|elements"),
    ],
)
def test_indices_out_of_an_example_are_refused(call: Any, phrase: str) -> None:
    with pytest.raises((RuntimeError, IndexError), match=phrase):
        vmap(call)(torch.ones(2, 3), torch.tensor([[0, 1], [2, 3]]).expand(2, 2))
