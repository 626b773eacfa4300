"""An op of a crate of one's own, in Python: ``examples/custom_op_python``, loaded as a library."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pullback as torch
from pullback.autograd import gradcheck, gradgradcheck
from pullback.func import hessian, jvp, vmap

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def library() -> Path:
    """The library as Cargo builds it."""
    cargo = shutil.which("cargo")
    if cargo is None:
        pytest.skip("there is no cargo to build the library with")
    build = [cargo, "build", "--quiet", "--package", "pullback-custom-op-python"]
    command = [*build, "--message-format", "json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    files = [
        file
        for message in messages
        if message.get("target", {}).get("name") == "celestial"
        for file in message["filenames"]
    ]
    (found,) = [Path(file) for file in files if Path(file).suffix in (".so", ".dylib", ".dll")]
    return found


@pytest.fixture(scope="module")
def kepler(library: Path) -> Any:
    """The op."""
    torch.ops.load_library(str(library))
    assert str(library) in torch.ops.loaded_libraries
    return torch.ops.celestial.kepler


def orbits(dtype: Any = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean anomalies that do not lie in a row, and eccentricities to broadcast with."""
    mean = torch.linspace(-3, 3, 6, dtype=torch.float64).view(2, 3).t().to(dtype)
    return mean, torch.tensor([0.1, 0.6], dtype=dtype)


def test_it_solves_the_equation_in_every_dtype_and_shape(kepler: Any) -> None:
    for dtype, tolerance in [(torch.float64, 1e-13), (torch.float32, 1e-5), (torch.bfloat16, 0.1)]:
        mean, eccentricity = orbits(dtype)
        anomaly = kepler(mean, eccentricity)
        assert anomaly.dtype == dtype
        residual = anomaly - eccentricity * anomaly.sin() - mean
        assert residual.abs().max().item() < tolerance
    single = kepler(torch.tensor(1.0), torch.tensor(0.5))
    assert single.shape == ()
    assert kepler(torch.zeros(0, 2), torch.zeros(2)).shape == (0, 2)
    assert kepler(torch.tensor([1]), torch.tensor([0])).dtype == torch.float32


def test_history_goes_through_it(kepler: Any) -> None:
    mean, eccentricity = orbits()
    inputs = (mean.clone().requires_grad_(), eccentricity.clone().requires_grad_())
    anomaly = kepler(inputs[0] * 2, inputs[1])
    assert anomaly.grad_fn.name() == "KeplerBackward"
    (anomaly.cos() * 3).sum().backward()
    slope = 1 - eccentricity * anomaly.detach().cos()
    outer = -3 * anomaly.detach().sin() / slope
    torch.testing.assert_close(inputs[0].grad, 2 * outer)
    torch.testing.assert_close(inputs[1].grad, (outer * anomaly.detach().sin()).sum(0))


def test_derivatives_of_all_orders_and_modes_agree_with_differences(kepler: Any) -> None:
    inputs = tuple(one.clone().requires_grad_() for one in orbits())
    assert gradcheck(kepler, inputs, check_forward_ad=True)
    assert gradgradcheck(kepler, inputs, check_fwd_over_rev=True)


def test_transforms_go_through_it(kepler: Any) -> None:
    mean, eccentricity = orbits()
    each = vmap(kepler, in_dims=(1, 0))(mean, eccentricity)
    assert torch.equal(each, torch.stack([kepler(mean[:, i], eccentricity[i]) for i in range(2)]))
    point, direction = torch.tensor(0.7, dtype=torch.float64), torch.tensor(2.0).double()
    value, tangent = jvp(lambda m: kepler(m, eccentricity[1]), (point,), (direction,))
    torch.testing.assert_close(tangent, 2 / (1 - 0.6 * value.cos()))
    curvature = hessian(lambda m: kepler(m, eccentricity[1]))(point)
    expected = -0.6 * value.sin() / (1 - 0.6 * value.cos()) ** 3
    torch.testing.assert_close(curvature, expected)


def test_meta_tensors_have_the_shape_of_the_result(kepler: Any) -> None:
    shape = kepler(torch.zeros(3, 1, device="meta"), torch.zeros(2, device="meta"))
    assert (shape.shape, shape.device.type, shape.dtype) == ((3, 2), "meta", torch.float32)


def test_errors_are_those_of_the_op(kepler: Any) -> None:
    with pytest.raises(NotImplementedError, match='"kepler" not implemented for'):
        kepler(torch.ones(2, dtype=torch.complex128), torch.ones(2))
    with pytest.raises(RuntimeError, match="must match the size of tensor"):
        kepler(torch.ones(2), torch.ones(3))
    with pytest.raises(RuntimeError, match="missing value for argument 'eccentricity'"):
        kepler(torch.ones(2))
    mean, eccentricity = (one.clone().requires_grad_() for one in orbits())
    moved = mean * 1
    anomaly = kepler(moved, eccentricity)
    moved.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        anomaly.sum().backward()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no dlsym")
def test_the_library_is_a_module_that_can_be_imported(library: Path, tmp_path: Path) -> None:
    shutil.copy(library, tmp_path / "celestial.so")
    program = """
import celestial
import pullback as torch

mean = torch.tensor([0.5, 1.0], requires_grad=True)
anomaly = celestial.kepler(mean, torch.tensor(0.5))
torch.testing.assert_close(anomaly - 0.5 * anomaly.sin(), mean)
anomaly.sum().backward()
torch.testing.assert_close(mean.grad, 1 / (1 - 0.5 * anomaly.detach().cos()))
assert celestial.kepler is torch.ops.celestial.kepler
assert celestial.__all__ == ["kepler"]
assert celestial.__file__.endswith("celestial.so")
assert "kepler" in celestial.__doc__
torch.ops.load_library(celestial.__file__)  # the same ops: nothing is defined twice
import sys
del sys.modules["celestial"]
import celestial as again
assert again.kepler is torch.ops.celestial.kepler
"""
    run = [sys.executable, "-c", program]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_other_libraries_are_refused() -> None:
    with pytest.raises(OSError, match="cannot be loaded"):
        torch.ops.load_library(torch._C.__file__)
