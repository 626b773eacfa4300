"""Gradients checked against finite differences: ``gradcheck`` and ``gradgradcheck``.

This file holds what programs call, and nothing that costs time when the package is imported: the
work is done in the modules beside it, which are loaded by the first check. ``check`` says what is
checked in which order; start there. ``problem`` holds the function and its point, ``numerical``
the differences, ``analytical`` the derivatives of backward and ``forward`` those of forward mode,
``comparison`` the two set side by side, ``backward`` and ``batch`` what else a derivative must do.

A Jacobian is a matrix here with a row for each element of the input and a column for each element
of the output. For a complex input ``x + iy`` and a real output ``s`` its entries are
``ds/dx + i ds/dy``, which is the gradient that backward gives.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from .problem import Options

__all__ = [
    "gradcheck",
    "gradgradcheck",
    "GradcheckError",
    "get_numerical_jacobian",
    "get_analytical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
]


class GradcheckError(RuntimeError):
    """A derivative is not what :func:`gradcheck` or :func:`gradgradcheck` expects."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compares derivatives with central differences ``(f(x + eps e) - f(x - eps e)) / (2 eps)``.

    Checked are the inputs that require grad against the outputs that do. A derivative passes if
    ``|analytical - numerical| <= atol + rtol |numerical|`` for all of its entries. The tolerances
    are for double precision: single precision will fail, and a warning says so. At a kink the two
    may differ although neither is wrong. A complex output is checked as two functions, its real
    and its imaginary part; for forward mode a complex input is.

    An input is changed in place while differences are taken, and put back, also after an error.

    Args:
        func: takes the inputs, gives a tensor or a tuple or list of tensors.
        inputs: a tensor, or a tuple or list of arguments, of which some may be no tensors.
        eps: the distance of the two points of a difference.
        atol: the absolute tolerance.
        rtol: the relative tolerance.
        raise_exception: False gives False for a derivative that is wrong, instead of an error.
            Errors of other kinds are raised all the same.
        nondet_tol: how far two backward passes from the same gradients may lie apart.
        check_undefined_grad: also check that outputs without a gradient (forward mode: inputs
            without a tangent) count as zero.
        check_grad_dtypes: also check that gradients have the dtype of their inputs, and that
            tangents are complex where their outputs are.
        check_batched_grad: also compare backward under ``vmap`` with a loop.
        check_batched_forward_grad: also compare forward mode under ``vmap`` with a loop.
        check_forward_ad: check the derivatives of forward mode.
        check_backward_ad: check those of backward.
        fast_mode: compare products ``u J v`` with random unit vectors instead of whole Jacobians:
            two calls of ``func`` and two backward passes for each pair of tensors.
        masked: of sparse inputs, whether only what is specified changes; for others, True lets a
            gradient of zero be zero within a tolerance only.

    Returns:
        True; False only with ``raise_exception=False``.

    Raises:
        GradcheckError: (a RuntimeError) for a derivative that fails; the message has both values.
        ValueError: if no input requires grad, or an output is sparse.
        RuntimeError: if an input has elements that share memory (a stride of 0).
        AssertionError: for arguments that contradict each other, and for outputs whose number,
            shapes or dtypes depend on the values of the inputs.
        NotImplementedError: for layouts that this build does not have.
    """
    _require(
        check_forward_ad or check_backward_ad,
        "Expected at least one of check_forward_ad or check_backward_ad to be True",
    )
    _require(
        check_backward_ad or not check_batched_grad,
        "Setting check_batched_grad=True requires check_backward_ad to be True",
    )
    _require(
        check_forward_ad or not check_batched_forward_grad,
        "Setting check_batched_forward_grad=True requires check_forward_ad to be True",
    )
    from .problem import Options

    options = Options(
        eps=eps,
        atol=atol,
        rtol=rtol,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_batched_forward_grad=check_batched_forward_grad,
        check_forward_ad=check_forward_ad,
        check_backward_ad=check_backward_ad,
        fast_mode=fast_mode,
        masked=bool(masked),
    )
    return _verdict(func, inputs, options, raise_exception)


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compares second derivatives with central differences of the first.

    The function that :func:`gradcheck` is given takes the inputs and a gradient for each output,
    and returns the gradients of the inputs; both kinds of arguments are differentiated.

    Args:
        func: as for :func:`gradcheck`.
        inputs: as for :func:`gradcheck`.
        grad_outputs: a gradient for each output that requires grad; those that require grad
            themselves are checked, None stands for ones of a single real element. Left out:
            random ones between -1 and 1.
        eps: the distance of the two points of a difference.
        atol: the absolute tolerance.
        rtol: the relative tolerance.
        gen_non_contig_grad_outputs: make the random gradients not contiguous.
        raise_exception: False gives False for a derivative that is wrong, instead of an error.
        nondet_tol: how far two backward passes from the same gradients may lie apart.
        check_undefined_grad: also check that gradients which are missing count as zero.
        check_grad_dtypes: also check the dtypes of the second derivatives.
        check_batched_grad: also compare the second backward under ``vmap`` with a loop.
        check_fwd_over_rev: check forward mode through backward.
        check_rev_over_rev: check backward through backward.
        fast_mode: compare products with random vectors instead of whole Jacobians.
        masked: as for :func:`gradcheck`.

    Returns:
        True; False only with ``raise_exception=False``.

    Raises:
        GradcheckError: (a RuntimeError) for a derivative that fails; the message has both values.
        AssertionError: for arguments that contradict each other.
        ValueError: as for :func:`gradcheck`.
    """
    _require(
        check_fwd_over_rev or check_rev_over_rev,
        "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True",
    )
    for given, name in (
        (check_undefined_grad, "check_undefined_grad"),
        (check_batched_grad, "check_batched_grad"),
    ):
        _require(
            check_rev_over_rev or not given,
            f"Setting {name}=True requires check_rev_over_rev to be True",
        )
    from .second_order import first_derivative

    function, arguments = first_derivative(func, inputs, grad_outputs, gen_non_contig_grad_outputs)
    return gradcheck(
        function,
        arguments,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def get_numerical_jacobian(
    fn: Callable[[Any], Any],
    inputs: Any,
    target: Any = None,
    eps: float = 1e-3,
    grad_out: float = 1.0,
) -> tuple[Tensor, ...]:
    """The Jacobians of the first output by central differences. Deprecated.

    Args:
        fn: takes all inputs as one argument.
        inputs: what ``fn`` takes.
        target: the tensors to differentiate by, instead of the inputs; nested as one likes.
        eps: the distance of the two points of a difference.
        grad_out: must be 1.

    Returns:
        A Jacobian for each tensor in ``target`` that requires grad.

    Raises:
        ValueError: for another ``grad_out``, and for complex outputs.
    """
    _warn_of_old("get_numerical_jacobian")
    _require_unit("get_numerical_jacobian", grad_out)
    from .numerical import first_jacobians

    return first_jacobians(fn, inputs, inputs if target is None else target, eps)


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable[..., Any],
    input_idx: int,
    inputs: Any,
    outputs: Any,
    eps: float,
    input: Tensor | None = None,
    is_forward_ad: bool = False,
) -> tuple[Tensor, ...]:
    """The Jacobians of all outputs with respect to one input, by central differences.

    Args:
        fn: takes the inputs as arguments.
        input_idx: which of the inputs.
        inputs: the inputs.
        outputs: what ``fn`` gives for them; outputs without a floating dtype are left out.
        eps: the distance of the two points of a difference.
        input: a tensor to differentiate by, instead of the one at ``input_idx``.
        is_forward_ad: whether outputs for a real input may be complex.

    Raises:
        AssertionError: if the tensor does not require grad, or an output is complex.
    """
    from .numerical import jacobians_of

    target = inputs[input_idx] if input is None else input
    return jacobians_of(fn, inputs, outputs, target, eps, is_forward_ad)


def get_analytical_jacobian(
    inputs: Any, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """The Jacobians of an output by backward, a pass for each of its elements. Deprecated.

    Args:
        inputs: the tensors to differentiate by, nested as one likes.
        output: a tensor with a graph.
        nondet_tol: how far two passes may lie apart.
        grad_out: must be 1.

    Returns:
        A Jacobian for each tensor that requires grad; whether two passes gave the same; whether
        the gradients had the right sizes; whether they had the right dtypes.

    Raises:
        ValueError: for another ``grad_out``, and for a complex output.
    """
    _warn_of_old("get_analytical_jacobian")
    _require_unit("get_analytical_jacobian", grad_out)
    from .analytical import observed_jacobians

    return observed_jacobians(inputs, output, nondet_tol)


def _require(holds: bool, message: str) -> None:
    # An `assert` would be gone under `python -O`.
    if not holds:
        raise AssertionError(message)


def _verdict(
    func: Callable[..., Any], inputs: Any, options: Options, raise_exception: bool
) -> bool:
    from .check import run

    try:
        run(func, inputs, options)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _warn_of_old(name: str) -> None:
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and is deprecated; use gradcheck.",
        FutureWarning,
        stacklevel=3,
    )


def _require_unit(name: str, grad_out: float) -> None:
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0 in {name}, but got {grad_out}.")
