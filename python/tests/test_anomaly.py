"""Anomaly mode: the place in the forward of the node that failed, its parents, NaN, metadata."""

from __future__ import annotations

import gc
import threading
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import pullback as torch
from pullback.autograd import Function, detect_anomaly, grad, set_detect_anomaly

ENABLED = "Anomaly Detection has been enabled"
DETECTED = "Error detected in "


@pytest.fixture(autouse=True)
def _off_again() -> Iterator[None]:
    yield
    assert not torch.is_anomaly_enabled()
    assert torch.is_anomaly_check_nan_enabled()


class Fails(Function):
    """Passes forward, and fails in backward."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        raise RuntimeError("as it is meant to")


def leaf(*values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0), requires_grad=True)


def messages(caught: list[warnings.WarningMessage]) -> list[str]:
    return [str(warning.message) for warning in caught]


def fail_here(x: Any) -> Any:
    return Fails.apply(x * 2)  # The line that is to be shown.


def test_an_error_shows_the_line_of_the_forward() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with detect_anomaly(), pytest.raises(RuntimeError, match="as it is meant to"):
            fail_here(leaf()).sum().backward()
    enabled, detected = messages(caught)
    assert ENABLED in enabled
    assert detected.startswith("Error detected in FailsBackward. Traceback of forward call")
    assert "The line that is to be shown." in detected
    assert "in fail_here" in detected
    assert caught[0].filename == __file__


def test_without_anomaly_mode_in_forward_there_is_no_line() -> None:
    y = fail_here(leaf()).sum()
    with (
        pytest.warns(UserWarning, match=DETECTED) as caught,
        set_detect_anomaly(True),
        pytest.raises(RuntimeError, match="as it is meant to"),
    ):
        y.backward()
    assert "No forward pass information available" in str(caught[0].message)


def test_without_anomaly_mode_nothing_is_said() -> None:
    with set_detect_anomaly(True):
        y = fail_here(leaf()).sum()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeError, match="as it is meant to"):
            y.backward()


def test_built_in_nodes_are_noted_as_well() -> None:
    with set_detect_anomaly(True):
        x = leaf()
        y = x.exp()
        x2 = y * 1
        y.add_(1)
        with (
            pytest.warns(UserWarning, match="Error detected in ExpBackward0") as caught,
            pytest.raises(RuntimeError, match="modified by an inplace operation"),
        ):
            x2.sum().backward()
    assert "y = x.exp()" in str(caught[0].message)


class Twice(Function):
    """A square, the backward of whose backward fails."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return Fails.apply(grad * 2 * x)


def test_the_nodes_that_led_there_are_shown_in_double_backward() -> None:
    with set_detect_anomaly(True):
        x = leaf()
        y = Twice.apply(x)  # The outer line.
        (first,) = grad(y.sum(), x, create_graph=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with pytest.raises(RuntimeError, match="as it is meant to"):
                first.sum().backward()
    failed, parent = messages(caught)
    assert failed.startswith("Error detected in FailsBackward.")
    assert "return Fails.apply(grad * 2 * x)" in failed
    assert "Previous calculation was induced by TwiceBackward." in parent
    assert "The outer line." in parent


def test_nan_is_an_error_with_its_index() -> None:
    class Nan(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x + y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad, grad * float("nan")

    x, y = leaf(), leaf()
    with (
        set_detect_anomaly(True),
        pytest.warns(UserWarning, match=DETECTED),
        pytest.raises(
            RuntimeError,
            match=r"Function 'NanBackward' returned nan values in its 1th output\.",
        ),
    ):
        Nan.apply(x, y).sum().backward()
    with set_detect_anomaly(True, check_nan=False):
        assert not torch.is_anomaly_check_nan_enabled()
        Nan.apply(x, y).sum().backward()
    assert y.grad.isnan().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64])
def test_nan_is_found_in_every_dtype(dtype: torch.dtype) -> None:
    x = torch.zeros(3, dtype=dtype, requires_grad=True)
    with (
        set_detect_anomaly(True),
        pytest.warns(UserWarning, match=DETECTED),
        pytest.raises(RuntimeError, match="returned nan values in its 0th output"),
    ):
        (x * 0).backward(torch.full((3,), float("nan"), dtype=dtype))


def test_modes_nest_and_come_back() -> None:
    def state() -> tuple[bool, bool]:
        return torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()

    with pytest.warns(UserWarning, match=ENABLED):
        outer = detect_anomaly(check_nan=False)
    with outer:
        assert state() == (True, False)
        with set_detect_anomaly(False):
            assert state() == (False, True)
            with set_detect_anomaly(True):
                assert state() == (True, True)
            assert state() == (False, True)
        assert state() == (True, False)
    statement = set_detect_anomaly(True)
    assert state() == (True, True)
    set_detect_anomaly(False)
    with statement:
        pass
    assert state() == (False, True)


def test_the_mode_is_one_for_all_threads() -> None:
    seen: list[bool] = []
    with set_detect_anomaly(True):
        thread = threading.Thread(target=lambda: seen.append(torch.is_anomaly_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


@pytest.mark.parametrize("value", [1, None, "on"])
def test_other_values_than_bool_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=r"set_anomaly_enabled\(\): argument 'enabled'"):
        set_detect_anomaly(value)


def test_gradients_are_the_same() -> None:
    def gradients() -> list[Any]:
        x = leaf(0.3, -1.5)
        y = (x.sin() * x.exp()).cumsum(0)
        (first,) = grad(y.sum(), x, create_graph=True)
        first.sum().backward()
        return [first.detach(), x.grad]

    want = gradients()
    with set_detect_anomaly(True):
        got = gradients()
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))


# --- metadata -------------------------------------------------------------------------------------


def test_metadata_are_a_dictionary_that_lives_as_long_as_the_node() -> None:
    x = leaf()
    y = x * 2
    assert y.grad_fn.metadata == {}
    y.grad_fn.metadata["note"] = 1
    gc.collect()
    z = y.sum()
    del y
    assert z.grad_fn.next_functions[0][0].metadata == {"note": 1}


def test_metadata_of_anomaly_mode_are_the_users_too() -> None:
    with set_detect_anomaly(True):
        y = leaf() * 2
    metadata = y.grad_fn.metadata
    assert list(metadata) == ["traceback_"]
    assert "y = leaf() * 2" in "".join(metadata["traceback_"])
    metadata["traceback_"] = ["somewhere else\n"]
    y.register_hook(lambda grad: 1 / 0)
    with (
        set_detect_anomaly(True),
        pytest.warns(UserWarning, match="somewhere else"),
        pytest.raises(ZeroDivisionError),
    ):
        y.sum().backward()


@pytest.mark.parametrize("stack", [["somewhere\n"], "no list", [1], None])
def test_metadata_that_make_no_sense_are_no_danger(stack: Any) -> None:
    with set_detect_anomaly(True):
        y = leaf() * 2
        y.grad_fn.metadata.update(traceback_=stack, parent_=y.grad_fn)
        y.register_hook(lambda grad: 1 / 0)
        with pytest.warns(UserWarning, match=DETECTED), pytest.raises(ZeroDivisionError):
            y.sum().backward()


@pytest.mark.parametrize("is_custom", [False, True])
def test_cycles_through_metadata_are_collected(is_custom: bool) -> None:
    class Watched:
        pass

    x = leaf()
    y = Twice.apply(x) if is_custom else x * 2
    watched = Watched()
    y.grad_fn.metadata["kept"] = (y, y.grad_fn, watched)
    gone = weakref.ref(watched)
    del y, watched
    gc.collect()
    assert gone() is None


def test_what_anomaly_mode_notes_goes_with_the_graph() -> None:
    class Kept(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.marker = Marker()
            markers.append(weakref.ref(ctx.marker))
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return Kept.apply(grad * ctx.saved_tensors[0])

    class Marker:
        pass

    markers: list[weakref.ref[Marker]] = []
    with set_detect_anomaly(True):
        x = leaf()
        (first,) = grad(Kept.apply(x).sum(), x, create_graph=True)
    assert len(markers) == 2
    assert all(marker() is not None for marker in markers)
    del first
    gc.collect()
    assert [marker() for marker in markers] == [None, None]
