"""Each rule of nested tensors of the strided layout gives what a loop over the components gives."""

from __future__ import annotations

from typing import Any

import cases
import pytest
from test_jagged_rules import CASES as JAGGED
from test_jagged_rules import (
    IN_PLACE_ARGUMENTS,
    RANDOM,
    check_gradients,
    components,
    expected_of,
    in_place,
    tensors_of,
)

import pullback as torch
from pullback.nested import _pointwise, _strided_rules

F = torch.nn.functional
Case, same, W, ROWS = cases.Case, cases.same, cases.W, cases.ROWS

POINTWISE = {*_pointwise.UNARY, *_pointwise.BROADCAST} - cases.APART
# Plain operands of one or more dimensions are refused, as in PyTorch: tested below.
OTHERS = [
    same("transpose", call=lambda x: x.transpose(-1, -2)),
    same("swapaxes", call=lambda x: x.swapaxes(-1, -2)),
    same("swapdims", call=lambda x: x.swapdims(-1, -2)),
    same("softmax", call=lambda x: x.softmax(-1)),
    same("softmax", call=lambda x: F.softmax(x, -1)),
    Case(("log_softmax",), lambda x: x.log_softmax(1), lambda x: x.log_softmax(0)),
    Case(("sum",), lambda x: x.sum(), lambda x: x.sum(), "total"),
    Case(("mean",), lambda x: x.mean(), lambda x: x.mean(), "total"),
    same("sum", call=lambda x: x.sum(-1, keepdim=True)),
    same("mean", call=lambda x: x.mean(-1, keepdim=True)),
    same("matmul", call=lambda x: x @ x.transpose(-1, -2)),
    same("matmul", call=lambda x: torch.matmul(x.transpose(-1, -2), x)),
    same("__matmul__", call=lambda x: x.__matmul__(x.transpose(-1, -2))),
    Case(("bmm",), lambda x: x.bmm(x.transpose(1, 2)), lambda x: x @ x.T),
    same("linear", call=lambda x: F.linear(x, W.T, W[0])),
    same("embedding", call=lambda x: F.embedding(cases.index_of(x), cases.TABLE)),
    same("contiguous", call=lambda x: x.transpose(-1, -2).contiguous()),
    same("layer_norm", call=lambda x: F.layer_norm(x, (5,), ROWS[0], ROWS[1])),
    same("rms_norm", call=lambda x: F.rms_norm(x, (5,), ROWS[0])),
    Case(("select",), lambda x: x.select(1, 0), lambda x: x.select(0, 0)),
    Case(("select",), lambda x: x.select(-1, 3), lambda x: x.select(-1, 3)),
    same("chunk", call=lambda x: x.chunk(5, -1)[1]),
    same("matmul", call=lambda x: x @ W),
    Case(("narrow",), lambda x: x.narrow(0, 0, 3), lambda x: x),
    same("cat", "concat", "concatenate", call=lambda x: torch.cat([x, x * 2], -1)),
    same("split", call=lambda x: x.split(2, -1)[1]),
    same("split_with_sizes", call=lambda x: x.split_with_sizes([1, 4], -1)[1]),
    Case(("view",), lambda x: x.view(3, -1, 1, 5), lambda x: x.view(-1, 1, 5)),
    Case(("reshape",), lambda x: x.reshape(3, 5, -1), lambda x: x.reshape(5, -1)),
    same("squeeze", call=lambda x: x.unsqueeze(-1).squeeze(-1)),
    Case(("unsqueeze",), lambda x: x.unsqueeze(1), lambda x: x.unsqueeze(0)),
    *(
        Case(
            ("scaled_dot_product_attention",),
            lambda x, causal=causal: F.scaled_dot_product_attention(
                x.unsqueeze(1), x.unsqueeze(1) * 2, x.unsqueeze(1).cos(), is_causal=causal
            ),
            lambda x, causal=causal: F.scaled_dot_product_attention(
                x.unsqueeze(0), x.unsqueeze(0) * 2, x.unsqueeze(0).cos(), is_causal=causal
            ),
        )
        for causal in (False, True)
    ),
]
PLAIN = [case for case in JAGGED if set(case.names) & POINTWISE and case.result == "nested"]
CASES = [*PLAIN, *OTHERS]
IDS = [f"{at}-{case.names[0]}" for at, case in enumerate(CASES)]


def nested_of(parts: list[Any]) -> Any:
    return torch.nested.as_nested_tensor(parts, layout=torch.strided)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_rule_gives_what_a_loop_gives(case: cases.Case) -> None:
    prepare = case.prepare or (lambda x: x)
    parts, twins = components(), components()
    if case.names == ("add",) and case in cases.OTHERS:
        with pytest.raises(RuntimeError, match="Expected both self and other to be nested"):
            case.nested(nested_of(parts))
        return
    results = tensors_of(case.nested(prepare(nested_of(parts))), case.result, len(parts))
    expected = expected_of(
        Case(case.names, case.nested, lambda x: case.single(x), case.result),
        [prepare(one) for one in twins],
    )
    assert len(results) == len(expected)
    for one, other in zip(results, expected, strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, equal_nan=True)
    if expected[0].requires_grad:
        check_gradients(parts, twins, results, expected)


APART = {
    *cases.APART,
    *_pointwise.IN_PLACE,
    *("unbind", "__getitem__", "to_padded_tensor"),
    "is_same_size",
    "threshold_backward",
}


def test_every_rule_has_a_case() -> None:
    covered = {name for case in CASES for name in case.names}
    assert set(_strided_rules.TABLE) - covered - APART == set()


@pytest.mark.parametrize("name", ["empty_like", "rand_like", "randn_like", "bernoulli"])
def test_new_elements_keep_the_sizes(name: str) -> None:
    parts = components(False)
    made = getattr(torch, name)(nested_of(parts).sigmoid())
    assert [one.size() for one in made.unbind()] == [one.size() for one in parts]


@pytest.mark.parametrize("name", sorted(_pointwise.IN_PLACE - RANDOM))
def test_in_place(name: str) -> None:
    parts = [one.abs() for one in components(False)]
    nested = torch.nested.nested_tensor(parts)
    arguments = IN_PLACE_ARGUMENTS.get(name, ())
    extra = {"copy_": lambda x: (x * 3,), "masked_fill_": lambda x: (x > 0.5, 7.0)}
    given = extra.get(name, lambda x: arguments)
    expected = [in_place(name)(one.clone(), *given(one)) for one in parts]
    assert in_place(name)(nested, *given(nested)) is nested
    torch.testing.assert_close(list(nested.unbind()), expected)


@pytest.mark.parametrize("name", sorted(RANDOM))
def test_in_place_draws(name: str) -> None:
    nested = nested_of(components(False))
    before = nested.values().clone()
    assert getattr(nested, name)() is nested
    assert not torch.equal(before, nested.values())


def test_components_by_index() -> None:
    parts = components()
    nested = nested_of(parts)
    assert torch.equal(nested[1], parts[1])
    assert torch.equal(nested[-1, 0], parts[-1][0])
    torch.testing.assert_close(list(nested.unbind()), parts)
    (grad,) = torch.autograd.grad(nested[1].sum(), parts[1])
    assert torch.equal(grad, torch.ones_like(grad))
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 3"):
        nested[3]


def test_padding() -> None:
    parts = components()
    parts[1] = parts[1].detach()[:, :3].clone().requires_grad_()
    padded = nested_of(parts).to_padded_tensor(-1.0)
    assert padded.shape == (3, 4, 5)
    assert torch.equal(padded[1, :, :3], parts[1])
    assert (padded[1, :, 3:] == -1).all()
    (grad,) = torch.autograd.grad((padded * padded).sum(), parts[1])
    torch.testing.assert_close(grad, 2 * parts[1].detach())
    assert nested_of(parts).to_padded_tensor(0.0, (4, 6, 7)).shape == (4, 6, 7)
    with pytest.raises(RuntimeError, match="Truncation is not supported"):
        nested_of(parts).to_padded_tensor(0.0, (3, 3, 5))


REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda x: x.shape, RuntimeError, "NestedTensorImpl doesn't support sizes"),
    (lambda x: x.stride(), RuntimeError, "NestedTensorImpl doesn't support strides"),
    (lambda x: x.size(1), RuntimeError, "Given dimension 1 is irregular"),
    (lambda x: x.size(3), IndexError, "Dimension out of range"),
    (lambda x: x.transpose(0, 1), RuntimeError, "dimension 0 cannot be transposed"),
    (lambda x: x.softmax(0), RuntimeError, "Cannot apply softmax across nested dimension 0"),
    (lambda x: x.sum(1, keepdim=True), RuntimeError, "only be reduced across the last dimension"),
    (lambda x: x.sum(-1), RuntimeError, "always requires keepdim=True"),
    (lambda x: x @ W[0], RuntimeError, "got a nested self and non-nested other"),
    (lambda x: W @ x, RuntimeError, "got a non-nested self and nested other"),
    (lambda x: x @ x, RuntimeError, "0 have the sizes .2, 5. and .2, 5."),
    (lambda x: x.select(2, 0) @ x, RuntimeError, "1st input has rank: 2"),
    (lambda x: x @ nested_of([W, W]), RuntimeError, "2nd input tensor to be: 3 but got: 2"),
    (lambda x: x.bmm(W), RuntimeError, "batch2 must be a 3D tensor"),
    (lambda x: x.bmm(torch.ones(2, 5, 4)), RuntimeError, "to be: 3 but got: 2"),
    (lambda x: x.bmm(x), RuntimeError, r"0-th nested matrices .* multiplied \(2x5 and 2x5\)"),
    (lambda x: x.sum((0, 1), keepdim=True), RuntimeError, "only allows reduction of a single"),
    (lambda x: x.narrow(1, 0, 1), RuntimeError, "only dim=0 supported .* got dim=1"),
    (lambda x: x.narrow(0, 2, 2), RuntimeError, r"start \(2\) \+ length \(2\) exceeds"),
    (lambda x: torch.cat([x, W], -1), RuntimeError, "each tensor in given list to be nested"),
    (lambda x: torch.cat([x, nested_of([W] * 3)], -1), RuntimeError, "matching ragged structures"),
    (lambda x: x.chunk(2, -1), RuntimeError, r"divisible by chunks. Got 5 % 2"),
    (lambda x: x.chunk(2, 1), RuntimeError, "Chunk for nested tensors .* only .* the last dim"),
    (lambda x: x.split_with_sizes([1, 1], -1), RuntimeError, "to sum exactly to 5"),
    (lambda x: x.view(()), RuntimeError, r"shape '\[\]' is invalid for a nested tensor"),
    (lambda x: x.view(3, -1, -1), RuntimeError, "only one dimension can be inferred"),
    (lambda x: x[:2], NotImplementedError, "first index .* got slice"),
    (lambda x: x.squeeze(), RuntimeError, "squeeze without the dim argument"),
    (lambda x: F.linear(x, W), RuntimeError, r"last_dim = 5, and weight.size\(1\) = 4"),
    (lambda x: F.linear(x, W[0]), RuntimeError, "Nested tensor dim: 3. Dense tensor dim: 1"),
    (lambda x: F.linear(x, x), RuntimeError, "does not support nested weight"),
    (lambda x: F.layer_norm(x, (4,)), RuntimeError, "at dimension 0 of normalized_shape is 4"),
    (lambda x: F.layer_norm(x, (2, 5)), RuntimeError, "extends into irregular dimensions"),
    (lambda x: torch.ones(1).mul(x), RuntimeError, "a non-nested self and nested other"),
    (lambda x: x.detach().copy_(nested_of([W] * 3)), RuntimeError, "copy_ only supports tensors"),
    (lambda x: x.detach().fill_(torch.ones(1)), RuntimeError, "0-dimension value tensor but got"),
    (lambda x: torch.ones(()).mul_(x), RuntimeError, r"broadcast shape \[3, 4, 5\]"),
    (lambda x: x.clone(memory_format=torch.channels_last), RuntimeError, "format: ChannelsLast"),
    (lambda x: nested_of([torch.ones(0)]).to_padded_tensor(0), RuntimeError, "non-zero numel"),
    (lambda x: x + nested_of([W, W]), RuntimeError, "components have the same sizes"),
    (lambda x: x.unbind(1), RuntimeError, "only be unbound along dimension 0"),
    (lambda x: x.view(2, -1), RuntimeError, "cannot change or infer the implicit batch dimension"),
    (lambda x: x.unsqueeze(0), RuntimeError, "dimension 0 is not supported"),
    (lambda x: x.add_(1), RuntimeError, "in-place operations on a nested tensor are not recorded"),
    (lambda x: x.sort(), NotImplementedError, r"sort\(\): not supported for nested tensors"),
    (lambda x: x.tolist(), RuntimeError, "doesn't support strides"),
]


@pytest.mark.parametrize("at", range(len(REFUSED)))
def test_what_is_refused(at: int) -> None:
    call, kind, words = REFUSED[at]
    with pytest.raises(kind, match=words):
        call(nested_of(components()))


def test_tensors_have_one_size_if_all_components_have() -> None:
    def nested(*sizes: tuple[int, ...]) -> torch.Tensor:
        return torch.nested.nested_tensor([torch.ones(size) for size in sizes])

    x = nested((2, 4), (3, 4))
    assert x.is_same_size(nested((2, 4), (3, 4)))
    for other in (nested((2, 4), (2, 4)), nested((2, 4)), nested((2, 4, 1), (3, 4, 1))):
        assert not x.is_same_size(other)
    with pytest.raises(RuntimeError, match="Expected both self and other to be nested"):
        x.is_same_size(torch.ones(2, 4))
