"""``nn.Module``: registration, paths, conversions, saving, copies, printing."""

import copy
import gc
import pickle
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
