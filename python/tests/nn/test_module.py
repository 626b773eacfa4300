"""``nn.Module``: registration, saving, hooks, conversions, printing, pickling; and containers."""

# tidy: long because it follows one class from end to end.
import copy
import gc
import pickle
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


class Nest(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Scale()
        self.linear = nn.Linear(3, 2)

    def forward(self, x):
        return self.linear(self.inner(x))


def names(pairs):
    return [name for name, _ in pairs]


# ---- registration ----


def test_attributes_go_to_the_dictionary_of_their_kind():
    m = Nest()
    assert names(m.named_parameters()) == ["inner.factor", "linear.weight", "linear.bias"]
    assert names(m.named_buffers()) == ["inner.seen", "inner.scratch"]
    assert names(m.named_children()) == ["inner", "linear"]
    assert names(m.named_modules()) == ["", "inner", "linear"]
    assert "factor" not in vars(m.inner)
    assert vars(m.inner)["label"] == "scale"


def test_names_carry_the_prefix():
    m = Scale()
    assert names(m.named_parameters(prefix="a")) == ["a.factor"]
    assert names(m.named_modules(prefix="a")) == ["a"]


def test_shared_members_are_yielded_once_unless_asked():
    m = nn.Module()
    m.first = nn.Linear(2, 2)
    m.second = m.first
    m.bias = m.first.bias
    assert names(m.named_parameters()) == ["bias", "first.weight"]
    assert len(list(m.named_parameters(remove_duplicate=False))) == 5
    assert names(m.named_modules(remove_duplicate=False)) == ["", "first", "second"]
    assert names(m.named_children()) == ["first"]


def test_recursion_can_be_switched_off():
    m = Nest()
    assert list(m.parameters(recurse=False)) == []
    assert list(m.buffers(recurse=False)) == []


def test_a_name_means_one_thing_at_a_time():
    m = nn.Module()
    m.thing = 3
    m.thing = nn.Parameter(pullback.ones(1))
    assert "thing" not in vars(m)
    assert names(m.named_parameters()) == ["thing"]
    with pytest.raises(TypeError, match=r"as parameter 'thing'"):
        m.thing = nn.Identity()
    m.other = 4
    m.other = nn.Identity()
    assert "other" not in vars(m)
    assert names(m.named_children()) == ["other"]
    m.other = nn.Parameter(pullback.ones(1))
    assert names(m.named_children()) == []
    del m.thing
    assert not hasattr(m, "thing")


def test_parameter_name_takes_parameters_and_none_only():
    m = Scale()
    with pytest.raises(TypeError, match=r"cannot assign 'int' as parameter 'factor'"):
        m.factor = 3
    with pytest.raises(TypeError, match=r"as parameter 'factor' \(torch.nn.Parameter or None"):
        m.factor = pullback.ones(3)
    m.factor = None
    assert m.factor is None
    assert list(m.parameters()) == []
    m.factor = nn.Parameter(pullback.ones(3))
    assert names(m.named_parameters()) == ["factor"]


def test_module_and_buffer_names_refuse_other_values():
    m = Nest()
    with pytest.raises(TypeError, match=r"as child module 'inner' \(torch.nn.Module or None"):
        m.inner = 1
    m.inner = None
    assert m.inner is None
    s = Scale()
    with pytest.raises(TypeError, match=r"as buffer 'seen'"):
        s.seen = 1
    s.seen = pullback.ones(())
    assert names(s.named_buffers()) == ["seen", "scratch"]


@pytest.mark.parametrize(
    ("register", "value", "kind"),
    [
        ("register_parameter", None, "parameter"),
        ("register_buffer", None, "buffer"),
        ("add_module", None, "module"),
    ],
)
def test_names_are_checked(register, value, kind):
    m = nn.Module()
    with pytest.raises(KeyError, match=r"can.+t contain"):
        getattr(m, register)("a.b", value)
    with pytest.raises(KeyError, match=r"can.+t be empty string"):
        getattr(m, register)("", value)
    with pytest.raises(TypeError, match=f"{kind} name should be a string. Got int"):
        getattr(m, register)(3, value)
    with pytest.raises(KeyError, match=r"attribute 'forward' already exists"):
        getattr(m, register)("forward", value)


def test_values_are_checked():
    m = nn.Module()
    with pytest.raises(TypeError, match=r"cannot assign 'int' object to parameter 'a'"):
        m.register_parameter("a", 1)
    with pytest.raises(TypeError, match=r"cannot assign 'int' object to buffer 'a'"):
        m.register_buffer("a", 1)
    with pytest.raises(TypeError, match=r"int is not a Module subclass"):
        m.add_module("a", 1)
    made = (nn.Parameter(pullback.ones(2)) * 2).as_subclass(nn.Parameter)
    with pytest.raises(ValueError, match=r"Cannot assign non-leaf Tensor to parameter 'a'"):
        m.register_parameter("a", made)


def test_assignment_before_init_is_an_error():
    class Early(nn.Module):
        def __init__(self, value):
            self.value = value

    with pytest.raises(AttributeError, match=r"cannot assign parameters before Module.__init__"):
        Early(nn.Parameter(pullback.ones(1)))
    with pytest.raises(AttributeError, match=r"cannot assign module before Module.__init__"):
        Early(nn.Identity())


def test_unknown_attribute_is_named_with_the_class():
    with pytest.raises(AttributeError, match=r"'Scale' object has no attribute 'nothing'"):
        _ = Scale().nothing
    with pytest.raises(AttributeError):
        del Scale().nothing


def test_init_takes_no_arguments_unless_asked():
    class Plain(nn.Module):
        pass

    with pytest.raises(TypeError, match=r"Plain.__init__\(\) takes 1 positional argument but 2"):
        Plain(1)
    with pytest.raises(TypeError, match=r"got an unexpected keyword argument 'a'"):
        Plain(a=1)

    class Mixin:
        def __init__(self, value):
            self.value = value

    class Both(nn.Module, Mixin):
        call_super_init = True

    assert Both(5).value == 5


def test_missing_forward_is_not_implemented():
    with pytest.raises(NotImplementedError, match=r"Module \[Module\] is missing the required"):
        nn.Module()(1)


def test_buffer_class_registers_itself():
    m = nn.Module()
    m.kept = nn.Buffer(pullback.ones(2))
    m.passing = nn.Buffer(pullback.ones(2), persistent=False)
    assert isinstance(m.kept, nn.Buffer)
    assert not isinstance(pullback.ones(1), nn.Buffer)
    assert names(m.named_buffers()) == ["kept", "passing"]
    assert list(m.state_dict()) == ["kept"]


def test_dir_lists_members_but_no_digits():
    m = nn.Sequential(nn.Linear(1, 1))
    m.extra = nn.Parameter(pullback.ones(1))
    assert "extra" in dir(m)
    assert "0" not in dir(m)
    assert "inner" in dir(Nest())


# ---- parameters ----


def test_parameter_shares_memory_and_requires_grad():
    data = pullback.ones(2)
    p = nn.Parameter(data)
    assert p.requires_grad
    assert p.is_leaf
    assert p.data_ptr() == data.data_ptr()
    assert not nn.Parameter(data, requires_grad=False).requires_grad
    assert nn.Parameter().numel() == 0
    assert repr(p) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"


def test_results_of_operations_are_plain_tensors():
    p = nn.Parameter(pullback.ones(2))
    assert type(p) is nn.Parameter
    assert type(p + 1) is pullback.Tensor
    assert type(p.detach()) is pullback.Tensor
    assert not isinstance(p * 2, nn.Parameter)


def test_parameter_survives_copy_and_pickle():
    p = nn.Parameter(pullback.arange(3.0), requires_grad=False)
    for q in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert type(q) is nn.Parameter
        assert not q.requires_grad
        assert q.tolist() == [0.0, 1.0, 2.0]
        assert q.data_ptr() != p.data_ptr()


# ---- paths ----


def test_members_are_found_by_dotted_names():
    m = Nest()
    assert m.get_submodule("") is m
    assert m.get_submodule("inner") is m.inner
    assert m.get_parameter("linear.bias") is m.linear.bias
    assert m.get_buffer("inner.seen") is m.inner.seen
    with pytest.raises(AttributeError, match=r"Nest has no attribute `other`"):
        m.get_submodule("other.deep")
    with pytest.raises(AttributeError, match=r"`label` is not an nn.Module"):
        m.get_submodule("inner.label")
    with pytest.raises(AttributeError, match=r"`seen` is not an nn.Parameter"):
        m.get_parameter("inner.seen")
    with pytest.raises(AttributeError, match=r"`factor` is not a buffer"):
        m.get_buffer("inner.factor")
    with pytest.raises(AttributeError, match=r"Scale has no attribute `none`"):
        m.get_buffer("inner.none")


def test_submodules_can_be_replaced_by_dotted_names():
    m = nn.Sequential(Nest())
    new = nn.Linear(3, 5)
    m.set_submodule("0.linear", new)
    assert m[0].linear is new
    m.set_submodule("0.more", nn.Identity())
    assert isinstance(m[0].more, nn.Identity)
    with pytest.raises(AttributeError, match=r"has no attribute `absent`"):
        m.set_submodule("0.absent", new, strict=True)
    with pytest.raises(ValueError, match=r"without a target name"):
        m.set_submodule("", new)
    with pytest.raises(ValueError, match=r"is not an nn.Module, found"):
        m.set_submodule("0.linear", 3)
    with pytest.raises(AttributeError, match=r"`factor` is not an nn.Module"):
        m.set_submodule("0.inner.factor", new)


# ---- modes and conversions ----


def test_training_mode_reaches_all_submodules():
    m = nn.Sequential(Nest())
    assert m.eval() is m
    assert not any(module.training for module in m.modules())
    m.train()
    assert all(module.training for module in m.modules())
    with pytest.raises(ValueError, match=r"training mode is expected to be boolean"):
        m.train(1)


def test_apply_visits_children_first():
    seen = []
    m = Nest()
    assert m.apply(lambda module: seen.append(type(module).__name__)) is m
    assert seen == ["Scale", "Linear", "Nest"]


def test_conversion_keeps_the_parameters_identity():
    m = Scale()
    m.register_buffer("count", pullback.zeros((), dtype=pullback.int64))
    before = m.factor
    m.factor.grad = pullback.ones(3)
    assert m.double() is m
    assert m.factor is before
    assert m.factor.dtype == pullback.float64
    assert m.factor.grad.dtype == pullback.float64
    assert m.factor.is_leaf
    assert m.seen.dtype == pullback.float64
    assert m.count.dtype == pullback.int64
    assert m.half().factor.dtype == pullback.float16
    assert m.bfloat16().factor.dtype == pullback.bfloat16
    assert m.float().factor.dtype == pullback.float32
    assert m.to(pullback.float64).factor.dtype == pullback.float64
    assert m.to("cpu", dtype=pullback.float32).factor.dtype == pullback.float32
    assert m.to(pullback.ones(1, dtype=pullback.float64)).factor.dtype == pullback.float64
    assert m.cpu().factor.device.type == "cpu"


def test_only_floating_dtypes_are_accepted():
    with pytest.raises(TypeError, match=r"nn.Module.to only accepts floating point or complex"):
        Scale().to(pullback.int64)


def test_requires_grad_and_zero_grad():
    m = Nest()
    assert m.requires_grad_(False) is m
    assert not any(p.requires_grad for p in m.parameters())
    m.requires_grad_()
    m(pullback.ones(1, 3)).sum().backward()
    kept = m.linear.bias.grad
    m.zero_grad(set_to_none=False)
    assert m.linear.bias.grad is kept
    assert kept.tolist() == [0.0, 0.0]
    m.zero_grad()
    assert all(p.grad is None for p in m.parameters())


# ---- state dict ----


def test_state_dict_is_flat_detached_and_shares_memory():
    m = Nest()
    state = m.state_dict()
    assert isinstance(state, OrderedDict)
    assert list(state) == ["inner.factor", "inner.seen", "linear.weight", "linear.bias"]
    assert not state["inner.factor"].requires_grad
    state["inner.factor"].zero_()
    assert m.inner.factor.tolist() == [0.0, 0.0, 0.0]
    assert m.state_dict(keep_vars=True)["linear.bias"] is m.linear.bias
    assert list(state._metadata) == ["", "inner", "linear"]
    assert state._metadata["linear"] == {"version": 1}
    filled = OrderedDict()
    assert m.inner.state_dict(destination=filled, prefix="p.") is filled
    assert list(filled) == ["p.factor", "p.seen"]


def test_positional_arguments_of_state_dict_warn():
    with pytest.warns(FutureWarning, match=r"Positional args are being deprecated"):
        state = Scale().state_dict(OrderedDict(), "x.")
    assert list(state) == ["x.factor", "x.seen"]


def test_loading_copies_values_into_place():
    source, target = Nest(), Nest()
    pointer = target.linear.weight.data_ptr()
    result = target.load_state_dict(source.state_dict())
    assert repr(result) == "<All keys matched successfully>"
    assert target.linear.weight.tolist() == source.linear.weight.tolist()
    assert target.linear.weight.data_ptr() == pointer


def test_loading_with_assign_takes_the_tensors_themselves():
    source, target = Nest(), Nest().requires_grad_(False)
    state = source.state_dict()
    target.load_state_dict(state, assign=True)
    assert target.linear.weight.data_ptr() == source.linear.weight.data_ptr()
    assert isinstance(target.linear.weight, nn.Parameter)
    assert not target.linear.weight.requires_grad
    assert target.inner.seen is state["inner.seen"]


def test_strict_loading_lists_all_problems():
    m = Nest()
    state = m.state_dict()
    del state["inner.factor"]
    state["linear.extra"] = pullback.ones(1)
    state["other.deep"] = pullback.ones(1)
    state["linear.bias"] = pullback.ones(7)
    with pytest.raises(RuntimeError) as caught:
        m.load_state_dict(state)
    assert str(caught.value).split("\n\t") == [
        "Error(s) in loading state_dict for Nest:",
        'Missing key(s) in state_dict: "inner.factor". ',
        'Unexpected key(s) in state_dict: "other.deep", "linear.extra". ',
        "size mismatch for linear.bias: copying a param with shape torch.Size([7]) from "
        "checkpoint, the shape in current model is torch.Size([2]).",
    ]


def test_lenient_loading_reports_keys():
    m = Nest()
    state = m.state_dict()
    del state["inner.factor"]
    state["surplus"] = pullback.ones(1)
    result = m.load_state_dict(state, strict=False)
    assert result.missing_keys == ["inner.factor"]
    assert result.unexpected_keys == ["surplus"]
    assert result == (["inner.factor"], ["surplus"])
    assert repr(result) == (
        "_IncompatibleKeys(missing_keys=['inner.factor'], unexpected_keys=['surplus'])"
    )


def test_loading_refuses_what_is_no_dictionary_or_tensor():
    with pytest.raises(TypeError, match=r"Expected state_dict to be dict-like, got <class 'list'>"):
        Scale().load_state_dict([])
    with pytest.raises(RuntimeError, match=r"expected torch.Tensor or Tensor-like object"):
        Scale().load_state_dict({"factor": 3, "seen": pullback.ones(())})


def test_scalars_load_from_tensors_of_one_element():
    m = Scale()
    m.load_state_dict({"factor": pullback.ones(3), "seen": pullback.tensor([4.0])})
    assert m.seen.item() == 4.0


def test_extra_state_is_saved_and_restored():
    class Extra(nn.Module):
        extra = 1

        def get_extra_state(self):
            return {"extra": self.extra}

        def set_extra_state(self, state):
            self.extra = state["extra"]

    source, target = nn.Sequential(Extra()), nn.Sequential(Extra())
    source[0].extra = 7
    state = source.state_dict()
    assert list(state) == ["0._extra_state"]
    target.load_state_dict(state)
    assert target[0].extra == 7
    with pytest.raises(RuntimeError, match=r'Missing key.*"0._extra_state"'):
        target.load_state_dict({})
    with pytest.raises(RuntimeError, match=r'Unexpected key.*"_extra_state"'):
        nn.Identity().load_state_dict({"_extra_state": 1})


def test_state_dict_hooks():
    m = Scale()
    calls = []
    before = m.register_state_dict_pre_hook(lambda mod, prefix, keep: calls.append((prefix, keep)))

    def after(mod, state, prefix, metadata):
        state[prefix + "stamp"] = metadata["version"]

    m.register_state_dict_post_hook(after)
    state = m.state_dict(prefix="p.")
    assert calls == [("p.", False)]
    assert state["p.stamp"] == 1
    before.remove()
    m.state_dict()
    assert len(calls) == 1
    m.register_state_dict_post_hook(lambda *a: {})
    with pytest.raises(RuntimeError, match=r"state_dict post-hook must return None"):
        m.state_dict()
    with pytest.raises(RuntimeError, match=r"Cannot register the same function"):
        m._register_state_dict_hook(after)
    other = Scale()
    other._register_state_dict_hook(lambda mod, state, prefix, metadata: {"all": state})
    assert list(other.state_dict()) == ["all"]


def test_load_hooks():
    m = Nest()
    state = m.state_dict()
    state["inner.old"] = state.pop("inner.factor")

    def rename(module, entries, prefix, *rest):
        entries[prefix + "factor"] = entries.pop(prefix + "old")
        assert module is m.inner

    m.inner.register_load_state_dict_pre_hook(rename)
    seen = []
    m.register_load_state_dict_post_hook(lambda module, keys: seen.append(keys.missing_keys))
    assert m.load_state_dict(state).missing_keys == []
    assert seen == [[]]

    def forgive(module, keys):
        keys.missing_keys.clear()

    m = Scale()
    m.register_load_state_dict_post_hook(forgive)
    m.load_state_dict({})
    m.register_load_state_dict_post_hook(lambda module, keys: keys)
    with pytest.raises(AssertionError, match=r"not expected to return new values"):
        m.load_state_dict({})


# ---- call hooks ----


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


# ---- copies and pickles ----


def test_deepcopy_is_independent_and_keeps_sharing():
    m = nn.Module()
    m.a = nn.Linear(2, 2)
    m.b = m.a
    m.a.register_forward_hook(lambda mod, args, out: out + 1)
    twin = copy.deepcopy(m)
    assert twin.a is twin.b
    assert twin.a is not m.a
    assert twin.a.weight.data_ptr() != m.a.weight.data_ptr()
    x = pullback.ones(1, 2)
    assert twin.a(x).tolist() == m.a(x).tolist()
    twin.a._forward_hooks.clear()
    assert twin.a(x).tolist() != m.a(x).tolist()


def add_one(module, args, out):
    return out + 1


def test_pickled_module_keeps_parameters_and_hooks():
    m = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    m.register_forward_hook(add_one)
    m.eval()
    twin = pickle.loads(pickle.dumps(m))
    assert not twin.training
    x = pullback.ones(3, 2)
    assert twin(x).tolist() == m(x).tolist()
    del m
    gc.collect()
    assert twin(x).tolist() == (nn.Sequential(*twin)(x) + 1).tolist()


# ---- printing ----


def test_repr_shows_the_tree():
    m = nn.Sequential(OrderedDict(first=nn.Linear(2, 3), second=nn.Sequential(nn.ReLU())))
    assert repr(m) == (
        "Sequential(\n"
        "  (first): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (second): Sequential(\n"
        "    (0): ReLU()\n"
        "  )\n"
        ")"
    )
    assert repr(nn.Module()) == "Module()"

    class Wordy(nn.Linear):
        def extra_repr(self):
            return "one\n\ntwo"

    assert repr(nn.ModuleList([Wordy(1, 1)] * 2)) == (
        "ModuleList(\n  (0-1): 2 x Wordy(\n    one\n    \n    two\n  )\n)"
    )


# ---- containers ----


def test_sequential_behaves_like_a_list():
    a, b, c = nn.Linear(1, 1), nn.ReLU(), nn.Tanh()
    m = nn.Sequential(a, b, c)
    assert len(m) == 3
    assert list(m) == [a, b, c]
    assert m[0] is a
    assert m[-1] is c
    assert list(m[1:]) == [b, c]
    assert list(dict(m[1:].named_children())) == ["1", "2"]
    m[1] = nn.Sigmoid()
    assert isinstance(m[1], nn.Sigmoid)
    del m[0]
    assert names(m.named_children()) == ["0", "1"]
    assert m.append(a) is m
    assert m.insert(0, b) is m
    assert [type(x).__name__ for x in m] == ["ReLU", "Sigmoid", "Tanh", "Linear"]
    assert m.pop(-1) is a
    m.extend([a])
    assert m[3] is a
    del m[1:3]
    assert [type(x).__name__ for x in m] == ["ReLU", "Linear"]
    with pytest.raises(IndexError, match=r"index 5 is out of range"):
        m[5]
    with pytest.raises(IndexError, match=r"Index out of range: 9"):
        m.insert(9, a)
    with pytest.raises(AssertionError, match=r"module should be of type"):
        m.insert(0, 3)


def test_sequential_arithmetic():
    a, b = nn.ReLU(), nn.Tanh()
    m = nn.Sequential(a) + nn.Sequential(b)
    assert list(m) == [a, b]
    m += nn.Sequential(a)
    assert list(m) == [a, b, a]
    assert len(2 * m) == 6
    m *= 2
    assert len(m) == 6
    with pytest.raises(ValueError, match=r"add operator supports only objects of Sequential"):
        m + 1
    with pytest.raises(ValueError, match=r"Non-positive multiplication factor 0"):
        m * 0
    with pytest.raises(TypeError, match=r"unsupported operand"):
        m * 1.5


def test_sequential_runs_its_members():
    m = nn.Sequential(Scale(2.0), Scale(3.0))
    assert m(pullback.ones(3)).tolist() == [6.0, 6.0, 6.0]
    assert nn.Sequential()(5) == 5


def test_module_list():
    m = nn.ModuleList([nn.Linear(1, 1), nn.ReLU()])
    m += [nn.Tanh()]
    assert len(m) == 3
    m.insert(1, nn.Sigmoid())
    assert [type(x).__name__ for x in m] == ["Linear", "Sigmoid", "ReLU", "Tanh"]
    assert isinstance(m[1:3], nn.ModuleList)
    assert len(m + nn.ModuleList([nn.ReLU()])) == 5
    del m[0]
    assert names(m.named_children()) == ["0", "1", "2"]
    assert isinstance(m.pop(0), nn.Sigmoid)
    m[0] = nn.GELU()
    assert isinstance(m[-2], nn.GELU)
    with pytest.raises(TypeError, match=r"ModuleList.extend should be called with an iterable"):
        m.extend(3)
    with pytest.raises(IndexError, match=r"index 9 is out of range"):
        m[9]
    assert repr(nn.ModuleList()) == "ModuleList()"
    assert repr(nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()])) == (
        "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Tanh()\n)"
    )


def test_module_dict():
    m = nn.ModuleDict({"b": nn.ReLU(), "a": nn.Tanh()})
    assert list(m) == ["b", "a"]
    assert "a" in m
    m["c"] = nn.Sigmoid()
    m.update([("d", nn.ReLU())])
    assert list(m.keys()) == ["b", "a", "c", "d"]
    assert isinstance(m.pop("a"), nn.Tanh)
    assert len(m.values()) == len(m.items()) == len(m) == 3
    m.clear()
    assert len(m) == 0
    with pytest.raises(TypeError, match=r"ModuleDict.update should be called with an iterable"):
        m.update(3)
    with pytest.raises(ValueError, match=r"has length 1; 2 is required"):
        m.update([("a",)])
    with pytest.raises(KeyError):
        m["nothing"]


def test_parameter_list():
    m = nn.ParameterList([pullback.ones(2), nn.Parameter(pullback.ones(3)), "text"])
    assert len(m) == 3
    assert isinstance(m[0], nn.Parameter)
    assert names(m.named_parameters()) == ["0", "1"]
    m.append(pullback.zeros(1))
    assert m[-1].item() == 0.0
    assert len(m[1:3]) == 2
    m[0] = pullback.zeros(5)
    assert m[0].shape[0] == 5
    assert repr(m) == (
        "ParameterList(\n"
        "    (0): Parameter containing: [torch.float32 of size 5]\n"
        "    (1): Parameter containing: [torch.float32 of size 3]\n"
        "    (2): Object of type: str\n"
        "    (3): Parameter containing: [torch.float32 of size 1]\n"
        ")"
    )
    with pytest.raises(TypeError, match=r"ParameterList.extend should be called with an iterable"):
        m.extend(pullback.ones(2))
    with pytest.raises(RuntimeError, match=r"ParameterList should not be called"):
        m(1)


def test_parameter_dict():
    m = nn.ParameterDict({"b": pullback.ones(2), "a": pullback.ones(1)})
    assert list(m) == ["a", "b"]
    assert names(m.named_parameters()) == ["a", "b"]
    m["c"] = 5
    assert m["c"] == 5
    assert m.get("d", 6) == 6
    assert m.setdefault("d", pullback.ones(1)).item() == 1.0
    assert list(reversed(m)) == ["d", "c", "b", "a"]
    assert m.popitem()[0] == "d"
    assert list((m | nn.ParameterDict({"z": 1})).keys()) == ["a", "b", "c", "z"]
    m |= nn.ParameterDict({"y": 1})
    assert m.pop("y") == 1
    assert len(m.copy()) == 3
    assert repr(m) == (
        "ParameterDict(\n"
        "    (a): Parameter containing: [torch.FloatTensor of size 1]\n"
        "    (b): Parameter containing: [torch.FloatTensor of size 2]\n"
        "    (c): Object of type: int\n"
        ")"
    )
    m.clear()
    assert len(m) == 0
    with pytest.raises(TypeError, match=r"not a string"):
        m[3] = 1


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
