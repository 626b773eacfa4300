"""The ops on lists of tensors equal loops over the op of one tensor, in every form.

Which op each of them stands for is the table here. Values, dtypes, gradients and what an error
leaves are compared with the loop; how PyTorch words refusals of lists is recorded by hand.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch

UNARY = [
    *("abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1"),
    *("floor", "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round"),
    *("rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
]
BINARY = ["add", "sub", "mul", "div", "clamp_max", "clamp_min", "maximum", "minimum", "pow"]
TERNARY = ["addcdiv", "addcmul"]
DTYPES = [
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.complex64,
    torch.int32,
    torch.int64,
    torch.bool,
]
LAYOUTS = ("same", "mixed", "empty", "strided")

Lists = list[list[torch.Tensor]]


def shapes(layout: str) -> list[tuple[int, ...]]:
    return {
        "same": [(2, 3)] * 3,
        "mixed": [(3,), (), (2, 1, 2)],
        "empty": [(0,), (2, 0), (1,)],
        "strided": [(3, 2), (2, 4), (5,)],
    }[layout]


def one(shape: tuple[int, ...], dtype: torch.dtype, layout: str) -> torch.Tensor:
    x = torch.rand(shape) * 0.6 + 0.2
    if layout == "strided":
        x = torch.stack([x, x], -1)[..., 0]
        x = x.transpose(0, 1) if x.dim() == 2 else x
    if dtype.is_complex:
        return torch.complex(x, x * 0.5)
    if dtype == torch.bool:
        return x > 0.5
    return x.to(dtype) if dtype.is_floating_point else (x * 10).to(dtype)


def lists(count: int, dtype: torch.dtype, layout: str) -> Lists:
    torch.manual_seed(0)
    return [[one(shape, dtype, layout) for shape in shapes(layout)] for _ in range(count)]


def copies(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return [x.detach().clone() for x in tensors]


def outcome(call: Callable[[], Any]) -> tuple[Any, type[Exception] | None]:
    try:
        return call(), None
    except Exception as error:
        return None, type(error)


def check_same(found: Any, expected: list[torch.Tensor]) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)


def check_forms(
    name: str, of_one: Callable[..., torch.Tensor], first: list[torch.Tensor], *rest: Any
) -> None:
    """Both forms of `_foreach_name` against the loop, which gives what is in `rest` to each."""
    rows = list(
        zip(first, *(r if isinstance(r, list) else [r] * len(first) for r in rest), strict=True)
    )
    expected, error = outcome(lambda: [of_one(*row) for row in rows])
    found, raised = outcome(lambda: getattr(torch, f"_foreach_{name}")(first, *rest))
    assert raised is error
    if error is None:
        assert isinstance(found, tuple)
        check_same(found, expected)
    targets = copies(first)
    before = copies(targets)
    fits = error is None and all(
        e.shape == t.shape and torch.can_cast(e.dtype, t.dtype) and not is_real_of(e, t)
        for e, t in zip(expected, targets, strict=True)
    )
    returned, raised = outcome(lambda: getattr(torch, f"_foreach_{name}_")(targets, *rest))
    if not fits:
        assert raised is not None
        check_same(targets, before)
        return
    assert raised is None
    assert returned is targets
    check_same(targets, [e.to(t.dtype) for e, t in zip(expected, targets, strict=True)])
    assert all(t._version == 1 for t in targets)


def is_real_of(result: torch.Tensor, target: torch.Tensor) -> bool:
    return target.dtype.is_complex and not result.dtype.is_complex


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_functions_of_one_list(dtype: torch.dtype, layout: str) -> None:
    for name in UNARY:
        [a] = lists(1, dtype, layout)
        check_forms(name, getattr(torch, name), a)


def of_two(name: str) -> Callable[..., torch.Tensor]:
    """The function of one tensor: the larger and the smaller of two are limits, as for lists."""
    if name in ("maximum", "minimum"):
        limit = "clamp_min" if name == "maximum" else "clamp_max"
        return lambda x, y: getattr(torch, limit)(x, y)
    function: Callable[..., torch.Tensor] = getattr(torch, name)
    return function


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_functions_of_a_list_and_an_operand(dtype: torch.dtype, layout: str) -> None:
    operands: list[Any] = [2, 0.5, True, [2, 3, 1], [0.5, 2, True]]
    if dtype.is_complex:
        operands += [1 + 2j, [1j, 2, 0.5]]
    for name, operand in itertools.product(BINARY, operands):
        [a] = lists(1, dtype, layout)
        check_forms(name, of_two(name), a, operand)
    for name in BINARY:
        a, b = lists(2, dtype, layout)
        check_forms(name, of_two(name), a, b)
        check_forms(name, of_two(name), a, [x.to(torch.float64) for x in b])
    for name in ("add", "mul", "div"):
        [a] = lists(1, dtype, layout)
        of_tensor = getattr(torch.ops.aten, f"_foreach_{name}").Tensor
        check_same(
            of_tensor(a, torch.tensor(1.5)),
            [getattr(torch, name)(x, torch.tensor(1.5)) for x in a],
        )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_functions_of_three_lists(dtype: torch.dtype, layout: str) -> None:
    for name, value in itertools.product(TERNARY, [1, 2, 0.5, [1, 2, 3], [0.5, 1, 2]]):
        a, b, c = lists(3, dtype, layout)
        function = getattr(torch, name)
        check_forms(name, lambda x, y, z, v, f=function: f(x, y, z, value=v), a, b, c, value)
    for weight in (0.25, [0.25, 0.5, 2.0]):
        a, b = lists(2, dtype, layout)
        check_forms("lerp", torch.lerp, a, b, weight)
    a, b, c = lists(3, dtype, layout)
    check_forms("lerp", torch.lerp, a, b, c)


def test_factors_and_packed_numbers() -> None:
    a, b, c = lists(3, torch.float32, "mixed")
    for name in ("add", "sub"):
        expected = [getattr(torch, name)(x, y, alpha=2) for x, y in zip(a, b, strict=True)]
        check_same(getattr(torch, f"_foreach_{name}")(a, b, alpha=2), expected)
    check_same(
        torch._foreach_add(a, torch.tensor(2.0), alpha=3),
        [x.add(torch.tensor(2.0), alpha=3) for x in a],
    )
    packed = torch.tensor([0.5, 2.0, -1.0])
    for name in TERNARY:
        found = getattr(torch, f"_foreach_{name}")(a, b, c, packed)
        check_same(found, list(getattr(torch, f"_foreach_{name}")(a, b, c, packed.tolist())))


def test_powers_of_a_number_copies_zeros_maxima_and_products() -> None:
    a, b = lists(2, torch.float32, "mixed")
    check_same(torch._foreach_pow(2.5, a), [torch.pow(2.5, x) for x in a])
    check_same(torch._foreach_max(a), [x.max() for x in a])
    check_same(torch._foreach_clone(a), a)
    assert torch._foreach_copy_(a, b) is a
    check_same(a, b)
    assert torch._foreach_zero_(a) is a
    assert all((x == 0).all() for x in a)
    check_same(torch._foreach_zero(b), a)
    halves = [x.half() for x in b]
    torch._foreach_copy_(a, halves)
    check_same(a, [x.float() for x in halves])
    m, n = [torch.rand(2, 3), torch.rand(1, 2)], [torch.rand(3, 1), torch.rand(2, 2)]
    check_same(torch._foreach_mm(m, n), [x @ y for x, y in zip(m, n, strict=True)])


@pytest.mark.parametrize("ord", [0, 1, 2, 3, -1, 0.5, float("inf")])
def test_sums_of_powers(ord: float) -> None:
    for dtype in (torch.float32, torch.float64, torch.complex64):
        [a] = lists(1, dtype, "mixed")
        torch.testing.assert_close(
            list(torch._foreach_powsum(a, ord)), [(x.abs() ** ord).sum() for x in a]
        )
    long = [torch.arange(3)]
    assert torch._foreach_powsum(long, 2, torch.float64)[0].item() == 5
    turned = [torch.tensor([3 + 4j])]
    assert torch._foreach_powsum(turned, 1, torch.float64)[0].item() == 5
    many = [torch.full((5000,), 0.5, dtype=torch.float16)]
    assert torch._foreach_powsum(many, 1)[0].item() == 2500
    assert torch._foreach_powsum(many, 1, torch.float64)[0].dtype == torch.float64
    with pytest.raises(NotImplementedError, match="\"powsum_cpu\" not implemented for 'Long'"):
        torch._foreach_powsum([torch.ones(2, dtype=torch.int64)])


def with_half(name: str) -> Callable[..., torch.Tensor]:
    return lambda x: of_two(name)(x, 0.5)


def with_value(name: str) -> Callable[..., torch.Tensor]:
    return lambda x, y, z: getattr(torch, name)(x, y, z, value=0.5)


def calls() -> list[tuple[str, Callable[[Lists], Any], Callable[..., torch.Tensor]]]:
    """Calls of lists that have gradients, and of one row."""
    unary = [(name, lambda ls: (ls[0],), getattr(torch, name)) for name in UNARY]
    binary = [(name, lambda ls: (ls[0], ls[1]), of_two(name)) for name in BINARY]
    scaled = [(name, lambda ls: (ls[0], 0.5), with_half(name)) for name in BINARY]
    ternary = [
        (
            name,
            lambda ls: (*ls, 0.5),
            with_value(name),
        )
        for name in TERNARY
    ]
    lerp: list[Any] = [
        ("lerp", tuple, torch.lerp),
        ("lerp", lambda ls: (*ls[:2], 0.3), lambda x, y: torch.lerp(x, y, 0.3)),
    ]
    return [*unary, *binary, *scaled, *ternary, *lerp]


@pytest.mark.parametrize(
    ("name", "arguments", "of_row"), calls(), ids=[str(i) + c[0] for i, c in enumerate(calls())]
)
@pytest.mark.parametrize("inplace", [False, True])
def test_the_gradient_of_a_result_reaches_its_own_row(
    name: str, arguments: Callable[[Lists], Any], of_row: Callable[..., torch.Tensor], inplace: bool
) -> None:
    given = lists(3, torch.float64, "mixed")
    leaves = [[x.clone().requires_grad_() for x in column] for column in given]
    used = [column for column in arguments(leaves) if isinstance(column, list)]
    if inplace:
        targets = [x.clone() for x in leaves[0]]
        getattr(torch, f"_foreach_{name}_")(*arguments([targets, *leaves[1:]]))
        results = targets
    else:
        results = list(getattr(torch, f"_foreach_{name}")(*arguments(leaves)))
    for row, result in enumerate(results):
        inputs = [x for column in used for x in column]
        grads = torch.autograd.grad(result.sum(), inputs, retain_graph=True, allow_unused=True)
        own = [column[row].detach().requires_grad_() for column in used]
        expected = torch.autograd.grad(of_row(*own).sum(), own)
        length = len(results)
        for at, grad in enumerate(grads):
            if at % length == row:
                torch.testing.assert_close(grad, expected[at // length])
            else:
                assert grad is None


def test_writes_into_leaves_are_refused_before_anything_is_written() -> None:
    a = [torch.ones(2), torch.ones(2, requires_grad=True)]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        torch._foreach_add_(a, 1)
    assert a[0].tolist() == [1, 1]
    with torch.no_grad():
        torch._foreach_add_(a, 1)
    assert a[1].tolist() == [2, 2]


def longs(*shape: int) -> torch.Tensor:
    return torch.ones(shape, dtype=torch.int64)


@pytest.mark.parametrize(
    ("call", "error", "phrase"),
    [
        (lambda a: torch._foreach_add_([], 1), RuntimeError, "must have at least one tensor"),
        (lambda a: torch._foreach_add_(a, a[:1]), RuntimeError, "number of tensors, got 3 and 1"),
        (
            lambda a: torch._foreach_add_(a, []),
            RuntimeError,
            "elements as scalar list, got 3 and 0",
        ),
        (lambda a: torch._foreach_add_(a, [1.0]), RuntimeError, "elements as scalar list, got 3"),
        (
            lambda a: torch._foreach_add_(a, [1, a[0], a[0]]),
            TypeError,
            "expected Tensor as element 0",
        ),
        (lambda a: torch._foreach_add_(a, [a[0], 1, 1]), TypeError, "expected Tensor as element 1"),
        (lambda a: torch._foreach_add_(a), TypeError, "invalid combination of arguments"),
        (lambda a: torch._foreach_add_(a, 1, alpha=2), TypeError, "invalid combination"),
        (lambda a: torch._foreach_add_(a, "x"), TypeError, "invalid combination"),
        (lambda a: torch._foreach_add_(a, torch.ones(1)), RuntimeError, "expected to be 0 dim but"),
        (lambda a: torch._foreach_exp_(3), TypeError, "must be tuple of Tensors, not int"),
        (lambda a: torch._foreach_exp_([*a, 3]), TypeError, "expected Tensor as element 3"),
        (lambda a: torch._foreach_addcmul_(a, a, a[:2]), RuntimeError, "got 3 and 2"),
        (lambda a: torch._foreach_addcmul_(a, a, a, [1]), RuntimeError, "scalar list, got 3 and 1"),
        (
            lambda a: torch._foreach_addcmul_(a, a, a, torch.ones(2)),
            RuntimeError,
            "Expected length of scalars to match input of length 3 but got 2 instead",
        ),
        (
            lambda a: torch._foreach_addcmul_(a, a, a, torch.tensor(1.0)),
            RuntimeError,
            "Expected packed scalar Tensor to be of dimension 1. Got 0 instead",
        ),
        (lambda a: torch._foreach_lerp_(a, a, a[:2]), RuntimeError, "got 3 and 2"),
        (lambda a: torch._foreach_copy_(a, a[:2]), RuntimeError, "got 3 and 2"),
        (
            lambda a: torch._foreach_copy_(a, [*a[:2], torch.ones(7)]),
            RuntimeError,
            "must match the size of tensor b",
        ),
        (
            lambda a: torch._foreach_add_(a, [a[0] + 1, a[1], torch.ones(5, 5, 2)]),
            RuntimeError,
            "doesn't match the broadcast shape|must match the size",
        ),
        (
            lambda a: torch._foreach_mul_([*a, longs(2)], 2.5),
            RuntimeError,
            "result type Float can't be cast to the desired output type Long",
        ),
        (
            lambda a: torch._foreach_add_([*a, torch.ones(1).expand(2)], 1),
            RuntimeError,
            "more than one element of the written-to tensor",
        ),
        (
            lambda a: torch._foreach_lerp_([*a, longs(2)], [*a, longs(2)], 0.5),
            NotImplementedError,
            "not implemented for 'Long'",
        ),
        (
            lambda a: torch._foreach_neg_([*a, torch.tensor([True])]),
            NotImplementedError,
            "on a bool tensor",
        ),
        (
            lambda a: torch._foreach_rsqrt_([*a, torch.eye(3).to_sparse()]),
            NotImplementedError,
            "Could not run 'aten::rsqrt_' with arguments from the 'SparseCPU' backend",
        ),
        (
            lambda a: torch._foreach_add_([*a, torch.eye(3).to_sparse()], 0),
            RuntimeError,
            "sparse, dense",
        ),
        (
            lambda a: torch._foreach_mul_([*a, torch.eye(2).to_sparse()], [*a, torch.ones(3)]),
            RuntimeError,
            "must match the size",
        ),
        (
            lambda a: torch._foreach_pow_([*a, torch.eye(2).to_sparse()], 0),
            RuntimeError,
            "powers above 0",
        ),
        (
            lambda a: torch._foreach_add_(
                [*a, torch.ones(2, dtype=torch.cfloat).conj()], [*a, torch.ones(3)]
            ),
            RuntimeError,
            "doesn't match the broadcast shape|must match the size",
        ),
        (lambda a: torch._foreach_mm(a, []), RuntimeError, "must have the same number of tensors"),
        (lambda a: torch._foreach_max([torch.ones(0)]), RuntimeError, "maximum of an empty tensor"),
    ],
)
def test_what_is_refused_changes_nothing(call: Any, error: type[Exception], phrase: str) -> None:
    [a] = lists(1, torch.float32, "mixed")
    before = copies(a)
    with pytest.raises(error, match=phrase):
        call(a)
    check_same(a, before)


def test_what_is_refused_changes_nothing_where_the_call_is_observed() -> None:
    [a] = lists(1, torch.float32, "mixed")
    before = copies(a)
    with (
        torch.profiler.profile(),
        pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"),
    ):
        torch._foreach_mul_([*a, longs(2)], 2.5)
    check_same(a, before)


def test_rows_that_need_layers_are_written_once() -> None:
    sparse, number = torch.eye(2).to_sparse(), torch.tensor([1 + 2j])
    dense, conj = torch.ones(2, 2), number.conj()
    versions = [x._version for x in (dense, sparse, conj)]
    torch._foreach_mul_([dense, sparse, conj], 3)
    assert dense.tolist() == [[3, 3], [3, 3]]
    assert sparse.to_dense().tolist() == [[3, 0], [0, 3]]
    assert conj.tolist() == [3 - 6j]
    assert number.tolist() == [3 + 6j]
    assert [x._version for x in (dense, sparse, conj)] == [v + 1 for v in versions]


def test_they_are_ops_with_schemas() -> None:
    add = torch.ops.aten._foreach_add
    assert str(add.List._schema).endswith(
        "_foreach_add.List(Tensor[] self, Tensor[] other, *, Scalar alpha=1) -> Tensor[]"
    )
    a, b = lists(2, torch.float32, "mixed")
    check_same(add.List(a, b), [x + y for x, y in zip(a, b, strict=True)])
    assert torch.ops.aten._foreach_add_.Scalar(a, 1) is None


def test_one_tensor_may_stand_in_a_list_twice() -> None:
    x = torch.zeros(2)
    torch._foreach_add_([x, x], 1)
    assert x.tolist() == [2, 2]
    y = torch.arange(4.0)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        torch._foreach_add_([x, y[1:]], [x, y[:-1]])
    assert x.tolist() == [2, 2]


def test_transforms_go_through_lists() -> None:
    x = torch.rand(4, 3)
    found = torch.vmap(lambda row: torch._foreach_mul([row, row], [row, row.exp()])[1])(x)
    torch.testing.assert_close(found, x * x.exp())
    _, tangent = torch.func.jvp(lambda t: torch._foreach_sin([t])[0], (x,), (torch.ones_like(x),))
    torch.testing.assert_close(tangent, x.cos())


def test_functions_of_modes_see_the_call() -> None:
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Mode():
        torch._foreach_add([torch.ones(1)], 1)
    assert torch._foreach_add in seen


def test_packed_numbers_may_have_gaps() -> None:
    a = [torch.tensor([float(n)]) for n in range(1, 4)]
    packed = torch.tensor([0.5, -1.0, 2.0, -1.0, 4.0])[::2]
    found = torch._foreach_addcmul(a, a, a, packed)
    expected = [x + x * x * factor for x, factor in zip(a, (0.5, 2.0, 4.0), strict=True)]
    assert [x.tolist() for x in found] == [x.tolist() for x in expected]


def fused_adam(lists: list[list[torch.Tensor]], steps: list[torch.Tensor]) -> None:
    torch._C._VariableFunctions._fused_adam_(
        *lists,
        [],
        steps,
        lr=0.1,
        beta1=0.9,
        beta2=0.99,
        weight_decay=0.01,
        eps=1e-8,
        amsgrad=False,
        maximize=False,
    )


def test_a_step_of_many_small_tensors_does_not_depend_on_threads() -> None:
    def after(threads: int) -> list[list[float]]:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            torch.manual_seed(0)
            sizes = [0, 1, 3000, 17, 40_000, *range(900, 1000)]
            lists = [[torch.rand(n) for n in sizes] for _ in range(4)]
            # A parameter that lies in memory by columns.
            lists[0][2] = torch.rand(60, 50).t()
            for column in lists[1:]:
                column[2] = column[2].reshape(50, 60)
            steps = [torch.tensor(float(1 + k % 3)) for k in range(len(sizes))]
            fused_adam(lists, steps)
            return [x.flatten().tolist() for column in lists for x in column]
        finally:
            torch.set_num_threads(before)

    assert after(1) == after(2) == after(5)


def test_a_tensor_that_stands_twice_in_a_list_makes_two_steps() -> None:
    x, y = torch.full((20_000,), 2.0), torch.full((20_000,), 2.0)
    state = [torch.zeros(20_000), torch.zeros(20_000)]
    other = [torch.zeros(20_000), torch.zeros(20_000)]
    grad, step = torch.ones(20_000), torch.tensor(1.0)
    fused_adam([[x, x], [grad, grad], [state[0]] * 2, [state[1]] * 2], [step, step])
    for _ in range(2):
        fused_adam([[y], [grad], [other[0]], [other[1]]], [step])
    assert torch.equal(x, y)


@pytest.mark.parametrize("list_name", ["grads", "exp_avgs", "exp_avg_sqs"])
def test_lists_of_a_step_that_do_not_fit_are_named(list_name: str) -> None:
    place = ["params", "grads", "exp_avgs", "exp_avg_sqs"].index(list_name)
    lists = [[torch.ones(2), torch.ones(2)] for _ in range(4)]
    steps = [torch.tensor(1.0), torch.tensor(1.0)]
    short = [column[: 1 if k == place else 2] for k, column in enumerate(lists)]
    text = rf"Expected {list_name}.size\(\) == n_tensors to be true, but got false"
    with pytest.raises(RuntimeError, match=text):
        fused_adam(short, steps)
    lists[place][1] = torch.ones(2, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
        fused_adam(lists, steps)
    assert [x.tolist() for column in lists for x in column] == [[1.0, 1.0]] * 8


def test_fused_steps_without_any_tensor_are_refused() -> None:
    adam: dict[str, Any] = {"lr": 0.1, "beta1": 0.9, "beta2": 0.9, "weight_decay": 0.0, "eps": 1.0}
    adam |= {"amsgrad": False, "maximize": False}
    sgd: dict[str, Any] = {"lr": 0.1, "weight_decay": 0.0, "momentum": 0.0, "dampening": 0.0}
    sgd |= {"nesterov": False, "maximize": False, "is_first_step": False}
    adagrad = {"lr": 0.1, "lr_decay": 0.0, "weight_decay": 0.0, "eps": 1.0, "maximize": False}
    steps: dict[str, tuple[int, dict[str, Any]]] = {
        "_fused_adam_": (6, adam),
        "_fused_adamw_": (6, adam),
        "_fused_sgd_": (3, sgd),
        "_fused_adagrad_": (4, adagrad),
    }
    for name, (count, options) in steps.items():
        step, lists = getattr(torch, name), [[] for _ in range(count)]
        with pytest.raises(NotImplementedError, match=f"no tensor arguments.* aten::{name}"):
            step(*lists, **options)
        assert step(*lists, **{**options, "lr": torch.tensor(0.1)}) is None
        assert step(*lists, **options, grad_scale=torch.tensor(1.0)) is None
    optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1, fused=True)
    optimizer.step()
