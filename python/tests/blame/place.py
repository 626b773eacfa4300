"""Programs whose lines stand in all the places that Python has for an expression."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from blame.program import FREED, LEAF_WRITE, STALE, UNUSED, broken

import pullback as torch
from pullback import nn
from pullback.autograd import Function, grad


def leaf() -> Any:
    return torch.ones(3, requires_grad=True)


@broken(STALE)
def in_a_lambda() -> None:
    grow = lambda t: t.exp()  # noqa: E731  # made: ExpBackward0
    y = grow(leaf())
    shift = lambda t: t.add_(1)  # noqa: E731  # wrote: add_
    shift(y)
    y.sum().backward()


@broken(STALE)
def in_comprehensions() -> None:
    made = [
        x.exp()  # made: ExpBackward0
        for x in (leaf(), leaf())
    ]
    written = {
        k: y.neg_()  # wrote: neg_
        for k, y in enumerate(made)
    }
    written[1].sum().backward()


@broken(STALE)
def in_a_nested_function() -> None:
    def outer() -> Any:
        def inner() -> Any:
            return x.exp()  # made: ExpBackward0

        return inner()

    x = leaf()
    y = outer()
    y.neg_()  # wrote: neg_
    y.sum().backward()


@broken(STALE)
def under_a_decorator() -> None:
    def in_place(run: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @functools.wraps(run)
        def wrapped(x: Any) -> Any:
            return run(x).mul_(2)  # wrote: mul_

        return wrapped

    @in_place
    def layer(x: Any) -> Any:
        return x.tanh()  # made: TanhBackward0

    layer(leaf()).sum().backward()


@broken(STALE)
def in_a_generator() -> None:
    def states() -> Iterator[Any]:
        x = leaf()
        while True:
            x = x.sigmoid()  # made: SigmoidBackward0
            yield x

    h = next(states())
    h.mul_(2)  # wrote: mul_
    h.sum().backward()


@broken(STALE)
def in_a_generator_expression() -> None:
    made = (
        x.exp()  # made: ExpBackward0
        for x in (leaf(), leaf())
    )
    total = sum(
        y.neg_()  # wrote: neg_
        for y in made
    )
    total.sum().backward()


@broken(STALE)
def in_coroutines() -> None:
    async def make() -> Any:
        await asyncio.sleep(0)
        return leaf().exp()  # made: ExpBackward0

    async def stream() -> AsyncIterator[Any]:
        y = await make()
        y.add_(1)  # wrote: add_
        yield y

    async def main() -> None:
        async for y in stream():
            y.sum().backward()

    asyncio.run(main())


@broken(STALE)
def in_a_class_method_and_a_property() -> None:
    class Model:
        weight = torch.ones(3, requires_grad=True)

        @classmethod
        def output(cls) -> Any:
            return cls.weight.exp()  # made: ExpBackward0

        @property
        def loss(self) -> Any:
            y = self.output()
            y += 1  # wrote: add_
            return y.sum()

    Model().loss.backward()


@broken(STALE)
def in_the_body_of_a_class() -> None:
    class Model:
        y = leaf().exp()  # made: ExpBackward0
        y.add_(1)  # wrote: add_

    Model.y.sum().backward()


@broken(STALE)
def in_a_special_method() -> None:
    class Box:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __matmul__(self, other: Box) -> Box:
            return Box(self.inner * other.inner)  # made: MulBackward0

        def __iadd__(self, other: float) -> Box:
            self.inner += other  # wrote: add_
            return self

    x, y = Box(leaf()), Box(leaf() * 1)
    z = x @ y
    y += 1.0
    z.inner.sum().backward()


@broken(STALE)
def in_a_call_of_many_lines() -> None:
    x = leaf()
    y = torch.pow(  # made: PowBackward1
        x * 1,
        torch.add(
            torch.ones(3),
            x,
        ),
    )
    y.add_(  # wrote: add_
        torch.ones(
            3,
        ),
        alpha=2,
    )
    y.sum().backward()


@broken(STALE)
def in_a_chain_of_methods_over_lines() -> None:
    y = (
        leaf().mul(2).exp()  # made: ExpBackward0
    )
    (
        y.view(3, 1).squeeze(1).mul_(2)  # wrote: mul_
    )
    y.sum().backward()


@broken(STALE)
def in_an_operator_over_lines() -> None:
    x = leaf()
    saved = x.exp()
    y = (
        saved  # made: MulBackward0
        * x
    )
    saved.mul_(2)  # wrote: mul_
    y.sum().backward()


@broken(STALE)
def in_a_context_manager_of_the_users() -> None:
    @contextlib.contextmanager
    def shifted(t: Any) -> Iterator[Any]:
        y = t.exp()  # made: ExpBackward0
        yield y
        y.add_(1)  # wrote: add_

    with shifted(leaf()) as y:
        loss = y.sum()
    loss.backward()


@broken(STALE)
def in_a_finally_clause() -> None:
    y = leaf().exp()  # made: ExpBackward0
    with contextlib.suppress(KeyError):
        try:
            raise KeyError
        finally:
            y.neg_()  # wrote: neg_
    y.sum().backward()


@broken(STALE)
def in_a_default_argument_and_a_walrus() -> None:
    x = leaf()

    def shift(
        t: Any = x.exp(),  # noqa: B008  # made: ExpBackward0
    ) -> Any:
        return t

    (y := shift()).add_(1)  # wrote: add_
    y.sum().backward()


@broken(STALE)
def in_a_formatted_string() -> None:
    y = leaf().exp()  # made: ExpBackward0
    _ = f"after the write it is {y.add_(1)}"  # wrote: add_
    y.sum().backward()


@broken(STALE)
def in_a_partial_and_a_map() -> None:
    shift = functools.partial(torch.Tensor.add_, other=1)
    (y,) = map(torch.exp, [leaf()])  # made: ExpBackward0
    shift(y)  # wrote: add_
    y.sum().backward()


@broken(STALE)
def in_another_thread() -> None:
    def work() -> None:
        made.append(leaf().exp())  # made: ExpBackward0

    made: list[Any] = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    made[0].add_(1)  # wrote: add_
    made[0].sum().backward()


@broken(STALE)
def in_a_pool_of_threads() -> None:
    def write(t: Any) -> Any:
        return t.add_(1)  # wrote: add_

    y = leaf().exp()  # made: ExpBackward0
    with ThreadPoolExecutor(1) as pool:
        pool.submit(write, y).result()
    y.sum().backward()


@broken(FREED)
def in_a_thread_that_goes_backward() -> None:
    def work() -> None:
        y.backward(retain_graph=False)  # freed

    y = leaf().exp().prod()  # made: ProdBackward0
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    y.backward()


@broken(UNUSED)
def in_a_recursion() -> None:
    def power(x: Any, n: int) -> Any:
        if n == 0:
            return torch.ones(3, requires_grad=True)
        return power(x, n - 1) * 2  # output: MulBackward0

    h = leaf() * 1  # input: MulBackward0
    grad(power(h, 3), h, torch.ones(3))


@broken(LEAF_WRITE)
def in_an_assertion_of_the_users() -> None:
    x = leaf()
    assert x.neg_() is x  # write


@broken(STALE)
def in_the_backward_of_a_custom_function() -> None:
    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return (grad * 2).exp() * x  # made: MulBackward0

    x, v = leaf(), leaf()
    (slope,) = grad(Square.apply(x), x, v, create_graph=True)
    with torch.no_grad():
        x.add_(1)  # wrote: add_
    slope.sum().backward()


@broken(STALE)
def in_a_hook_of_a_gradient() -> None:
    def scale(slope: Any) -> Any:
        return slope.exp()  # made: ExpBackward0

    x, v = leaf(), leaf()
    y = x.view(3)
    y.register_hook(scale)
    (slope,) = grad(y, y, v, create_graph=True)
    slope.add_(1)  # wrote: add_
    slope.sum().backward()


@broken(STALE)
def the_node_that_a_backward_made_has_the_line_of_its_forward() -> None:
    x, v = leaf(), leaf()
    factor = torch.ones(3)
    y = x * factor  # made: MulBackward0
    (slope,) = grad(y, x, v, create_graph=True)
    factor.add_(1)  # wrote: add_
    slope.sum().backward()


@broken(STALE)
def a_power_with_the_number_at_the_left() -> None:
    y = 2 ** leaf()  # made: PowBackward2
    y.mul_(2)  # wrote: mul_
    y.sum().backward()


@broken(LEAF_WRITE)
def the_write_of_a_row_that_the_package_iterates_over() -> None:
    rows = [torch.ones(3, requires_grad=True)]
    for row in reversed(rows):
        row.exp_()  # write


@broken(UNUSED)
def a_method_that_the_package_writes_in_python() -> None:
    x = leaf()
    turned = reversed(x * 1)  # input: FlipBackward0
    grad(x.sum(), turned)  # output: SumBackward0


@broken(STALE)
def a_forward_pre_hook_and_a_container() -> None:
    def double(module: Any, given: Any) -> Any:
        return (given[0].exp(),)  # made: ExpBackward0

    net = nn.ModuleList([nn.Sequential(nn.Identity())])
    net[0].register_forward_pre_hook(double)
    y = net[0](leaf())
    y.sub_(1)  # wrote: sub_
    y.sum().backward()
