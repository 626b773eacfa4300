"""gradcheck: what passes, what each kind of wrong derivative is told, and what a check leaves."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback.autograd import Function, gradcheck, gradgradcheck
from pullback.autograd.forward_ad import make_dual, unpack_dual
from pullback.autograd.gradcheck import (
    GradcheckError,
    get_analytical_jacobian,
    get_numerical_jacobian,
    get_numerical_jacobian_wrt_specific_input,
)

BOTH = pytest.mark.parametrize("fast_mode", [False, True])
F64, C128 = torch.float64, torch.complex128


def leaf(*shape: int, dtype: torch.dtype = F64) -> torch.Tensor:
    torch.manual_seed(5)
    return (torch.rand(shape, dtype=dtype) + 0.5).requires_grad_()


def custom(
    forward: Callable[..., Any], backward: Callable[..., Any], materialize: bool = True
) -> Callable[..., Any]:
    """A function with a backward of its own, which is given the inputs and the gradients."""

    class Made(Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            ctx.save_for_backward(*inputs)
            ctx.set_materialize_grads(materialize)
            return forward(*inputs)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return backward(ctx.saved_tensors, *grads)

    return Made.apply


def off_by(amount: float) -> Callable[..., Any]:
    """The square, whose derivative is too large by a factor."""
    return custom(lambda x: x * x, lambda saved, g: (2 + amount) * saved[0].conj() * g)


# What passes.


@BOTH
def test_right_derivatives_of_first_and_second_order_pass(fast_mode: bool) -> None:
    a, b = leaf(3, 2), leaf(2, 4)
    assert gradcheck(torch.mm, (a, b), fast_mode=fast_mode) is True
    assert gradgradcheck(torch.mm, [a, b], fast_mode=fast_mode) is True
    assert gradcheck(torch.sin, leaf(), fast_mode=fast_mode) is True
    assert gradcheck(torch.sin, leaf(0, 3), fast_mode=fast_mode) is True


@BOTH
@pytest.mark.parametrize(
    "function",
    [
        lambda z: z * z.exp(),
        lambda z: z.abs(),
        lambda z: (z.conj() * z, z.real.sin()),
        lambda z: (z.imag, z * (2 - 1j)),
    ],
)
def test_complex_inputs_and_outputs_pass(function: Callable[..., Any], fast_mode: bool) -> None:
    z = leaf(2, 2, dtype=C128)
    assert gradcheck(function, z, fast_mode=fast_mode)
    assert gradgradcheck(function, z, fast_mode=fast_mode)
    assert gradcheck(torch.complex, (leaf(2), leaf(2)), fast_mode=fast_mode)


@BOTH
def test_outputs_without_gradients_and_inputs_that_are_no_tensors_are_left_alone(
    fast_mode: bool,
) -> None:
    def function(scale: float, x: torch.Tensor, fixed: torch.Tensor) -> Any:
        # What changes with x but requires no grad comes first: positions must not slip.
        return x.detach() * 5, x.argmax(), x * scale * fixed, [1, 2][0] + x

    x, fixed = leaf(3), torch.tensor([1.0, -2.0, 0.5], dtype=F64)
    assert gradcheck(function, (3.0, x, fixed), fast_mode=fast_mode)
    assert gradgradcheck(function, (3.0, x, fixed), fast_mode=fast_mode)


@BOTH
def test_an_input_that_is_not_used_has_a_gradient_of_zero(fast_mode: bool) -> None:
    assert gradcheck(lambda x, y: x * 2, (leaf(2), leaf(3)), fast_mode=fast_mode)


def test_inputs_are_put_back_even_if_the_function_raises() -> None:
    x = leaf(3, 2).detach().t().requires_grad_()
    before, version = x.detach().clone(), x._version
    for fast_mode in (False, True):
        gradcheck(torch.sin, x, fast_mode=fast_mode)
    calls = 0

    def moody(value: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyError("enough")
        return value * 2

    with pytest.raises(KeyError, match="enough"):
        gradcheck(moody, x)
    assert torch.equal(x, before)
    assert x._version == version
    assert x.grad is None


def test_fast_mode_takes_two_differences_and_leaves_the_random_numbers_alone() -> None:
    calls = 0

    def counted(x: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return x.exp()

    torch.manual_seed(3)
    wanted = torch.rand(2)
    x = leaf(40)
    torch.manual_seed(3)
    gradcheck(counted, x, fast_mode=True, check_undefined_grad=False)
    assert calls == 3
    assert torch.equal(torch.rand(2), wanted)


def test_a_gradient_for_each_output_can_be_given() -> None:
    x, start = leaf(3), leaf(3)
    assert gradgradcheck(lambda x: (x**3, x.argmax()), x, start)
    assert gradgradcheck(lambda x: (x**3, x.sin().sum()), x, (start.detach(), None))


def test_gradients_can_be_drawn_without_being_contiguous() -> None:
    seen = []

    def backward(saved: Any, g: torch.Tensor) -> torch.Tensor:
        # Up to 1 in each of two parts, where they are complex.
        seen.append((g.is_contiguous(), float(g.detach().abs().max()) <= 2**0.5))
        return g * 2

    double = custom(lambda x: x * 2, backward)
    for dtype in (F64, C128):
        for spread in (False, True):
            seen.clear()
            assert gradgradcheck(
                double, leaf(2, 3, dtype=dtype), gen_non_contig_grad_outputs=spread
            )
            assert seen[0] == (not spread, True)
    assert gradgradcheck(double, leaf(), gen_non_contig_grad_outputs=True)


# What fails.


@BOTH
def test_a_wrong_derivative_is_shown_beside_the_difference(fast_mode: bool) -> None:
    x = torch.tensor([1.0, 3.0], dtype=F64, requires_grad=True)
    wrong = off_by(0.5)
    with pytest.raises(GradcheckError) as caught:
        gradcheck(lambda x: (x * 1, wrong(x)), x, fast_mode=fast_mode)
    text = str(caught.value)
    assert text.startswith("Jacobian mismatch for output 1 with respect to input 0,\nnumerical:")
    # The Jacobian of x^2 at (1, 3), and the same too large by a quarter.
    assert re.search(r"2\.0000, 0\.0000\],\s+\[0\.0000, 6\.0000", text)
    assert re.search(r"analytical:.*2\.5000, 0\.0000\],\s+\[0\.0000, 7\.5000", text, re.S | re.I)
    largest = re.search(r"max per-element difference \(slow mode\) is: (.+)\.\n", text)
    assert (float(largest[1]) if largest else None) == (pytest.approx(1.5) if fast_mode else None)
    assert gradcheck(wrong, x, raise_exception=False, fast_mode=fast_mode) is False
    assert issubclass(GradcheckError, RuntimeError)


@BOTH
def test_a_wrong_second_derivative_is_found(fast_mode: bool) -> None:
    # The derivative of the sine is right, but as a function of x it says it is constant.
    sine = custom(lambda x: x.sin(), lambda saved, g: g * saved[0].detach().cos())
    assert gradcheck(sine, leaf(3), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0"):
        gradgradcheck(sine, leaf(3), fast_mode=fast_mode)
    assert gradgradcheck(sine, leaf(3), fast_mode=fast_mode, raise_exception=False) is False


@BOTH
def test_the_part_of_a_complex_output_that_is_wrong_is_named(fast_mode: bool) -> None:
    z = leaf(2, dtype=C128)
    with pytest.raises(GradcheckError, match="the imaginary part of complex outputs only, Jac"):
        gradcheck(off_by(0.1), z, fast_mode=fast_mode)
    # Right for the imaginary part of the output alone: its gradient is i times a real number.
    half = custom(lambda z: z * 1, lambda saved, g: g.imag * 1j + 2 * g.real)
    with pytest.raises(GradcheckError, match="the real part of complex outputs only, Jacobian"):
        gradcheck(half, z, fast_mode=fast_mode)
    wrong = off_by(0.1)
    with pytest.raises(GradcheckError, match=r"^Jacobian mismatch for output 1"):
        gradcheck(lambda z, x: (z * 2, wrong(x)), (z, leaf(2)), fast_mode=fast_mode)


def test_fast_mode_says_when_the_whole_jacobians_agree() -> None:
    # 1000 (y0 - y1), with both slopes 0.9 too large. Each is within a thousandth, but along a
    # direction between the two the slopes nearly cancel, and the errors do not.
    tilted = custom(
        lambda y: (y[:1] - y[1:]) * 1000,
        lambda saved, g: torch.cat([g * 1000.9, g * -999.1]),
    )
    y = leaf(2)
    assert gradcheck(tilted, y)
    with pytest.raises(GradcheckError, match="Fast gradcheck failed but element-wise differ"):
        gradcheck(tilted, y, fast_mode=True)


@BOTH
def test_the_absolute_tolerance_is_that_of_an_entry_in_both_modes(fast_mode: bool) -> None:
    def constant(error: float) -> Callable[..., Any]:
        return custom(
            lambda x: x.sum() * torch.zeros(50, dtype=F64),
            lambda saved, g: g.sum() * error + torch.zeros(60, dtype=F64),
        )

    x = leaf(60)
    assert gradcheck(constant(0.9e-5), x, fast_mode=fast_mode)
    assert not gradcheck(constant(1.1e-5), x, fast_mode=fast_mode, raise_exception=False)


@BOTH
def test_a_backward_that_is_random_is_refused_beyond_the_tolerance(fast_mode: bool) -> None:
    noise = 1e-6
    noisy = custom(lambda x: x * 1, lambda saved, g: g * (1 + torch.rand_like(g) * noise))
    x = leaf(4)
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(noisy, x, fast_mode=fast_mode)
    assert gradcheck(noisy, x, nondet_tol=1e-5, fast_mode=fast_mode)


@BOTH
def test_a_backward_that_is_not_zero_for_zeros_is_refused(fast_mode: bool) -> None:
    added = custom(lambda x: x * 1, lambda saved, g: g + 1e-9)
    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(added, leaf(2), fast_mode=fast_mode)
    # `masked` asks for zeros within a tolerance only.
    options = {"masked": True, "check_undefined_grad": False, "fast_mode": fast_mode}
    assert gradcheck(added, leaf(2), **options)
    twice = custom(lambda x: x * 2, lambda saved, g: added(g) * 2)
    assert gradgradcheck(twice, leaf(2), **options)
    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradgradcheck(twice, leaf(2), fast_mode=fast_mode)


def two_outputs(backward: Callable[..., Any]) -> Callable[..., Any]:
    return custom(lambda x: (x * 2, x * 3), backward, materialize=False)


@BOTH
def test_gradients_that_are_missing_must_be_handled(fast_mode: bool) -> None:
    def careful(saved: Any, g: Any, h: Any) -> Any:
        parts = [k * d for k, d in ((2, g), (3, h)) if d is not None]
        return sum(parts) if parts else None

    def hostile(saved: Any, g: Any, h: Any) -> Any:
        if g is None and h is None:
            raise RuntimeError("no gradient at all")
        return careful(saved, g, h)

    def inventive(saved: Any, g: Any, h: Any) -> Any:
        found = careful(saved, g, h)
        return torch.ones(2, dtype=F64) if found is None else found

    x = leaf(2)
    check = {"fast_mode": fast_mode}
    assert gradcheck(two_outputs(careful), x, **check)
    for backward, message in (
        (hostile, "Expected backward function to handle undefined output grads.*no gradient"),
        (inventive, "Expected all input grads to be undefined or zero"),
    ):
        with (
            pytest.warns(UserWarning, match="New undefined gradient support checking") as noted,
            pytest.raises(GradcheckError, match=message),
        ):
            gradcheck(two_outputs(backward), x, **check)
        assert [entry.filename for entry in noted] == [__file__]
        assert gradcheck(two_outputs(backward), x, check_undefined_grad=False, **check)


@BOTH
def test_one_missing_gradient_among_several_must_be_handled(fast_mode: bool) -> None:
    # Neither a single gradient nor none at all is what it fails for.
    def backward(saved: Any, *grads: Any) -> Any:
        defined = [g for g in grads if g is not None]
        if len(defined) == 2:
            raise RuntimeError("two of three")
        return sum(defined) if defined else None

    copies = custom(lambda x: (x * 1, x * 1, x * 1), backward, materialize=False)
    with (
        pytest.warns(UserWarning, match="New undefined gradient support checking"),
        pytest.raises(GradcheckError, match=r"undefined output grads.*two of three"),
    ):
        gradcheck(copies, leaf(2), fast_mode=fast_mode)


def test_errors_of_the_users_backward_that_are_no_runtime_errors_come_through() -> None:
    # 2 * None: the gradient of the other output alone is undefined.
    unaware = two_outputs(lambda saved, g, h: 2 * g + 3 * h)
    with pytest.raises(TypeError, match="NoneType"):
        gradcheck(unaware, leaf(2), raise_exception=False)


@BOTH
def test_a_function_without_differentiable_outputs_must_be_constant(fast_mode: bool) -> None:
    x = leaf(2)
    assert gradcheck(lambda x: (), x, fast_mode=fast_mode)
    assert gradcheck(lambda x: torch.ones(3), x, fast_mode=fast_mode)
    assert gradcheck(lambda x: x.argmax(), x, fast_mode=fast_mode)
    assert gradgradcheck(lambda x: torch.ones(3), x, fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be z"):
        gradcheck(lambda x: x.detach() * 2, x, fast_mode=fast_mode)


@BOTH
def test_outputs_may_not_change_their_looks_with_the_values(fast_mode: bool) -> None:
    x = torch.ones(2, dtype=F64, requires_grad=True)

    def longer(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x]) if bool((x >= 1).all()) else x

    def lighter(x: torch.Tensor) -> torch.Tensor:
        return x.float() if bool((x >= 1).all()) else x

    def more(x: torch.Tensor) -> Any:
        return (x, x) if bool((x >= 1).all()) else (x,)

    def elsewhere(x: torch.Tensor) -> torch.Tensor:
        # The same on both sides of the point, but not at it.
        return torch.cat([x, x]) if bool((x == 1).all()) else x

    for function, what in (
        (longer, "shape"),
        (lighter, "dtype"),
        (more, "number"),
        (elsewhere, "shape"),
    ):
        message = f"return outputs with the same {what} when inputs are perturbed .*by 1e-06"
        with pytest.raises(AssertionError, match=message):
            gradcheck(function, x, fast_mode=fast_mode, raise_exception=False)


# What is not taken.


def test_inputs_that_cannot_be_checked_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(torch.sin, torch.rand(2, dtype=F64), raise_exception=False)
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda scale: scale, (1.0,))
    stretched = torch.rand(1, dtype=F64, requires_grad=True).expand(3)
    with pytest.raises(RuntimeError, match="The 1th input has a dimension with stride 0"):
        gradcheck(torch.add, (leaf(3), stretched), raise_exception=False)
    assert gradcheck(torch.sin, torch.rand(1, dtype=F64, requires_grad=True).expand(1, 1))


def test_single_precision_is_warned_of_where_the_check_is_called() -> None:
    x = torch.ones(1, requires_grad=True)
    with pytest.warns(UserWarning, match="Input #1 requires gradient and is not a double") as noted:
        assert gradcheck(lambda n, x: x * n, (2, x), eps=2**-6)
    assert [entry.filename for entry in noted] == [__file__]


def test_sparse_outputs_are_refused() -> None:
    sparse = torch.rand(2, dtype=F64).to_sparse().requires_grad_()
    with pytest.raises(ValueError, match="Sparse output is not supported at gradcheck yet"):
        gradcheck(torch.sin, sparse)
    with pytest.raises(ValueError, match="Sparse output is not supported at gradcheck yet"):
        gradcheck(lambda x: (x * 2).to_sparse(), leaf(2))


@pytest.mark.parametrize(
    ("check", "options", "message"),
    [
        (gradcheck, {"check_backward_ad": False}, "check_forward_ad or check_backward_ad"),
        (
            gradcheck,
            {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True},
            "check_batched_grad=True requires check_backward_ad",
        ),
        (
            gradcheck,
            {"check_batched_forward_grad": True},
            "check_batched_forward_grad=True requires check_forward_ad",
        ),
        (gradgradcheck, {"check_rev_over_rev": False}, "check_fwd_over_rev or check_rev_over_rev"),
        (
            gradgradcheck,
            {"check_rev_over_rev": False, "check_fwd_over_rev": True},
            "check_undefined_grad=True requires check_rev_over_rev",
        ),
        (
            gradgradcheck,
            {
                "check_rev_over_rev": False,
                "check_fwd_over_rev": True,
                "check_undefined_grad": False,
                "check_batched_grad": True,
            },
            "check_batched_grad=True requires check_rev_over_rev",
        ),
    ],
)
def test_arguments_that_contradict_each_other_are_refused(
    check: Callable[..., bool], options: dict[str, bool], message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        check(torch.sin, leaf(2), raise_exception=False, **options)


# Forward mode and vmap.


def skewed(factor: complex) -> Callable[[torch.Tensor], torch.Tensor]:
    """The identity, whose tangent is wrong by a factor."""

    def function(x: torch.Tensor) -> torch.Tensor:
        primal, tangent = unpack_dual(x)
        return x * 1 if tangent is None else make_dual(primal, tangent * factor)

    return function


FORWARD_ONLY = {"check_forward_ad": True, "check_backward_ad": False}


@BOTH
@pytest.mark.parametrize("dtype", [F64, C128])
def test_forward_mode_is_compared_with_differences(dtype: torch.dtype, fast_mode: bool) -> None:
    inputs = (leaf(3), leaf(2, 3, dtype=dtype))
    wrong = skewed(1.1)
    assert gradcheck(torch.mul, inputs, check_forward_ad=True, fast_mode=fast_mode)
    part = "While considering the imaginary part of complex inputs only, " * dtype.is_complex
    message = f"^{part}Jacobian computed with forward mode mismatch for output 1 with respect to in"
    with pytest.raises(GradcheckError, match=f"{message}put 1,") as caught:
        gradcheck(lambda x, y: (x.sin(), x * wrong(y)), inputs, fast_mode=fast_mode, **FORWARD_ONLY)
    assert ("(slow mode)" in str(caught.value)) is fast_mode


def test_the_part_of_a_complex_input_that_is_not_looked_at_stays_what_it_is() -> None:
    z, seen = leaf(2, dtype=C128), []

    def square(z: torch.Tensor) -> torch.Tensor:
        seen.append(np.array(unpack_dual(z)[0].tolist()))
        return z * z

    assert gradcheck(square, z, **FORWARD_ONLY)
    for values in seen:
        np.testing.assert_allclose(values, z.tolist(), atol=2e-6)


@BOTH
def test_a_missing_tangent_counts_as_zero(fast_mode: bool) -> None:
    def partial(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        # Where y has no tangent, that of x is taken twice.
        (p, s), (q, t) = unpack_dual(x), unpack_dual(y)
        if s is None:
            return x * 1 + y
        return make_dual(p + q, s * 2 if t is None else s + t)

    inputs = (leaf(2), leaf(2))
    assert gradcheck(
        partial, inputs, check_undefined_grad=False, fast_mode=fast_mode, **FORWARD_ONLY
    )
    with pytest.raises(GradcheckError, match="Mismatch in tangent values for output with index: 0"):
        gradcheck(partial, inputs, fast_mode=fast_mode, **FORWARD_ONLY)


@BOTH
def test_the_dtype_of_a_tangent_is_checked_if_asked_for(fast_mode: bool) -> None:
    with pytest.raises(GradcheckError, match="Forward AD gradient has dtype mismatch"):
        gradcheck(
            skewed(1 + 0j), leaf(2), check_grad_dtypes=True, fast_mode=fast_mode, **FORWARD_ONLY
        )
    assert gradcheck(skewed(1 + 0j), leaf(2), fast_mode=fast_mode, **FORWARD_ONLY)


def looped(function: Callable[..., Any]) -> Callable[..., Any]:
    def batched(*stacks: torch.Tensor) -> Any:
        results = [function(*entries) for entries in zip(*stacks, strict=True)]
        return tuple(torch.stack(entries) for entries in zip(*results, strict=True))

    return batched


BATCHED = [
    ({"check_batched_grad": True}, "gradcheck or gradgradcheck failed while testing batched grad"),
    (
        {"check_batched_forward_grad": True, **FORWARD_ONLY},
        "gradcheck failed while testing batched gradient computation with forward-mode AD",
    ),
]


@pytest.mark.parametrize(("options", "message"), BATCHED)
def test_vmap_is_compared_with_a_loop(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, bool], message: str
) -> None:
    def wrong(function: Callable[..., Any]) -> Callable[..., Any]:
        # Right for the first output of what is mapped, not for the second.
        return lambda stack: (looped(function)(stack)[0], looped(function)(stack)[1] * 1.01)

    def helpless(function: Callable[..., Any]) -> Callable[..., Any]:
        def batched(stack: torch.Tensor) -> Any:
            raise RuntimeError("no batching rule")

        return batched

    def function(x: torch.Tensor, y: torch.Tensor) -> Any:
        return x * y, x.sin()

    inputs = (leaf(2), leaf(2))
    assert gradcheck(function, inputs, **options)
    monkeypatch.setattr("pullback._vmap_internals._vmap", wrong)
    with pytest.raises(GradcheckError, match=rf"For output \d and input \d:\n\n{message}"):
        gradcheck(function, inputs, **options)
    monkeypatch.setattr("pullback._vmap_internals._vmap", helpless)
    with pytest.raises(GradcheckError, match=rf"got: no batching rule\n\n{message}"):
        gradcheck(function, inputs, **options)


# The older functions.


def test_the_numerical_jacobians_of_the_first_output() -> None:
    a, b = leaf(2, 2), leaf(2, 2)

    def function(inputs: Any) -> Any:
        return inputs[0] * 2 + inputs[1], inputs[0] * inputs[1]

    with pytest.warns(FutureWarning, match="`get_numerical_jacobian` was part of") as noted:
        found = get_numerical_jacobian(function, (a, b), eps=1e-6)
    assert [entry.filename for entry in noted] == [__file__]
    np.testing.assert_allclose(found[0].numpy(), 2 * np.eye(4), atol=1e-8)
    np.testing.assert_allclose(found[1].numpy(), np.eye(4), atol=1e-8)
    with pytest.warns(FutureWarning):
        (of_b,) = get_numerical_jacobian(function, (a, b), target=b, eps=1e-6)
    np.testing.assert_allclose(of_b.numpy(), np.eye(4), atol=1e-8)
    with pytest.warns(FutureWarning), pytest.raises(ValueError, match="Expected grad_out to be 1"):
        get_numerical_jacobian(function, (a, b), grad_out=2.0)
    with pytest.warns(FutureWarning), pytest.raises(ValueError, match="output to be non-complex"):
        get_numerical_jacobian(lambda inputs: inputs[0] * 1j, (a,))


def test_the_numerical_jacobians_of_one_input() -> None:
    a, z = leaf(2), leaf(2, dtype=C128)

    def function(a: torch.Tensor, z: torch.Tensor) -> Any:
        return a**2, (z * z).real.sum(), a.argmax()

    of_a = get_numerical_jacobian_wrt_specific_input(function, 0, (a, z), function(a, z), 1e-6)
    assert len(of_a) == 2
    np.testing.assert_allclose(of_a[0].numpy(), np.diag(2 * a.detach().numpy()), atol=1e-8)
    np.testing.assert_allclose(of_a[1].numpy(), np.zeros((2, 1)), atol=1e-8)
    of_z = get_numerical_jacobian_wrt_specific_input(function, 1, (a, z), function(a, z), 1e-6)
    # Re z^2 = x^2 - y^2: the derivatives are 2x and -2y.
    np.testing.assert_allclose(of_z[1][:, 0].numpy(), 2 * z.detach().numpy().conj(), atol=1e-8)
    with pytest.raises(AssertionError, match="requires_grad=True"):
        get_numerical_jacobian_wrt_specific_input(torch.sin, 0, (a.detach(),), a.sin(), 1e-6)

    def turned(a: torch.Tensor) -> torch.Tensor:
        return a * 1j

    with pytest.raises(AssertionError, match="Expected ds_dx to be real-valued"):
        get_numerical_jacobian_wrt_specific_input(turned, 0, (a,), turned(a), 1e-6)
    (found,) = get_numerical_jacobian_wrt_specific_input(
        turned, 0, (a,), turned(a), 1e-6, is_forward_ad=True
    )
    np.testing.assert_allclose(found.numpy(), 1j * np.eye(2), atol=1e-8)


def test_the_analytical_jacobians_of_an_output() -> None:
    a, b = leaf(2, 2), leaf(3)
    with pytest.warns(FutureWarning, match="`get_analytical_jacobian` was part of"):
        found = get_analytical_jacobian((a, [b, 1.0]), a.exp())
    (of_a, of_b), *flags = found
    assert flags == [True, True, True]
    np.testing.assert_allclose(of_a.numpy(), np.diag(np.exp(a.detach().numpy().ravel())))
    np.testing.assert_array_equal(of_b.numpy(), np.zeros((3, 4)))
    noisy = custom(lambda x: x * 1, lambda saved, g: g * torch.rand_like(g))
    with pytest.warns(FutureWarning):
        assert get_analytical_jacobian((a,), noisy(a))[1:] == (False, True, True)
    with pytest.warns(FutureWarning):
        assert get_analytical_jacobian((a,), noisy(a), nondet_tol=1.0)[1] is True
    with pytest.warns(FutureWarning), pytest.raises(ValueError, match="Expected grad_out to be 1"):
        get_analytical_jacobian((a,), a.exp(), grad_out=2.0)
    with pytest.warns(FutureWarning), pytest.raises(ValueError, match="output to be non-complex"):
        get_analytical_jacobian((a,), a * 1j)


def test_the_name_of_the_module_is_the_function_of_the_package() -> None:
    assert callable(torch.autograd.gradcheck)
    assert sys.modules["pullback.autograd.gradcheck"].gradcheck is torch.autograd.gradcheck
    assert torch.autograd.gradgradcheck is gradgradcheck


def test_importing_the_package_loads_only_the_face() -> None:
    program = (
        "import sys, pullback\n"
        "loaded = [m for m in sys.modules if m.startswith('pullback.autograd.gradcheck.')]\n"
        "x = pullback.ones(1, dtype=pullback.float64, requires_grad=True)\n"
        "print(loaded, pullback.autograd.gradcheck(pullback.sin, x))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[] True", done.stderr
