"""`torch.library`: ops that a program defines, as ops of the library."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import pullback as torch
from pullback import library
from pullback.func import grad, vmap
from pullback.utils._python_dispatch import TorchDispatchMode

Tensor = torch.Tensor


@pytest.fixture
def lib() -> Iterator[Any]:
    with library._scoped_library("_test_lib", "FRAGMENT") as made:
        yield made


@contextlib.contextmanager
def op_of(function: Any, mutates_args: Any = (), **options: Any) -> Iterator[Any]:
    """A custom op for the time of a test."""
    op = library.custom_op(f"_test_op::{function.__name__}", mutates_args=mutates_args, **options)
    made = op(function)
    try:
        yield made
    finally:
        library._DEFINED.pop(made._qualname)._destroy()


def cube(x: Tensor) -> Tensor:
    return torch.tensor(x.detach().numpy() ** 3)


def differentiable(op: Any) -> None:
    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])

    op.register_autograd(lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2, setup_context=setup)


def test_a_function_becomes_an_op_with_a_schema() -> None:
    def mixed(x: Tensor, ws: Sequence[Tensor], n: int = 2, *, scale: float | None = None) -> Tensor:
        return x * n + sum(ws) * (scale or 1.0)

    with op_of(mixed) as op:
        overload = torch.ops._test_op.mixed.default
        assert str(overload._schema) == (
            "_test_op::mixed(Tensor x, Tensor[] ws, SymInt n=2, *, float? scale=None) -> Tensor"
        )
        assert (overload.name(), str(overload)) == ("_test_op::mixed", "_test_op.mixed.default")
        x = torch.ones(2)
        assert op(x, [x, x]).tolist() == [4, 4]
        assert overload(x, [x], 3, scale=2.0).tolist() == [5, 5]
        assert torch.ops._test_op.mixed(x=x, ws=[x]).tolist() == [3, 3]
    with pytest.raises(AttributeError, match="has no attribute 'mixed'"):
        _ = torch.ops._test_op.mixed


@pytest.mark.parametrize(
    ("args", "kwargs", "phrase"),
    [
        ((1,), {}, "Expected a value of type 'Tensor' for argument 'x' but instead found .*'int'"),
        ((), {}, "missing value for argument 'x'"),
        ((1, 2), {}, "expected at most 1 argument"),
        ((), {"y": 1, "x": torch.ones(1)}, "Unknown keyword argument 'y'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(args: Any, kwargs: Any, phrase: str) -> None:
    with op_of(cube) as op, pytest.raises(RuntimeError, match=phrase):
        op(*args, **kwargs)


def test_a_gradient_rule_makes_the_op_one_node() -> None:
    with op_of(cube) as op:
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        with pytest.raises(RuntimeError, match="no autograd formula was registered"):
            op(x).sum().backward()
        differentiable(op)
        y = op(x)
        assert "Cube" in type(y.grad_fn).__name__
        y.sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [3, 12]
        (first,) = torch.autograd.grad(op(x).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        assert second.tolist() == [6, 12]
        assert not op(x.detach()).requires_grad


def test_gradients_of_lists_and_of_several_results() -> None:
    def both(xs: Sequence[Tensor], y: Tensor) -> tuple[Tensor, Tensor]:
        return xs[0] * xs[1], y * 2

    with op_of(both) as op:

        def setup(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs[0])

        def backward(ctx: Any, g: Any, h: Any) -> Any:
            a, b = ctx.saved_tensors
            return [g * b, g * a], h * 2

        op.register_autograd(backward, setup_context=setup)
        a, b, y = (torch.tensor([float(n)], requires_grad=True) for n in (2, 3, 4))
        first, second = op([a, b], y)
        (first + second).backward()
        assert [t.grad.item() for t in (a, b, y)] == [3, 2, 2]


def test_transforms_see_the_op_as_one() -> None:
    with op_of(cube) as op:
        differentiable(op)
        x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        assert vmap(op)(x).tolist() == (x**3).tolist()
        assert vmap(op, in_dims=1, out_dims=1)(x).tolist() == (x**3).tolist()
        assert vmap(grad(lambda v: op(v).sum()))(x).tolist() == (3 * x**2).tolist()
        calls = []

        def rule(info: Any, in_dims: Any, value: Tensor) -> Any:
            calls.append((info.batch_size, in_dims))
            return op(value), in_dims[0]

        op.register_vmap(rule)
        assert vmap(op, in_dims=1, out_dims=1)(x).tolist() == (x**3).tolist()
        # (The batch is brought to the front first.)
        assert calls == [(2, (0,))]


def test_modes_and_classes_are_asked_below_autograd() -> None:
    seen = []

    class Seeing(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with op_of(cube) as op:
        differentiable(op)
        x = torch.ones(1, requires_grad=True)
        with Seeing():
            assert op(x).requires_grad
        assert seen[0] == "_test_op.cube.default"

        op.register_torch_dispatch(Seeing, lambda mode, func, types, args, kwargs: args[0] * 0 + 7)
        with Seeing():
            assert op(torch.ones(1)).item() == 7


def test_what_is_written_into_is_counted() -> None:
    def fill(x: Tensor, value: float) -> None:
        x.detach().numpy()[...] = value

    with op_of(fill, mutates_args={"x"}) as op:
        schema = str(torch.ops._test_op.fill.default._schema)
        assert schema == "_test_op::fill(Tensor(a0!) x, float value) -> ()"
        x = torch.zeros(2)
        version = x._version
        assert op(x, 3.0) is None
        assert (x.tolist(), x._version) == ([3, 3], version + 1)
        with pytest.raises(RuntimeError, match="Cannot register autograd formula"):
            op.register_autograd(lambda ctx: None)


def test_results_are_no_arguments() -> None:
    def same(x: Tensor) -> Tensor:
        return x

    with op_of(same) as op, pytest.raises(RuntimeError, match="must not also be an input"):
        op(torch.ones(1))

    def flat(x: Tensor) -> Tensor:
        return x.view(-1)

    with op_of(flat) as op, pytest.raises(RuntimeError, match="may not alias any input"):
        op(torch.ones(2, 2))

    def twice(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x.clone()
        return y, y[:1]

    with op_of(twice) as op, pytest.raises(RuntimeError, match="or another output"):
        op(torch.ones(2))


def test_the_last_definition_of_an_op_holds() -> None:
    for factor in (2, 3):

        @library.custom_op("_test_again::scaled", mutates_args=())
        def scaled(x: Tensor, by: int = factor) -> Tensor:
            return x * by

        assert scaled(torch.ones(1)).item() == factor
    assert torch.ops._test_again.scaled(torch.ones(1)).item() == 3


def test_written_arguments_have_names_of_their_own_in_a_signature() -> None:
    def write(x: Tensor, xs: list[Tensor], maybe: list[Tensor | None], n: int) -> None:
        xs[0].add_(n)

    text = library.infer_schema(write, mutates_args={"x", "xs", "maybe"})
    assert text == "(Tensor(a0!) x, Tensor(a1!)[] xs, Tensor(a2!)?[] maybe, SymInt n) -> ()"
    parsed = library._schema.parse("f" + text)
    assert str(parsed).startswith("f(Tensor(a0!) x, Tensor(a1!)[] xs, Tensor(a2!)")
    with pytest.raises(ValueError, match=r"\{'z'\} in mutates_args were not found"):
        library.infer_schema(write, mutates_args={"z"})
    with pytest.raises(ValueError, match="varargs"):
        library.infer_schema(lambda *xs: None, mutates_args=())
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        library.impl("a::b", "somewhere")


def test_kernels_of_absent_devices_are_taken_and_never_called() -> None:
    with library._scoped_library("aten", "IMPL") as own:
        own.impl("sin", lambda x: 1 / 0, "PrivateUse1")
        own.impl(torch.ops.aten.add.Tensor, lambda x, y: 1 / 0, "AutogradXLA")
        assert torch.ones(1).sin().add(1).item() > 1


def test_ops_of_a_library_may_give_an_argument_back(lib: Any) -> None:
    lib.define("itself(Tensor x) -> Tensor")
    lib.impl("itself", lambda x: x, "CPU")
    x = torch.ones(2)
    assert torch.ops._test_lib.itself(x) is x


def test_kernels_are_found_by_device(lib: Any) -> None:
    lib.define("twice(Tensor x, int n=2) -> Tensor")
    op = torch.ops._test_lib.twice
    with pytest.raises(NotImplementedError, match=r"Could not run '_test_lib::twice' .* 'CPU'"):
        op(torch.ones(1))
    library.impl("_test_lib::twice", "cpu", lambda x, n: x * n, lib=lib)
    assert op(torch.ones(1)).item() == 2
    assert op(torch.ones(1), 5).item() == 5
    with pytest.raises(RuntimeError, match="already a kernel registered"):
        lib.impl("twice", lambda x, n: x, "CPU")
    assert library.get_kernel("_test_lib::twice", "CPU")(None, torch.ones(1), 3).item() == 3


def test_what_is_made_of_ops_is_recorded(lib: Any) -> None:
    lib.define("square(Tensor x) -> Tensor")
    lib.impl("square", lambda x: x * x, "CompositeImplicitAutograd")
    x = torch.tensor(3.0, requires_grad=True)
    torch.ops._test_lib.square(x).backward()
    assert x.grad is not None
    assert x.grad.item() == 6


def test_autocast_casts_where_that_was_registered() -> None:
    def kind(x: Tensor) -> Tensor:
        return x + 1

    with op_of(kind) as op:
        library.register_autocast(op, "cpu", torch.bfloat16)
        assert op(torch.ones(1)).dtype is torch.float32
        with torch.autocast("cpu"):
            assert op(torch.ones(1)).dtype is torch.bfloat16


def test_overloads_of_a_name_are_chosen_by_their_arguments(lib: Any) -> None:
    lib.define("f(Tensor x) -> Tensor")
    lib.define("f.scaled(Tensor x, float s) -> Tensor")
    lib.impl("f", lambda x: x + 1, "CompositeExplicitAutograd")
    lib.impl("f.scaled", lambda x, s: x * s, "CompositeExplicitAutograd")
    op = torch.ops._test_lib.f
    assert op.overloads() == ["default", "scaled"]
    assert (op(torch.ones(1)).item(), op(torch.ones(1), 4.0).item()) == (2, 4)


def test_definitions_go_with_their_library() -> None:
    made = library.Library("_test_gone", "DEF")
    made.define("f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="Only a single TORCH_LIBRARY"):
        library.Library("_test_gone", "DEF")
    with pytest.raises(RuntimeError, match="same name and overload name"):
        made.define("f(Tensor x) -> Tensor")
    assert torch.ops._test_gone.f.overloads() == ["default"]
    made._destroy()
    assert not hasattr(torch.ops._test_gone, "f")


@pytest.mark.parametrize(
    ("call", "error", "phrase"),
    [
        (lambda: library.Library("a", "NONSENSE"), ValueError, "Unsupported kind"),
        (lambda: library.Library("aten", "DEF"), ValueError, "reserved namespace"),
        (
            lambda: library.Library("aten", "IMPL").impl("sin", lambda x: x, "CPU"),
            NotImplementedError,
            "cannot be replaced",
        ),
        (
            lambda: library.Library("aten", "IMPL").impl("sinus", lambda x: x, "CPU"),
            RuntimeError,
            "Could not find schema for aten::sinus",
        ),
        (
            lambda: library.Library("aten", "IMPL").impl("sin", [], "CPU"),
            TypeError,
            "required to be a callable",
        ),
        (
            lambda: library.Library("aten", "IMPL", "CPU").impl("sin", lambda x: x, "Meta"),
            RuntimeError,
            "inconsistent with the dispatch key",
        ),
        (lambda: library.define("noname", "() -> ()"), ValueError, "namespace::name"),
        (lambda: library.define("a::b", "Tensor x"), ValueError, "expected schema to look like"),
        (lambda: library.define("a::b", "(Tensr x) -> Tensor"), RuntimeError, "no argument of a"),
        (lambda: library.impl("a::absent", "cpu", lambda: None), RuntimeError, "no operator"),
        (lambda: library.infer_schema(lambda x: x, mutates_args=()), ValueError, "annotation"),
        (lambda: library.triton_op("a::b", None, mutates_args=()), NotImplementedError, "Triton"),
        (lambda: torch.ops.load_library("x.so"), OSError, "cannot be"),
    ],
)
def test_what_cannot_be_is_refused(call: Any, error: Any, phrase: str) -> None:
    with pytest.raises(error, match=phrase):
        call()


def test_opcheck_finds_what_is_wrong() -> None:
    with op_of(cube) as op:
        x = torch.ones(2, requires_grad=True)
        with pytest.raises(library.opcheck.__globals__["OpCheckError"], match="no gradient rule"):
            library.opcheck(op, (x,), test_utils="test_autograd_registration")
        differentiable(op)
        outcomes = library.opcheck(
            op, (x,), test_utils=["test_schema", "test_autograd_registration"]
        )
        assert set(outcomes.values()) == {"SUCCESS"}

    def writes(x: Tensor) -> Tensor:
        x.detach().numpy()[...] = 0
        return x.clone()

    with op_of(writes) as op:
        outcomes = library.opcheck(
            op, (torch.ones(2),), test_utils="test_schema", raise_exception=False
        )
        assert "was mutated" in str(outcomes["test_schema"])


def test_an_op_without_forward_rule_is_no_constant_to_jvp() -> None:
    @library.custom_op("pullbacktest::without_jvp", mutates_args=())
    def without_jvp(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    x = torch.ones(2)
    with pytest.raises(NotImplementedError, match="implement the jvp function"):
        torch.func.jvp(without_jvp, (x,), (x,))


def test_an_op_made_of_others_takes_no_fake(lib: Any) -> None:
    lib.define("composed(Tensor x) -> Tensor")
    lib.impl("composed", lambda x: x.sin(), "CompositeImplicitAutograd")
    with pytest.raises(RuntimeError, match="kernel for CompositeImplicitAutograd"):
        library.register_fake("_test_lib::composed", torch.empty_like)
    assert torch.ops._test_lib.composed.default.fake is None


@pytest.mark.parametrize(
    "schema", ["of(Tensor(a) x) -> Tensor(a)", "of(Tensor x) -> ()", "of(Tensor(a!) x) -> Tensor"]
)
def test_only_ops_with_new_results_take_a_gradient(lib: Any, schema: str) -> None:
    lib.define(schema)
    assert str(torch.ops._test_lib.of.default._schema) == f"_test_lib::{schema}"
    with pytest.raises(RuntimeError, match="non-functional operator _test_lib::of"):
        library.register_autograd("_test_lib::of", lambda ctx, grad: grad)
    assert torch.ops._test_lib.of.default.backward is None


def test_what_is_written_is_named_in_a_sequence() -> None:
    def copied(x: Tensor, unknown: Tensor) -> Tensor:
        return x + unknown

    schema = library.infer_schema(copied, mutates_args=["unknown"])
    assert schema == "(Tensor x, Tensor(a1!) unknown) -> Tensor"
    schema = library.infer_schema(copied, mutates_args="unknown")
    assert schema == "(Tensor(a0!) x, Tensor(a1!) unknown) -> Tensor"
    with pytest.raises(ValueError, match="or the string 'unknown', not the string 'x'"):
        library.infer_schema(copied, mutates_args="x")
    with pytest.raises(ValueError, match="in mutates_args were not found"):
        library.infer_schema(copied, mutates_args={"y"})


@pytest.mark.parametrize(
    ("schema", "phrase"),
    [
        ("of(Tensor x) -> Wrong", "unknown type specifier: 'Wrong'"),
        ("of(Tensor x) -> (Tensor", "expected )"),
        ("of(int x=3, int y) -> Tensor", "Non-default positional argument follows default"),
    ],
)
def test_a_wrong_schema_is_refused(lib: Any, schema: str, phrase: str) -> None:
    with pytest.raises(RuntimeError, match=phrase.replace(")", r"\)")):
        lib.define(schema)
    assert not hasattr(torch.ops._test_lib, "of")
    # (By name, arguments may come in any order.)
    lib.define("of(int x=3, *, int y) -> (Tensor(a), int[2]?, Tensor[])")


def test_results_of_kernels_are_of_the_types_in_the_schema(lib: Any) -> None:
    x = torch.ones(2)
    lib.define("one(Tensor x, str kind) -> Tensor")
    lib.define("two(Tensor x, int n) -> (Tensor, Tensor?)")
    lib.impl("one", lambda x, kind: {"tensor": x + 1, "none": None}.get(kind, kind), "CPU")
    lib.impl("two", lambda x, n: (x + 1, None, x)[:n], "CPU")
    one, two = torch.ops._test_lib.one, torch.ops._test_lib.two
    assert one(x, "tensor").tolist() == [2, 2]
    assert one(x, "none") is None
    with pytest.raises(RuntimeError, match=r"cast str to Tensor: .* _test_lib::one"):
        one(x, "a text")
    first, second = two(x, 2)
    assert first.tolist() == [2, 2]
    assert second is None
    with pytest.raises(RuntimeError, match=r"gave 1 result\(s\), its schema has 2"):
        two(x, 1)
    with pytest.raises(RuntimeError, match=r"gave 3 result\(s\), its schema has 2"):
        two(x, 3)


def test_ops_say_whether_a_program_has_defined_them(lib: Any) -> None:
    lib.define("mine(Tensor x) -> Tensor")
    assert torch.ops._test_lib.mine.default._defined_in_python
    assert not torch.ops.aten.sin.default._defined_in_python
