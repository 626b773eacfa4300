"""``Sequential``, ``ModuleList``, ``ModuleDict``, ``ParameterList`` and ``ParameterDict``."""

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


def names(pairs):
    return [name for name, _ in pairs]


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
