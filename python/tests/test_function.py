"""Custom functions: the context's calls, the rules for outputs, the texts of errors."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import weakref
from typing import Any

import pytest

import pullback as torch
from pullback.autograd import Function
from pullback.autograd.function import once_differentiable


def leaf(*values: float) -> Any:
    return torch.tensor(values, requires_grad=True)


class Square(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * grad


class Scale(Function):
    @staticmethod
    def forward(x: Any, by: float = 3.0) -> Any:
        return x * by

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, ctx.by = inputs

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.by, None


def made(forward: Any, backward: Any = None, **more: Any) -> Any:
    """A function class of the given parts."""
    parts = {"forward": staticmethod(forward)}
    if backward is not None:
        parts["backward"] = staticmethod(backward)
    parts.update({name: staticmethod(part) for name, part in more.items()})
    return type(Function)("Made", (Function,), parts)


def test_saves_and_differentiates() -> None:
    x = leaf(1.0, -2.0)
    y = Square.apply(x)
    assert y.grad_fn.name() == "SquareBackward"
    assert isinstance(y.grad_fn, Square._backward_cls)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, -4.0]


def test_differentiates_twice() -> None:
    x = leaf(3.0)
    (first,) = torch.autograd.grad(Square.apply(x), x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert second.tolist() == [2.0]


def test_grad_fn_is_the_context() -> None:
    seen = []

    def forward(ctx: Any, x: Any) -> Any:
        seen.append(ctx)
        return x.clone()

    y = made(forward, lambda ctx, g: g).apply(leaf(1.0))
    assert y.grad_fn is seen[0]


def test_forward_runs_without_recording() -> None:
    modes = []

    def forward(ctx: Any, x: Any) -> Any:
        modes.append(torch.is_grad_enabled())
        return x.clone()

    def backward(ctx: Any, grad: Any) -> Any:
        modes.append(torch.is_grad_enabled())
        return grad

    x = leaf(1.0)
    y = made(forward, backward).apply(x)
    assert torch.is_grad_enabled()
    torch.autograd.grad(y, x, retain_graph=True)
    torch.autograd.grad(y, x, create_graph=True)
    assert modes == [False, False, True]


def test_needs_input_grad() -> None:
    seen = []

    def forward(ctx: Any, *args: Any) -> Any:
        seen.append(ctx.needs_input_grad)
        return args[0] + args[1]

    cls = made(forward, lambda ctx, g: (g, g, None))
    cls.apply(leaf(1.0), torch.ones(1), 5)
    cls.apply(torch.ones(1), torch.ones(1), "x")
    assert seen == [(True, False, False), (False, False, False)]


def test_setup_context_and_defaults() -> None:
    x = leaf(2.0)
    Scale.apply(x).backward()
    assert x.grad.tolist() == [3.0]
    x.grad = None
    Scale.apply(x, 5.0).backward()
    assert x.grad.tolist() == [5.0]
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        Scale.apply()


def test_keywords_are_refused() -> None:
    with pytest.raises(TypeError, match=r"apply\(\) takes no keyword arguments"):
        Square.apply(x=leaf(1.0))


def test_a_single_tensor_or_a_tuple() -> None:
    one = made(lambda ctx, x: x.clone(), lambda ctx, g: g)
    many = made(lambda ctx, x: (x.clone(), 7, None), lambda ctx, g, a, b: g)
    listed = made(lambda ctx, x: [x.clone()], lambda ctx, g: None)
    x = leaf(1.0)
    assert isinstance(one.apply(x), torch.Tensor)
    y, number, nothing = many.apply(x)
    assert y.requires_grad
    assert number == 7
    assert nothing is None
    assert isinstance(listed.apply(x), list)


def test_no_recording_without_need() -> None:
    assert Square.apply(torch.ones(2)).grad_fn is None
    with torch.no_grad():
        assert not Square.apply(leaf(1.0)).requires_grad


def test_mark_dirty_keeps_the_object() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    cls = made(forward, lambda ctx, g: g * 2)
    x = leaf(1.0)
    y = x.clone()
    version = y._version
    z = cls.apply(y)
    assert z is y
    assert y._version > version
    assert y.grad_fn.name() == "MadeBackward"
    z.backward()
    assert x.grad.tolist() == [2.0]


def test_dirty_leaf_is_refused() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x

    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        made(forward, lambda ctx, g: g).apply(leaf(1.0))


def test_dirty_must_be_returned() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x + 1

    with pytest.raises(RuntimeError, match="Some elements marked as dirty"):
        made(forward, lambda ctx, g: g).apply(leaf(1.0).clone())


def test_dirty_view_with_two_outputs_is_refused() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x, x + 1

    view = leaf(1.0, 2.0).clone()[:1]
    with pytest.raises(RuntimeError, match="cannot return more than one Tensor"):
        made(forward, lambda ctx, g, h: g).apply(view)


def test_dirty_not_an_input_warns() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        y = x + 1
        ctx.mark_dirty(y)
        return y

    with pytest.warns(UserWarning, match="Only input Tensors"):
        made(forward, lambda ctx, g: g).apply(leaf(1.0))


def test_returned_input_is_an_alias() -> None:
    x = leaf(1.0)
    y = made(lambda ctx, x: x, lambda ctx, g: g * 4).apply(x)
    assert y is not x
    assert y.data_ptr() == x.data_ptr()
    y.backward()
    assert x.grad.tolist() == [4.0]
    plain = torch.ones(1)
    assert made(lambda ctx, x: x).apply(plain) is not plain


def test_non_differentiable_outputs() -> None:
    seen = []

    def forward(ctx: Any, x: Any) -> Any:
        a, b = x * 2, x * 3
        ctx.mark_non_differentiable(b)
        return a, b

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        seen.append(h)
        return g * 2

    x = leaf(1.0)
    a, b = made(forward, backward).apply(x)
    assert a.requires_grad
    assert not b.requires_grad
    a.backward()
    assert seen[0].tolist() == [0.0]


def test_integral_outputs_do_not_require_grad() -> None:
    _, b = made(lambda ctx, x: (x * 2, x.long()), lambda ctx, g, h: g * 2).apply(leaf(1.5))
    assert not b.requires_grad
    assert b.dtype == torch.int64


@pytest.mark.parametrize("materialize", [True, False])
def test_materialized_gradients(materialize: bool) -> None:
    seen = []

    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(materialize)
        return x * 2, x * 3

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        seen.append((g, h))
        return g

    a, _ = made(forward, backward).apply(leaf(1.0, 2.0))
    a.sum().backward()
    assert seen[0][0].tolist() == [1.0, 1.0]
    if materialize:
        assert seen[0][1].tolist() == [0.0, 0.0]
    else:
        assert seen[0][1] is None


def test_saved_values_are_checked_and_freed() -> None:
    x = leaf(1.0)
    middle = x.clone()
    y = Square.apply(middle)
    middle.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    z = Square.apply(x)
    z.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        z.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        _ = z.grad_fn.saved_tensors


def test_saved_none_and_output() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(None, y)
        return y

    def backward(ctx: Any, g: Any) -> Any:
        nothing, y = ctx.saved_tensors
        assert nothing is None
        return g * y

    x = leaf(0.0)
    y = made(forward, backward).apply(x)
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert (first.tolist(), second.tolist()) == ([1.0], [1.0])


def test_saving_what_is_no_tensor() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x, 3)
        return x.clone()

    with pytest.raises(TypeError, match="can only save variables, but argument 1"):
        made(forward, lambda ctx, g: g).apply(leaf(1.0))


@pytest.mark.parametrize(
    ("mark", "text"),
    [
        ("mark_dirty", "mark_dirty can only accept variables"),
        ("mark_non_differentiable", "mark_non_differentiable only accepts variable arguments"),
    ],
)
def test_marking_what_is_no_tensor(mark: str, text: str) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        getattr(ctx, mark)(3)
        return x.clone()

    with pytest.raises((TypeError, RuntimeError), match=text):
        made(forward, lambda ctx, g: g).apply(leaf(1.0))


def test_save_for_forward_takes_tensors() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_forward(3)
        return x.clone()

    with pytest.raises(AssertionError, match="expects all arguments to be tensors"):
        made(forward, lambda ctx, g: g).apply(leaf(1.0))


@pytest.mark.parametrize(
    ("result", "text", "error"),
    [
        (lambda g: (g, g), "incorrect number of gradients", RuntimeError),
        (lambda g: (), "incorrect number of gradients", RuntimeError),
        (lambda g: 3, "expected Variable or None", TypeError),
        (lambda g: torch.ones(5), "invalid gradient at index 0", RuntimeError),
    ],
)
def test_wrong_results_of_backward(result: Any, text: str, error: type[Exception]) -> None:
    x = leaf(1.0, 2.0)
    y = made(lambda ctx, x: x.clone(), lambda ctx, g: result(g)).apply(x)
    with pytest.raises((error, RuntimeError), match=text):
        y.sum().backward()
    assert x.grad is None


def test_gradient_for_what_is_no_tensor() -> None:
    y = made(lambda ctx, x, n: x.clone(), lambda ctx, g: (g, g)).apply(leaf(1.0), 3)
    with pytest.raises(RuntimeError, match="returned a gradient different than None at position 2"):
        y.backward()


def test_trailing_nones_are_dropped() -> None:
    x = leaf(1.0)
    made(lambda ctx, x: x.clone(), lambda ctx, g: (g, None, None)).apply(x).backward()
    assert x.grad.tolist() == [1.0]


def test_larger_gradients_are_summed() -> None:
    x = leaf(1.0)
    made(lambda ctx, x: x.expand(3).clone(), lambda ctx, g: g).apply(x).sum().backward()
    assert x.grad.tolist() == [3.0]


def test_no_gradient() -> None:
    x = leaf(1.0)
    made(lambda ctx, x: x.clone(), lambda ctx, g: None).apply(x).backward()
    assert x.grad is None


def test_missing_parts() -> None:
    class Empty(Function):
        pass

    with pytest.raises(NotImplementedError, match="You must implement the forward function"):
        Empty.apply(leaf(1.0))
    y = made(lambda ctx, x: x.clone()).apply(leaf(1.0))
    with pytest.raises(NotImplementedError, match="either the backward or vjp method"):
        y.backward()
    both = made(lambda ctx, x: x.clone(), lambda ctx, g: g, vjp=lambda ctx, g: g)
    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp'"):
        both.apply(leaf(1.0)).backward()


def test_vjp_is_a_name_for_backward() -> None:
    x = leaf(1.0)
    made(lambda ctx, x: x.clone(), vjp=lambda ctx, g: g * 7).apply(x).backward()
    assert x.grad.tolist() == [7.0]


def test_instances_are_of_the_past() -> None:
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        function = Square()
    with pytest.raises(RuntimeError, match="Legacy autograd function"):
        function(leaf(1.0))


def test_a_context_without_node() -> None:
    kept = []

    def forward(ctx: Any, x: Any) -> Any:
        kept.append(ctx)
        return x.clone()

    y = made(forward, lambda ctx, g: g).apply(leaf(1.0))
    assert kept[0].next_functions[0][0].name() == "torch::autograd::AccumulateGrad"
    del y
    with pytest.raises(RuntimeError, match="Attribute 'name' is invalid"):
        kept[0].name()
    with pytest.raises(RuntimeError, match="PyNode has already been deallocated"):
        _ = kept[0].metadata


def test_once_differentiable() -> None:
    class Once(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            assert not torch.is_grad_enabled()
            return ctx.saved_tensors[0] * 2 * g

    x = leaf(3.0)
    y = Once.apply(x)
    (plain,) = torch.autograd.grad(y, x, retain_graph=True)
    assert plain.tolist() == [6.0]
    start = leaf(1.0)
    (first,) = torch.autograd.grad(y, x, start, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice a function that was marked"):
        first.backward()


def test_errors_pass_unchanged() -> None:
    error = KeyError("mine")

    def fail(*args: Any) -> Any:
        raise error

    with pytest.raises(KeyError) as caught:
        made(fail).apply(leaf(1.0))
    assert caught.value is error
    with pytest.raises(KeyError) as caught:
        made(lambda ctx, x: x.clone(), fail).apply(leaf(1.0)).backward()
    assert caught.value is error
    assert torch.is_grad_enabled()


def test_wrong_number_of_parameters() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        made(lambda ctx, x, y: x).apply(leaf(1.0))
    y = made(lambda ctx, x: x.clone(), lambda ctx, g, h: g).apply(leaf(1.0))
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        y.backward()


def test_views_from_custom_functions_are_read_only() -> None:
    x = leaf(1.0, 2.0).clone()
    y = made(lambda ctx, x: x.view(2, 1), lambda ctx, g: g.view(2)).apply(x)
    with pytest.raises(RuntimeError, match="created inside a custom Function"):
        y.mul_(2)


def test_contexts_die_with_their_graph() -> None:
    gc.disable()
    try:
        x = leaf(1.0)
        y = Square.apply(x)
        context = weakref.ref(y.grad_fn)
        y.backward()
        del y
        assert context() is None
    finally:
        gc.enable()


def test_reentrant_backward() -> None:
    def backward(ctx: Any, g: Any) -> Any:
        with torch.enable_grad():
            inner = leaf(2.0)
            (inner * inner).backward()
        return g * inner.grad

    x = leaf(1.0)
    made(lambda ctx, x: x.clone(), backward).apply(x).backward()
    assert x.grad.tolist() == [4.0]


def test_hooks_on_the_node() -> None:
    x = leaf(1.0)
    y = Square.apply(x)
    order = []
    y.grad_fn.register_prehook(lambda grads: order.append("pre"))
    handle = y.grad_fn.register_hook(lambda grads, outs: order.append("gone"))
    y.grad_fn.register_hook(lambda gi, go: order.append((gi[0].item(), go[0].item())))
    handle.remove()
    y.backward()
    assert order == ["pre", (2.0, 1.0)]


def test_setup_context_sees_defaults_and_keywords() -> None:
    seen: list[Any] = []

    class Scale(Function):
        @staticmethod
        def forward(x: Any, factor: float = 3.0) -> Any:
            return x * factor

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            seen.append(inputs[1:])
            ctx.factor = inputs[1]

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.factor, None

    x = leaf(1.0, 2.0)
    for y in (Scale.apply(x), Scale.apply(x, 4.0), Scale.apply(x, factor=5.0)):
        y.sum().backward()
    assert seen == [(3.0,), (4.0,), (5.0,)]
    assert x.grad.tolist() == [12, 12]


def test_what_the_context_says_of_its_inputs_can_be_replaced() -> None:
    needs: list[Any] = []

    class First(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, n: int, y: Any) -> Any:
            needs.append(ctx.needs_input_grad)
            return x * n

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            needs.append(ctx.needs_input_grad)
            return grad * 2, None, None, None

    First.apply(leaf(1.0), 2, torch.zeros(1)).sum().backward()
    assert needs == [(True, False, False)] * 2
    with pytest.raises(TypeError, match="no keyword arguments"):
        First.apply(leaf(1.0), n=2)


# --- apply, and the life of contexts -------------------------------------------------------------


def doubling() -> Any:
    """A function class that doubles."""
    return made(lambda ctx, x: x * 2, lambda ctx, grad: grad * 2)


def test_apply_sees_changes_of_the_class() -> None:
    Base = doubling()
    Derived = type(Function)("Derived", (Base,), {})
    x, apply = leaf(1.0), Derived.apply
    assert apply(x).item() == 2
    Base.forward = staticmethod(lambda ctx, x: x * 3)
    assert apply(x).item() == Derived.apply(x).item() == 3
    Derived.forward = staticmethod(lambda ctx, x: x * 4)
    assert apply(x).item() == 4
    assert Base.apply(x).item() == 3
    del Derived.forward
    assert apply(x).item() == 3
    Derived.setup_context = staticmethod(lambda ctx, inputs, output: None)
    assert apply(x).item() == 3


def test_a_call_may_change_its_own_class() -> None:
    class Once(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            Once.forward = staticmethod(lambda ctx, x: x + 1)
            gc.collect()
            return Once.apply(x) * 10

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

    assert Once.apply(leaf(1.0)).item() == 20
    assert Once.apply(leaf(1.0)).item() == 2


def test_what_apply_is() -> None:
    assert Square.apply.__self__ is Square
    assert Square.apply.__name__ == "apply"
    assert repr(Square.apply) == f"<bound method Function.apply of {Square!r}>"
    assert pickle.loads(pickle.dumps(Square.apply)) is Square.apply
    assert copy.deepcopy(Square.apply) is Square.apply
    with pytest.raises(TypeError):
        torch._C._FunctionApply(3)

    class Holder:
        square = Square.apply

    assert Holder().square(leaf(3.0)).item() == 9
    assert [y.item() for y in map(Square.apply, (leaf(1.0), leaf(2.0)))] == [1, 4]


@pytest.mark.parametrize("bases", ["direct", "further", "mixin"])
def test_overridden_apply_reaches_the_right_class(bases: str) -> None:
    Middle = doubling()

    class Over:
        @classmethod
        def apply(cls, *args: Any) -> Any:
            return super().apply(*args) + 100

    x = leaf(1.0)
    assert Middle.apply(x).item() == 2
    own = {"forward": staticmethod(lambda ctx, x: x * 5)}
    if bases == "mixin":
        cls = type(Function)("Cls", (Over, Middle), own)
    else:
        base = Function if bases == "direct" else Middle
        cls = type(Function)("Cls", (base,), {})

        def apply(cls_: Any, *args: Any) -> Any:
            return super(cls, cls_).apply(*args) + 100

        cls = type(Function)("Cls", (base,), {**own, "apply": classmethod(apply)})
    assert cls.apply(x).item() == 105
    assert Middle.apply(x).item() == 2
    further = type(Function)("Further", (cls,), {"forward": staticmethod(lambda ctx, x: x * 7)})
    assert further.apply(x).item() == 107


@pytest.mark.parametrize("how", ["list", "weakref"])
def test_a_context_kept_from_forward_finds_its_node(how: str) -> None:
    kept: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        kept.append(ctx if how == "list" else weakref.ref(ctx))
        ctx.save_for_backward(x, None)
        return x * 2

    x = leaf(3.0)
    y = made(forward, lambda ctx, grad: grad * 2).apply(x)
    ctx = kept[0] if how == "list" else kept[0]()
    assert ctx.saved_tensors[0] is x
    assert ctx.saved_tensors[1] is None
    assert ctx.name() == "MadeBackward"
    assert ctx.next_functions[0][0].variable is x
    assert ctx is y.grad_fn
    ctx.extra = y  # A cycle that only the collector can break.
    gone = weakref.ref(ctx)
    kept.clear()
    del ctx, y
    gc.collect()
    assert gone() is None


def test_memory_of_contexts_is_used_again_clean() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        assert vars(ctx) == {}
        assert ctx.saved_tensors == ()
        assert ctx.to_save is None
        assert ctx.materialize_grads
        ctx.note = x.item()
        ctx.save_for_backward(x)
        ctx.set_materialize_grads(False)
        return x * 1

    cls = made(forward, lambda ctx, grad: grad * ctx.note)
    outputs = []
    for round in range(3):
        x = leaf(round + 1.0)
        outputs = [cls.apply(x) for _ in range(700)]
        outputs[-1].backward()
        assert x.grad.item() == round + 1
    failing = made(lambda ctx, x: 1 / 0)
    for _ in range(20):
        with pytest.raises(ZeroDivisionError):
            failing.apply(leaf(1.0))
    outputs.clear()


def test_other_classes_of_contexts_live_too() -> None:
    class Special(Square._backward_cls):
        def __del__(self) -> None:
            died.append(self.what)

    died: list[str] = []
    special = Special()
    special.what = "special"
    gone = weakref.ref(special)
    special.me = special
    del special
    gc.collect()
    assert died == ["special"]
    assert gone() is None
    refs = sys.getrefcount(Special)
    for _ in range(50):
        Special().what = "again"
    assert sys.getrefcount(Special) <= refs + 1
    with pytest.raises(TypeError):
        torch._C._adopt_context_class(int)


def test_what_apply_forgets_may_call_it() -> None:
    cls = doubling()
    x = leaf(1.0)

    class Last:
        def __call__(self, ctx: Any, x: Any) -> Any:
            return x * 3

        def __del__(self) -> None:
            cls.forward = staticmethod(lambda ctx, x: x * 4)
            seen.append(cls.apply(x).item())

    seen: list[float] = []
    cls.forward = Last()
    assert cls.apply(x).item() == 3
    cls.forward = staticmethod(lambda ctx, x: x * 5)
    # The object that the class let go was kept by its apply, which lets it go when it looks again.
    assert cls.apply(x).item() == 5
    assert seen == [4]
    assert cls.apply(x).item() == 4
