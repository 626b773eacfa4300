"""Calls of modules: hooks of every kind, and the ways in which a call can be changed."""

import copy
import warnings
from collections import OrderedDict

import pytest

import pullback
from pullback import nn


class Scale(nn.Module):
    """One parameter, one persistent and one passing buffer, one plain attribute."""

    def __init__(self, factor: float = 2.0) -> None:
        super().__init__()
        self.factor = nn.Parameter(pullback.full((3,), factor))
        self.register_buffer("seen", pullback.zeros(()))
        self.register_buffer("scratch", pullback.zeros(2), persistent=False)
        self.label = "scale"

    def forward(self, x, *, shift=0.0):
        return x * self.factor + shift


def test_forward_hooks_run_in_order_and_may_replace():
    m = Scale()
    log = []
    m.register_forward_pre_hook(lambda mod, args: log.append("pre"))
    m.register_forward_pre_hook(lambda mod, args: args[0] + 1, prepend=True)
    m.register_forward_hook(lambda mod, args, out: log.append(args[0].tolist()))
    handle = m.register_forward_hook(lambda mod, args, out: out * 10)
    assert m(pullback.zeros(3)).tolist() == [20.0, 20.0, 20.0]
    assert log == ["pre", [1.0, 1.0, 1.0]]
    handle.remove()
    handle.remove()
    assert m(pullback.zeros(3)).tolist() == [2.0, 2.0, 2.0]


def test_prepended_forward_hook_runs_first():
    m = nn.Identity()
    m.register_forward_hook(lambda mod, args, out: out + "a")
    m.register_forward_hook(lambda mod, args, out: out + "b", prepend=True)
    assert m("") == "ba"


def test_hooks_with_keywords():
    m = Scale()
    m.register_forward_pre_hook(
        lambda mod, args, kwargs: (args, {"shift": kwargs["shift"] + 1}), with_kwargs=True
    )
    seen = []
    m.register_forward_hook(
        lambda mod, args, kwargs, out: seen.append(dict(kwargs)), with_kwargs=True
    )
    assert m(pullback.zeros(3), shift=1.0).tolist() == [2.0, 2.0, 2.0]
    assert seen == [{"shift": 2.0}]
    m.register_forward_pre_hook(lambda mod, args, kwargs: args, with_kwargs=True)
    with pytest.raises(RuntimeError, match=r"forward pre-hook must return None or a tuple"):
        m(pullback.zeros(3), shift=1.0)


def test_handles_are_context_managers():
    m = nn.Identity()
    with m.register_forward_hook(lambda mod, args, out: out + 1):
        assert m(1) == 2
    assert m(1) == 1


def test_a_hook_may_remove_itself():
    m = nn.Identity()
    handles = []

    def once(mod, args, out):
        handles[0].remove()
        return out + 1

    handles.append(m.register_forward_hook(once))
    assert m(1) == 2
    assert m(1) == 1


def test_hooks_put_directly_into_the_dictionaries_run():
    m, other = nn.Identity(), nn.Identity()
    m._forward_hooks[7] = lambda mod, args, out: out + 1
    assert m(1) == 2
    m._forward_hooks.clear()
    assert m(1) == 1
    m._forward_hooks = OrderedDict({3: lambda mod, args, out: out + 2})
    assert m(1) == 3
    assert other(1) == 1


def test_always_called_hooks_run_after_errors():
    class Failing(nn.Module):
        def forward(self, x):
            raise KeyError(x)

    m = Failing()
    seen = []
    m.register_forward_hook(lambda mod, args, out: seen.append(out), always_call=True)
    m.register_forward_hook(lambda mod, args, out: seen.append("not"))
    with pytest.raises(KeyError):
        m("x")
    assert seen == [None]

    def broken(mod, args, out):
        raise ValueError("later")

    m.register_forward_hook(broken, always_call=True)
    with pytest.warns(UserWarning, match=r"was silenced"), pytest.raises(KeyError):
        m("x")


def test_always_called_hooks_run_once():
    m = nn.Identity()
    seen = []
    m.register_forward_hook(lambda mod, args, out: seen.append(out), always_call=True)

    def broken(mod, args, out):
        raise ValueError("stop")

    m.register_forward_hook(broken)
    with pytest.raises(ValueError, match=r"stop"):
        m(1)
    assert seen == [1]


def test_full_backward_hook_sees_and_changes_gradients():
    m = Scale(3.0)
    seen = []

    def hook(mod, grad_input, grad_output):
        seen.append(([g.tolist() for g in grad_input], [g.tolist() for g in grad_output]))
        return (grad_input[0] * 2,)

    m.register_full_backward_hook(hook)
    x = pullback.ones(3, requires_grad=True)
    m(x).sum().backward()
    assert seen == [([[3.0, 3.0, 3.0]], [[1.0, 1.0, 1.0]])]
    assert x.grad.tolist() == [6.0, 6.0, 6.0]
    assert m.factor.grad.tolist() == [1.0, 1.0, 1.0]


def test_full_backward_pre_hook_changes_grad_output():
    m = Scale(3.0)
    m.register_full_backward_pre_hook(lambda mod, grads: (grads[0] * 5,))
    m.register_full_backward_pre_hook(lambda mod, grads: (grads[0] + 1,), prepend=True)
    x = pullback.ones(3, requires_grad=True)
    m(x).sum().backward()
    assert x.grad.tolist() == [30.0, 30.0, 30.0]
    assert m.factor.grad.tolist() == [10.0, 10.0, 10.0]


def test_full_backward_hook_places_none_for_what_is_no_tensor():
    class Mixed(nn.Module):
        def forward(self, a, flag, b):
            return a * 2, "text", b * 3

    m = Mixed()
    seen = []
    m.register_full_backward_hook(
        lambda mod, gi, go: seen.append(([g is None for g in gi], [g is None for g in go]))
    )
    a = pullback.ones(2, requires_grad=True)
    b = pullback.ones(2, requires_grad=True)
    u, _, v = m(a, True, b)
    (u + v).sum().backward()
    assert seen == [([False, True, False], [False, True, False])]


def test_full_backward_hook_without_differentiable_input_warns_and_fires():
    m = Scale()
    seen = []
    m.register_full_backward_hook(lambda mod, gi, go: seen.append((gi, go[0].tolist())))
    out = m(pullback.ones(3))
    with pytest.warns(UserWarning, match=r"Full backward hook is firing"):
        out.sum().backward()
    assert seen == [((None,), [1.0, 1.0, 1.0])]


def test_wrong_number_of_gradients_is_an_error():
    m = Scale()
    m.register_full_backward_hook(lambda mod, gi, go: (gi[0], gi[0]))
    x = pullback.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"invalid number of grad_input, got 2, but expected 1"):
        m(x).sum().backward()
    m = Scale()
    m.register_full_backward_pre_hook(lambda mod, go: ())
    with pytest.raises(RuntimeError, match=r"invalid number of grad_output, got 0, but expected 1"):
        m(x).sum().backward()


def test_kinds_of_backward_hooks_do_not_mix():
    m = Scale()
    m.register_full_backward_hook(lambda *a: None)
    with pytest.raises(RuntimeError, match=r"Cannot use both regular backward hooks and full"):
        m.register_backward_hook(lambda *a: None)


def test_backward_hooks_do_nothing_without_grad_mode():
    m = Scale()
    m.register_full_backward_hook(lambda *a: pytest.fail("must not run"))
    with pullback.no_grad():
        assert m(pullback.ones(3)).grad_fn is None


def test_partial_backward_hook_is_told_of_the_node():
    m = Scale(3.0)
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m.register_backward_hook(lambda mod, gi, go: seen.append((mod is m, go[0].tolist())))
        m(pullback.ones(3, requires_grad=True)).sum().backward()
    assert seen == [(True, [1.0, 1.0, 1.0])]


def test_global_hooks_see_every_module():
    from pullback.nn.modules.module import (
        register_module_forward_hook,
        register_module_forward_pre_hook,
        register_module_full_backward_hook,
    )

    log = []
    handles = [
        register_module_forward_pre_hook(lambda mod, args: log.append("pre " + type(mod).__name__)),
        register_module_forward_hook(lambda mod, args, out: log.append("post")),
        register_module_full_backward_hook(lambda mod, gi, go: log.append("back")),
    ]
    try:
        x = pullback.ones(3, requires_grad=True)
        nn.Sequential(Scale())(x).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    assert log == ["pre Sequential", "pre Scale", "post", "post", "back", "back"]
    Scale()(pullback.ones(3))
    assert len(log) == 6


def test_global_registration_hooks_may_replace():
    from pullback.nn.modules.module import (
        register_module_buffer_registration_hook,
        register_module_module_registration_hook,
        register_module_parameter_registration_hook,
    )

    log = []
    handles = [
        register_module_parameter_registration_hook(lambda mod, name, p: log.append(name)),
        register_module_buffer_registration_hook(lambda mod, name, b: pullback.ones(1)),
        register_module_module_registration_hook(lambda mod, name, m: nn.Identity()),
    ]
    try:
        m = nn.Module()
        m.p = nn.Parameter(pullback.ones(1))
        m.register_buffer("b", pullback.zeros(1))
        m.child = Scale()
    finally:
        for handle in handles:
            handle.remove()
    assert log[0] == "p"
    assert m.b.item() == 1.0
    assert isinstance(m.child, nn.Identity)


def test_forward_can_be_replaced_on_the_instance():
    m = nn.Identity()
    m.forward = lambda x: x + 1
    assert m(1) == 2
    assert nn.Module.__call__(m, 1) == 2


def test_call_can_be_overridden_and_extended():
    class Twice(nn.Identity):
        def __call__(self, x):
            return super().__call__(x) * 2

    assert Twice()(3) == 6


def test_calls_can_be_wrapped_replaced_and_reached_by_every_name(monkeypatch) -> None:
    layer = Scale()
    x = pullback.ones(3)
    expected = layer(x).tolist()
    assert nn.Module.__call__(layer, x).tolist() == expected
    assert layer.__call__(x).tolist() == expected
    assert layer._call_impl(x).tolist() == expected
    calls = []
    original = nn.Module.__call__

    def wrapped(self, *args, **kwargs):
        calls.append(self)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(nn.Module, "__call__", wrapped)
    assert layer(x).tolist() == expected
    assert calls == [layer]
    monkeypatch.undo()
    layer.forward = lambda input, *, shift=0: input + shift
    assert layer(x, shift=2).tolist() == [3, 3, 3]


def test_hooks_added_while_a_call_runs_wait_for_the_next() -> None:
    layer, seen = nn.Identity(), []

    def second(module, args, output):
        seen.append("second")

    def first(module, args, output):
        seen.append("first")
        layer.register_forward_hook(second)
        return output + 1

    handle = layer.register_forward_hook(first)
    assert layer(pullback.zeros(1)).tolist() == [1]
    handle.remove()
    assert seen == ["first"]
    layer(pullback.zeros(1))
    assert seen == ["first", "second"]


def test_a_module_can_have_other_bases_beside_it() -> None:
    class Named(nn.Module, dict):
        def forward(self, key):
            return self[key]

    module = Named()
    module["a"] = 1
    assert module("a") == 1
    assert copy.deepcopy(module)("a") == 1


def test_members_are_found_by_name_and_through_super() -> None:
    class Careful(Scale):
        def __getattr__(self, name):
            return "made up" if name == "other" else super().__getattr__(name)

    layer = Careful()
    layer.inner = nn.Identity()
    assert layer.factor is layer._parameters["factor"]
    assert layer.inner is layer._modules["inner"]
    assert layer.seen is layer._buffers["seen"]
    assert layer.other == "made up"
    with pytest.raises(AttributeError, match="'Scale' object has no attribute 'other'"):
        _ = Scale().other
    with pytest.raises(AttributeError, match="'Identity' object has no attribute 'weight'"):
        _ = nn.Identity.__new__(nn.Identity).weight


def test_class_attributes_properties_and_later_changes_go_before_members(monkeypatch) -> None:
    class Odd(Scale):
        @property
        def failing(self):
            raise AttributeError("inside")

    layer = Odd()
    Odd.seen = "class"
    assert layer.seen == "class"
    with pytest.raises(AttributeError, match="no attribute 'failing'"):
        _ = layer.failing
    layer._parameters["failing"] = layer.factor
    assert layer.failing is layer.factor
    layer.__dict__["factor"] = "instance"
    assert layer.factor == "instance"
    monkeypatch.setattr(Scale, "__getattr__", lambda self, name: name.upper(), raising=False)
    assert layer.scratch == "SCRATCH"
    monkeypatch.undo()
    assert layer.scratch is layer._buffers["scratch"]

    class Own(Scale):
        def __getattribute__(self, name):
            return "own" if name == "special" else super().__getattribute__(name)

    assert Own().special == "own"
    assert Own().factor.shape == (3,)


def test_hooks_of_all_modules_under_the_names_of_pytorch():
    space = nn.modules.module
    seen = []
    handle = space.register_module_forward_hook(lambda module, args, out: seen.append(module))
    assert handle.id in space._global_forward_hooks
    assert space._has_any_global_hook()
    layer = nn.Sigmoid()
    layer(pullback.ones(1))
    space._global_forward_hooks = OrderedDict()
    layer(pullback.ones(1))
    assert seen == [layer]
    assert not space._has_any_global_hook()


def test_signatures_of_modules_and_of_their_classes():
    import inspect

    assert str(inspect.signature(nn.ReLU())) == "(*args: 'Any', **kwargs: 'Any') -> 'Any'"
    assert list(inspect.signature(nn.ReLU).parameters) == ["inplace"]
    assert list(inspect.signature(nn.Linear).parameters)[:2] == ["in_features", "out_features"]
