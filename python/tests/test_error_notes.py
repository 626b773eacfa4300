"""What errors say besides their text: modules and shapes, lines of arguments, keywords, memory."""

from __future__ import annotations

import sys
import weakref
from typing import Any

import pytest

import pullback as torch
from pullback import nn


def notes(error: BaseException) -> list[str]:
    return list(getattr(error, "__notes__", []))


def raised(call: Any, *args: Any, **kwargs: Any) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011 (the tests look at class and text)
        call(*args, **kwargs)
    return caught.value


def line_of(text: str) -> int:
    """The line of this file that ends in a mark."""
    with open(__file__, encoding="utf-8") as file:
        return next(n for n, line in enumerate(file, 1) if line.rstrip().endswith(f"# {text}"))


# ---- modules ----


def test_an_error_in_a_module_names_its_path_and_what_it_got() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(4, 2))

        def forward(self, x: Any) -> Any:
            return self.model(x)

    net = Net()
    error = raised(lambda: net(torch.zeros(3, 4)))
    assert type(error) is RuntimeError
    assert str(error).endswith("mat1 and mat2 shapes cannot be multiplied (3x5 and 4x2)")
    own = [note for note in notes(error) if " got " in note.splitlines()[0] and "model" in note]
    assert own == ["net.model.2: Linear(in_features=4, out_features=2, bias=True) got (3, 5)"]


def test_a_module_by_itself_is_named_by_its_variable_or_its_class() -> None:
    layer = nn.Linear(4, 2)
    text = "Linear(in_features=4, out_features=2, bias=True) got (4, 5)"
    assert f"layer: {text}" in notes(raised(lambda: layer(torch.zeros(4, 5))))
    error = raised(lambda: nn.Linear(4, 2)(torch.zeros(4, 5)))
    assert text in notes(error)


def test_a_module_that_its_caller_only_has_in_a_list_is_named_as_such() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = [nn.Linear(4, 2)]

        def forward(self, x: Any) -> Any:
            return self.layers[0](x)

    net = Net()
    (note,) = (n for n in notes(raised(lambda: net(torch.zeros(4, 5)))) if "got (4, 5)" in n)
    assert note.startswith("net > Linear: Linear(")


def test_a_shared_exception_keeps_one_note_about_modules() -> None:
    class Fails(nn.Module):
        def forward(self, x: Any, *, scale: int) -> Any:
            raise KeyError("missing")

    class Deep(nn.Module):
        def __init__(self, depth: int) -> None:
            super().__init__()
            self.inner = Deep(depth - 1) if depth else Fails()
            self.depth = depth

        def forward(self, x: Any) -> Any:
            return self.inner(x) if self.depth else self.inner(x, scale=3)

    deep = Deep(3)
    error = raised(lambda: deep(torch.zeros(2, dtype=torch.int64)))
    assert type(error) is KeyError
    assert notes(error) == ["deep.inner.inner.inner.inner: Fails() got (2,) int64, scale=3"]


@pytest.mark.parametrize("kind", ["forward", "pre", "kwargs"])
def test_errors_of_hooks_name_the_module_too(kind: str) -> None:
    model = nn.Sequential(nn.ReLU(), nn.Tanh())

    def hook(*args: Any) -> None:
        raise ValueError("of a hook")

    if kind == "pre":
        model[1].register_forward_pre_hook(hook)
    else:
        model[1].register_forward_hook(hook, with_kwargs=kind == "kwargs")
    error = raised(lambda: model(torch.zeros(2, 3)))
    assert str(error) == "of a hook"
    assert notes(error) == ["model.1: Tanh() got (2, 3)"]


def test_an_error_of_a_module_can_be_sent_to_another_process() -> None:
    import pickle

    layer = nn.Linear(4, 2)
    error = raised(lambda: layer(torch.zeros(4, 5)))
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert notes(copy) == notes(error)


def test_an_error_that_is_raised_again_elsewhere_is_named_from_there() -> None:
    class Again(nn.Module):
        def __init__(self, error: BaseException) -> None:
            super().__init__()
            self.error = error

        def forward(self) -> None:
            raise self.error

    kept = ValueError("kept")
    for name in ("first", "second"):
        holder = nn.ModuleDict({name: Again(kept)})
        assert raised(lambda holder=holder, name=name: holder[name]()) is kept
    assert len(notes(kept)) <= 2


def test_a_function_keeps_nothing_alive_because_an_error_passed_through_it() -> None:
    class Held:
        pass

    def run() -> tuple[bool, dict[str, Any]]:
        layer = nn.Linear(4, 2)
        held = Held()
        gone = weakref.ref(held)
        assert notes(raised(lambda: layer(torch.zeros(4, 5))))
        try:
            layer(torch.zeros(4, 5))
        except RuntimeError as error:
            assert notes(error)[-1].startswith("layer: ")  # noqa: PT017 (nothing else may hold it)
        del held
        return gone() is None, {"gone": gone}

    def run_with_locals() -> dict[str, Any]:
        layer = nn.Linear(4, 2)
        mine = locals()
        with pytest.raises(RuntimeError):
            layer(torch.zeros(4, 5))
        return mine

    assert run()[0]
    assert "layer" in run_with_locals()


def test_what_is_no_error_gets_no_note() -> None:
    class Stops(nn.Module):
        def __init__(self, error: BaseException) -> None:
            super().__init__()
            self.error = error

        def forward(self) -> None:
            raise self.error

    for error in (KeyboardInterrupt(), SystemExit(), GeneratorExit(), StopIteration()):
        with pytest.raises(type(error)) as caught:
            Stops(error)()
        assert notes(caught.value) == []


def test_an_exception_without_place_for_notes_passes_unchanged() -> None:
    class Narrow(Exception):
        def __setattr__(self, name: str, value: Any) -> None:
            raise AttributeError(name)

        def add_note(self, note: str) -> None:
            raise TypeError("takes none")

    class Fails(nn.Module):
        def forward(self) -> None:
            raise Narrow("as it is")

    assert str(raised(Fails())) == "as it is"


def test_the_traceback_of_an_error_in_a_module_stays() -> None:
    model = nn.Sequential(nn.Linear(4, 2))
    error = raised(model, torch.zeros(4, 5))
    names = []
    frame = error.__traceback__
    while frame is not None:
        names.append(frame.tb_frame.f_code.co_name)
        frame = frame.tb_next
    assert names[-2:] == ["forward", "forward"]
    assert error.__context__ is None


# ---- arguments ----


def test_an_op_that_refuses_its_arguments_names_the_lines_they_are_from() -> None:
    x = torch.zeros(3, 4, requires_grad=True)
    a = x * 2  # made a
    b = x.sum(0)  # made b
    error = raised(torch.mm, a, b)
    assert str(error) == str(raised(torch.mm, a.detach(), b.detach()))
    (note,) = notes(error)
    lines = note.splitlines()
    assert lines[0] == "mm() got"
    assert lines[1] == "  self: (3, 4) float32, made by MulBackward0 here:"
    assert f"line {line_of('made a')}," in lines[2]
    assert lines[3].strip() == "a = x * 2  # made a"
    assert f"line {line_of('made b')}," in note
    assert "mat2: (4,) float32, made by SumBackward1 here:" in note


def test_arguments_whose_line_is_not_known_are_listed_beside_others() -> None:
    x = torch.zeros(3, 4, requires_grad=True).exp()
    (note,) = notes(raised(torch.add, x, torch.zeros(5)))
    assert note.splitlines()[-1] == "  other: (5,) float32"
    (note,) = notes(raised(torch.cat, [x, torch.zeros(2, 2, 2)]))
    assert "tensors[0]: (3, 4) float32, made by ExpBackward0 here:" in note
    assert "tensors[1]: (2, 2, 2) float32" in note


def test_an_op_none_of_whose_arguments_has_a_line_says_nothing_more() -> None:
    assert notes(raised(torch.mm, torch.zeros(3, 4), torch.zeros(3, 4))) == []


def test_operators_and_out_name_lines_too() -> None:
    x = torch.zeros(3, 4, requires_grad=True).exp()
    assert "made by ExpBackward0" in notes(raised(lambda: x @ x))[0]
    assert "made by ExpBackward0" in notes(raised(x.view, 5))[0]


# ---- keywords ----


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: torch.sum(x, dmi=0), "did you mean 'dim'?"),
        (lambda x: x.sum(dmi=0), "did you mean 'dim'?"),
        (lambda x: torch.cat([x], dims=0), "did you mean 'dim'?"),
        (lambda x: torch.softmax(x, dim=0, dtpye=None), "did you mean 'dtype'?"),
        (lambda x: torch.tensor([1.0], requires_gard=True), "did you mean 'requires_grad'?"),
        (lambda x: nn.functional.dropout(x, inplcae=True), "did you mean 'inplace'?"),
        (lambda x: nn.Linear(2, 2, bais=False), "did you mean 'bias'?"),
        (lambda x: nn.Conv2d(2, 2, 3, paddding=1), "did you mean 'padding'?"),
    ],
)
def test_a_misspelt_keyword_names_the_right_one(call: Any, text: str) -> None:
    error = raised(call, torch.zeros(2, 2))
    assert type(error) is TypeError
    assert str(error).endswith(text)
    assert str(error).count("did you mean") == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.sum(x, nothing_like_it=0),
        lambda x: torch.cat([x], q=0),
        lambda x: nn.Linear(2, 2, nothing_like_it=False),
        lambda x: nn.functional.dropout(x, q=True),
        lambda x: torch.sum(x, dim="a"),
    ],
)
def test_a_keyword_that_is_like_no_other_gets_no_suggestion(call: Any) -> None:
    error = raised(call, torch.zeros(2, 2))
    assert type(error) is TypeError
    assert "did you mean" not in str(error)


def test_errors_from_the_inside_of_a_constructor_keep_their_text() -> None:
    def make(*, size: int) -> int:
        return size

    class Odd(nn.Module):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__()
            make(**kwargs)

    error = raised(Odd, siez=3)
    # (Python 3.13 says it by itself.)
    assert str(error).lower().count("did you mean") == (sys.version_info >= (3, 13))


def test_a_subclass_whose_constructor_is_replaced_is_made_by_the_new_one() -> None:
    class Own(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.width = width

    def other(self: Any, depth: int) -> None:
        nn.Module.__init__(self)
        self.depth = depth

    assert Own(width=2).width == 2
    Own.__init__ = other  # type: ignore[assignment,method-assign]
    assert Own(depth=3).depth == 3  # type: ignore[call-arg,attr-defined]


# ---- memory ----


def test_out_of_memory_names_what_holds_most() -> None:
    model = nn.Sequential(nn.Linear(3000, 2000))
    batch = torch.ones(1500, 3000)
    loss = (model(batch).relu() * 2.0).sum()  # the graph
    error = raised(torch.empty, 1 << 50)
    assert type(error) is torch.OutOfMemoryError
    (note,) = notes(error)
    assert note.startswith("Tensors hold ")
    assert "Sequential.0.weight" in note
    assert "24 MB" in note
    assert "variable batch in test_out_of_memory_names_what_holds_most" in note or (
        "kept for backward by AddmmBackward0" in note
    )
    assert f"kept for backward by ReluBackward0, {__file__}:{line_of('the graph')}" in note
    assert loss.requires_grad


def test_out_of_memory_with_little_in_use_says_that_the_request_was_too_large() -> None:
    program = (
        "import pullback as torch\n"
        "try:\n    torch.empty(1 << 50)\n"
        "except torch.OutOfMemoryError as error:\n    print(error.__notes__)"
    )
    import subprocess

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "too large by itself" in done.stdout, done.stderr
