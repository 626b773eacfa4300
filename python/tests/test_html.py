"""What notebooks show: right numbers, well-formed and escaped HTML of bounded length, no traces."""

from __future__ import annotations

import html
import math
import re
from html.parser import HTMLParser
from typing import Any

import pytest

import pullback as torch
from pullback import nn
from pullback.utils._python_dispatch import TorchDispatchMode

VOID = {"img", "br", "hr", "meta"}


class Checker(HTMLParser):
    """Fails on tags that are not closed in order; keeps the tags and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def shown(value: Any) -> str:
    """The text of a piece of HTML, which is checked."""
    piece = value._repr_html_()
    checker = Checker()
    checker.feed(piece)
    checker.close()
    assert not checker.open
    assert not checker.tags & {"script", "link", "style", "img", "iframe"}
    # (Links to other places; the name of SVG's language is none.)
    assert "http" not in piece.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert len(piece) < 60_000
    return re.sub(r"\s+", " ", " ".join(checker.words))


def colors(value: Any) -> set[str]:
    return set(re.findall(r'<path fill="(#\w+)"', value._repr_html_()))


# --- tensors -----------------------------------------------------------------------------------


def test_a_tensor_shows_shape_dtype_and_statistics() -> None:
    text = shown(torch.arange(12.0, dtype=torch.float64).view(3, 4))
    assert "Tensor (3, 4) · float64" in text
    assert "12 elements, 96 bytes" in text
    assert "range 0 to 11" in text
    assert f"mean, std 5.5, {math.sqrt(13):.4g}" in text
    assert "zeros 1 of 12" in text


def test_what_is_not_finite_is_counted_and_left_out_of_the_statistics() -> None:
    inf = math.inf
    tensor = torch.tensor([math.nan, 1.0, -3.0, inf, inf, -inf])
    text = shown(tensor)
    assert "range -3 to 1" in text
    assert "nan 1" in text
    assert " inf 2" in text
    assert "-inf 1" in text
    assert {"#d946ef", "#f59e0b", "#10b981"} <= colors(tensor)
    assert "finite none" in shown(torch.tensor([math.nan, inf]))
    assert "finite none" in shown(torch.tensor([complex(math.nan, 0)]))


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (torch.tensor(3.5), "value 3.5"),
        (torch.empty(0, 3), "no elements"),
        (torch.tensor([True, False, True]), "true 2 of 3"),
        (torch.tensor([-(2**63), 2**63 - 1]), "range -9.223e+18 to 9.223e+18"),
        (torch.tensor([250, 255], dtype=torch.uint8), "range 250 to 255"),
        (torch.tensor([3 + 4j, 0j]), "absolute value 0 to 5"),
        (torch.tensor([3 + 4j]).conj(), "mean 3-4j"),
        (torch.tensor([3 + 4j], dtype=torch.complex32), "absolute value 5 to 5"),
        (torch.tensor([1.5, 2.5], dtype=torch.bfloat16), "mean, std 2, 0.7071"),
        (torch.tensor([1.7e308, -1.7e308], dtype=torch.float64), "mean, std 0, inf"),
        (torch.zeros(3, 4, device="meta"), "on the meta device: no elements"),
        (torch.zeros(2, 3).T, "strides (1, 3)"),
        (torch.ones(1).expand(1000, 1_000_000), "1,000,000,000 elements"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_special_tensors_are_summarized(tensor: torch.Tensor, expected: str) -> None:
    assert expected in shown(tensor)


def test_a_parameter_without_a_shape_says_so() -> None:
    assert "UninitializedParameter not initialized" in shown(nn.LazyLinear(3).weight)


def test_tensors_of_any_size_are_shown_at_once() -> None:
    assert "1,000,000,000,000,000 elements" in shown(torch.ones(1).expand(10**15))


def test_large_tensors_are_thinned_evenly() -> None:
    tensor = torch.arange(5_000_000).view(5000, 1000)
    text = shown(tensor)
    assert "of 2,500,000 elements, evenly chosen" in text
    assert "one of each 209 x 21" in text


def test_a_heat_map_is_of_the_last_two_dimensions() -> None:
    tensor = torch.zeros(2, 3, 2, 2)
    tensor[0, 0, 1, 1] = 5
    assert "elements [0, 0, :, :]" in shown(tensor)
    assert "M1 1h1v1h-1z" in tensor._repr_html_()
    assert len(colors(tensor)) == 2
    # Of the others nothing is drawn.
    tensor[1] = 7
    assert len(colors(tensor)) == 2


def test_numbers_on_both_sides_of_zero_have_colours_on_both_sides() -> None:
    assert colors(torch.tensor([-1.0, 0.0, 1.0])) == {"#1e3a8a", "#f8fafc", "#7f1d1d"}
    assert colors(torch.tensor([0.0, 1.0])) == {"#eff6ff", "#1e1b4b"}


def test_sparse_tensors_show_what_is_stored() -> None:
    matrix = torch.zeros(40, 60)
    matrix[3, 5], matrix[30, 59] = 2.0, -4.0
    text = shown(matrix.to_sparse())
    assert "sparse_coo" in text
    assert "2 stored elements, 40 bytes" in text
    assert "range -4 to 2" in text
    assert "stored elements in each part of the matrix" in text
    assert "2 stored elements" in shown(matrix.to_sparse_csr())
    indices = torch.tensor([[0, 0], [1, 1]])
    assert "not coalesced" in shown(torch.sparse_coo_tensor(indices, torch.ones(2), (2, 2)))
    assert "0 stored elements" in shown(torch.zeros(3, 3).to_sparse())


def test_a_tensor_says_what_autograd_knows() -> None:
    leaf = torch.ones(2, requires_grad=True)
    assert "leaf that requires grad, no gradient yet" in shown(leaf)
    assert "made by MulBackward0" in shown(leaf * 2)
    leaf.sum().backward()
    assert "leaf that requires grad, has a gradient" in shown(leaf)
    assert "autograd" not in shown(torch.ones(2))


def test_showing_leaves_no_trace() -> None:
    tensor = torch.randn(4, 4, requires_grad=True)
    view = (tensor * 1).T
    state = torch.get_rng_state()
    first = view.sum().grad_fn._sequence_nr()
    shown(tensor)
    shown(view)
    shown(view.grad_fn)
    assert view.sum().grad_fn._sequence_nr() == first + 1
    assert torch.equal(torch.get_rng_state(), state)
    assert tensor._version == view._version == 0
    assert tensor.grad is None
    assert torch.is_grad_enabled()


class Refusing(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.__repr__:
            return "a <refusing> tensor"
        raise AssertionError(f"asked for {func}")


def test_classes_with_torch_function_are_not_asked_for_ops() -> None:
    text = shown(torch.ones(2, 2).as_subclass(Refusing))
    assert "Refusing (2, 2)" in text
    assert "range 1 to 1" in text
    assert "a <refusing> tensor" in text


def test_modes_are_not_asked_for_the_statistics() -> None:
    class Counting(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.asked: list[str] = []

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.asked.append(str(func))
            return func(*args, **(kwargs or {}))

    tensor = torch.randn(50, 50)
    with Counting() as mode:
        text = shown(tensor)
    assert "mean, std" in text
    assert not [name for name in mode.asked if "min" in name or "mean" in name or "std" in name]


def test_classes_that_answer_ops_have_no_elements_to_read() -> None:
    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner: torch.Tensor) -> Wrapper:
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            raise AssertionError(f"asked for {func}")

        def __repr__(self, *, tensor_contents: Any = None) -> str:
            return "Wrapper(...)"

    text = shown(Wrapper(torch.ones(3)))
    assert "its class answers ops itself" in text
    assert "Wrapper(...)" in text


def test_batched_tensors_say_why_elements_are_not_read() -> None:
    texts = []

    def seen(row: torch.Tensor) -> torch.Tensor:
        texts.append(shown(row))
        return row * 2

    torch.func.vmap(seen)(torch.ones(2, 3))
    assert "Tensor (3,)" in texts[0]
    assert "elements cannot be read here" in texts[0]


def test_inference_tensors_and_tangents_are_shown() -> None:
    with torch.inference_mode():
        assert "range 1 to 1" in shown(torch.ones(3))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.ones(3), torch.ones(3))
        assert "range 1 to 1" in shown(dual)


# --- modules -----------------------------------------------------------------------------------


def test_a_module_shows_its_tree_with_parameters_and_memory() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.BatchNorm1d(8))
    model[0].weight.requires_grad_(False)
    text = shown(model)
    assert "Sequential 56 parameters (24 trained), 296 bytes" in text
    assert "training mode" in text
    assert "(0) Linear (in_features=4, out_features=8, bias=True)" in text
    assert "weight (8, 4) float32 · 128 bytes · frozen" in text
    assert "running_mean (8,) float32 · 32 bytes · buffer" in text
    assert "eval mode" in shown(model.eval())
    assert "ReLU 0" not in text


def test_shared_parameters_count_once_above_their_modules() -> None:
    model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    model[1].weight = model[0].weight
    text = shown(model)
    assert "Sequential 9 parameters" in text
    assert text.count("9 parameters") == 3


def test_parameters_without_a_shape_are_named() -> None:
    text = shown(nn.Sequential(nn.LazyLinear(3), nn.Linear(2, 2, device="meta")))
    assert "2 not initialized" in text
    assert "weight parameter, not initialized" in text
    assert "weight (2, 2) float32 · 16 bytes · meta" in text


def test_text_of_a_program_is_escaped() -> None:
    class Odd(nn.Module):
        def extra_repr(self) -> str:
            return "<script>alert('&')</script>"

        def _get_name(self) -> str:
            return "<b>Odd"

    model = nn.Module()
    model.add_module("<i>name", Odd())
    model.register_parameter('"<u>', nn.Parameter(torch.ones(1)))
    text = shown(model)
    assert "<script>alert('&')</script>" in text
    assert "<b>Odd" in text
    assert "<i>name" in text
    assert '"<u>' in text


def test_large_deep_and_cyclic_modules_are_bounded() -> None:
    many = nn.Sequential(*(nn.Linear(1, 1) for _ in range(1000)))
    piece = many._repr_html_()
    assert len(piece) < 400_000
    assert "more modules" in piece
    deep = nn.Identity()
    for _ in range(300):
        deep = nn.Sequential(deep)
    assert "and 1 more module" in shown(deep)
    cyclic = nn.Module()
    cyclic.child = nn.Module()
    cyclic.child._modules["back"] = cyclic
    assert "(back) Module (above)" in shown(cyclic)
    empty = nn.Module()
    empty.register_module("nothing", None)
    assert "(nothing) None" in shown(empty)


# --- graphs ------------------------------------------------------------------------------------


def test_a_node_shows_the_graph_behind_it() -> None:
    x, w = torch.ones(2, 3, requires_grad=True), torch.ones(3, requires_grad=True)
    text = shown((x * w).sum().grad_fn)
    assert "SumBackward0 2 nodes, 2 leaves" in text
    for words in (
        "Mul (2, 3) float32",
        "leaf (3) float32",
        "leaf (2, 3) float32",
        "Sum () float32",
    ):
        assert words in text


def test_a_value_that_is_used_twice_is_one_node() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    piece = (y * y + y).grad_fn._repr_html_()
    assert piece.count(">Exp<") == 1
    assert piece.count('fill="none"') == 4
    assert "&#215;2" in piece


def test_large_graphs_are_cut_where_they_are_farthest() -> None:
    x = torch.ones(2, requires_grad=True)
    total = x
    for _ in range(200):
        total = total * x + x
    text = shown(total.grad_fn)
    assert "beyond these not shown" in text
    assert "more" in text


def test_nodes_of_custom_functions_and_leaves_are_shown() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
            return grads[0] * 2

    x = torch.ones(2, requires_grad=True)
    y = Double.apply(x)
    assert "DoubleBackward 1 node, 1 leaf" in shown(y.grad_fn)
    leaf = y.grad_fn.next_functions[0][0]
    assert "AccumulateGrad" in shown(leaf)
    loss = y.sum()
    loss.backward()
    # What was saved is gone, the graph is still there.
    assert "SumBackward0 2 nodes, 1 leaf" in shown(loss.grad_fn)


def test_html_of_text_is_what_the_standard_library_reads() -> None:
    piece = torch.ones(1)._repr_html_()
    assert "tensor([1.])" in html.unescape(piece)
