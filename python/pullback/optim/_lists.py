"""What the optimisers share that step a group at a time, on parallel lists of tensors.

`ListOptimizer` gathers the lists of a group (parameters, gradients, state); `run_step` gives them
to the native kernel of the optimiser, or, where the step itself is to be differentiated, parameter
by parameter to the same rule in tensor operations. Invariant: both give the same numbers up to
rounding.

A new optimiser is a `ListOptimizer` with its options and the names of its state, a function on
lists that ends in `run_step`, and its rule twice: an entry of `ops/optim` and a few lines here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

from .. import Tensor, tensor, view_as_real
from .optimizer import (
    Closure,
    Optimizer,
    ParamGroup,
    are_native,
    check_capturable,
    check_fused,
    evaluate,
    scalar_of,
    step_dtype,
    use_grad_for_differentiable,
)

State = dict[str, Any]

_WORDS = {"lr": "learning rate", "eps": "epsilon value"}


def check_options(**options: Any) -> None:
    """Raises `ValueError` for negative or NaN values, and for `lr` of several elements."""
    lr = options.get("lr")
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    for name, value in options.items():
        # Written as `not (valid)` so that a NaN is refused as well.
        if not value >= 0.0:
            raise ValueError(f"Invalid {_WORDS.get(name, f'{name} value')}: {value}")


def check_betas(betas: Sequence[Any]) -> None:
    """Raises `ValueError` unless both decay rates are in `[0, 1)`."""
    for index in (0, 1):
        if not 0.0 <= betas[index] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {betas[index]}")


def check_fused_flags(fused: bool | None, foreach: bool | None, differentiable: bool) -> None:
    """Raises `RuntimeError` for what `fused=True` cannot be combined with."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def number_state(group: ParamGroup, param: Tensor, value: float = 0.0) -> Tensor:
    """A number of the state (the count of steps) as a 0-dim tensor.

    On the CPU unless a kernel on the device needs it: reading it there costs more.
    """
    dtype = step_dtype(group.get("fused"))
    if group.get("capturable") or group.get("fused"):
        return tensor(value, dtype=dtype, device=param.device)
    return tensor(value, dtype=dtype)


class ListOptimizer(Optimizer):
    """Base class of optimisers whose step is one call on the lists of a group.

    A subclass says which options and which state its function on lists takes.
    """

    # The function on lists takes the parameters, the gradients, the state by these names in this
    # order, and these options; "betas" become `beta1` and `beta2`.
    _state_names: ClassVar[tuple[str, ...]]
    _options: ClassVar[tuple[str, ...]]
    _flags: ClassVar[tuple[str, ...]] = ("foreach", "maximize", "differentiable", "capturable")
    # The native op of the step, the state that it takes, in its order, and its options but for the
    # betas.
    _kernel: ClassVar[Callable[..., None]]
    _kernel_states: ClassVar[tuple[str, ...]]
    _kernel_options: ClassVar[tuple[str, ...]]
    # The names of the state that are numbers, one for each parameter.
    _numbers: ClassVar[tuple[str, ...]] = ("step",)
    # Options that checkpoints of earlier versions lack.
    _later_options: ClassVar[dict[str, Any]] = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }
    # The name of the optimiser in errors.
    _name: ClassVar[str]
    # Set for `fused=True`: the kernel divides gradients by the scale of mixed precision.
    _step_supports_amp_scaling: bool

    def __setstate__(self, state: State) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self._later_options.items():
                group.setdefault(name, value)
            for param in group["params"]:
                param_state = self.state.get(param) or {}
                for name in self._numbers if param_state else ():
                    # Old checkpoints hold plain numbers.
                    if not isinstance(param_state[name], Tensor):
                        number = float(param_state[name])
                        param_state[name] = self._number(group, param, number)

    _number = staticmethod(number_state)

    @use_grad_for_differentiable
    def step(self, closure: Closure | None = None) -> Any:
        """Updates the parameters once; returns what `closure` returned, if given."""
        loss = None if closure is None else evaluate(closure)
        for group in self.param_groups:
            self._step_group(group)
        return loss

    def _step_group(self, group: ParamGroup) -> None:
        params = group["params"]
        grads = [grad for param in params if (grad := param.grad) is not None]
        if len(grads) != len(params):
            params = [param for param in params if param.grad is not None]
        if not params:
            return
        all_states = self.state
        states = [all_states[param] for param in params]
        if not all(states):
            self._check_grads(grads)
            for param, grad, state in zip(params, grads, states, strict=True):
                if not state:
                    if group.get("fused"):
                        check_fused(param)
                    state.update(self._first_state(group, param, grad))
        unused = self._unused_states(group)
        kernel = self._kernel_of(group)
        if kernel is not None and are_native(grads):
            columns = _columns(states, self._kernel_states, unused)
            try:
                kernel(params, grads, *columns, **self._keywords(group))
                return
            except TypeError:
                # Options or numbers of the state that the op does not take as they are. It was not
                # called; below they are converted, or refused.
                pass
        columns = _columns(states, self._state_names, unused)
        options = {name: group[name] for name in (*self._options, *self._flags)}
        if "betas" in options:
            options["beta1"], options["beta2"] = options.pop("betas")
        self._update([params, grads, *columns], options)

    def _kernel_of(self, group: ParamGroup) -> Callable[..., None] | None:
        """The op that makes the whole step of a group with these options, if there is one.

        A learning rate in a tensor is given to it as such, and read there.
        """
        if group["differentiable"] or group.get("capturable"):
            return None
        if isinstance(group.get("lr"), Tensor) and group["foreach"]:
            return None
        attributes = self.__dict__
        if "grad_scale" in attributes or "found_inf" in attributes:
            return None
        return type(self)._kernel

    def _keywords(self, group: ParamGroup) -> dict[str, Any]:
        """The options as the op takes them."""
        options = {name: group[name] for name in self._kernel_options}
        if "betas" in self._options:
            options["beta1"], options["beta2"] = group["betas"]
        return options

    def _unused_states(self, group: ParamGroup) -> tuple[str, ...]:
        """The names of state that the options do not need: the lists are empty."""
        return ()

    def _first_state(self, group: ParamGroup, param: Tensor, grad: Tensor) -> State:
        """The state before the first step of a parameter."""
        raise NotImplementedError

    def _update(self, lists: list[Any], options: dict[str, Any]) -> None:
        """Calls the function on lists."""
        raise NotImplementedError

    def _check_grads(self, grads: list[Tensor]) -> None:
        check_dense(grads, self._name)


def _columns(
    states: list[State], names: tuple[str, ...], unused: tuple[str, ...]
) -> list[list[Tensor]]:
    """The state of all parameters, a list for each name."""
    return [[] if name in unused else [state[name] for state in states] for name in names]


def check_dense(grads: list[Tensor], name: str) -> None:
    """Raises `RuntimeError` for sparse gradients."""
    if any(grad.is_sparse for grad in grads):
        advice = ", please consider SparseAdam instead" if name == "Adam" else ""
        raise RuntimeError(f"{name} does not support sparse gradients{advice}")


def check_numbers(**lists: Sequence[Any]) -> None:
    """Raises `RuntimeError` unless the lists hold tensors."""
    for name, numbers in lists.items():
        if not all(issubclass(kind, Tensor) for kind in set(map(type, numbers))):
            raise RuntimeError(
                f"API has changed, `{name}` argument must contain a list of singleton tensors"
            )


def run_step(
    name: str,
    kernel: Callable[..., None],
    plain: Callable[..., None],
    tensors: Sequence[list[Tensor]],
    numbers: dict[str, list[Tensor]],
    options: dict[str, Any],
    *,
    capturable: bool = False,
    differentiable: bool = False,
    takes_sparse: bool = False,
) -> None:
    """One step of the optimiser `name`: by `kernel`, or by `plain` if it is to be differentiated.

    `tensors` are the lists of parameters, gradients and buffers, where an empty list stands for
    buffers that the options do not ask for; `numbers` are lists of 0-dim tensors by their names,
    the counts of steps first. `plain` takes the options and what belongs to one parameter.
    """
    check_numbers(**numbers)
    counted = list(numbers.values())
    if capturable:
        for list_ in counted:
            check_capturable(tensors[0], list_)
    lists = list(tensors)
    is_native = are_native(lists[1])
    if not is_native and any(grad.is_complex() for grad in lists[1]):
        # The optimisers treat a complex number as two real ones.
        lists = [[view_as_real(t) if t.is_complex() else t for t in list_] for list_ in lists]
        is_native = are_native(lists[1])
    options = {key: scalar_of(value) for key, value in options.items()}
    if differentiable or not is_native:
        if not takes_sparse:
            check_dense(lists[1], name)
        rule = SimpleNamespace(**options, capturable=capturable, differentiable=differentiable)
        missing: list[Any] = [None] * len(lists[0])
        columns = [column or missing for column in lists]
        for row in zip(*columns, *counted, strict=True):
            plain(rule, *row)
        return
    # A learning rate in a tensor is read by the kernel: a step that is repeated reads it anew.
    numeric = {
        k: v.item() if isinstance(v, Tensor) and k != "lr" else v for k, v in options.items()
    }
    kernel(*lists, *counted, **numeric)


def climb(rule: Any, grad: Tensor) -> Tensor:
    """The gradient, negated for `maximize`."""
    return -grad if rule.maximize else grad


def decay(rule: Any, param: Tensor, grad: Tensor) -> Tensor:
    """The gradient as the rule takes it: negated for `maximize`, plus the L2 penalty.

    With `decoupled_weight_decay` the penalty shrinks the parameter instead.
    """
    grad = climb(rule, grad)
    if rule.weight_decay == 0:
        return grad
    if getattr(rule, "decoupled_weight_decay", False):
        param.mul_(1 - rule.lr * rule.weight_decay)
        return grad
    return grad.add(param, alpha=rule.weight_decay)
