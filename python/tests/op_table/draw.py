"""Random ops, compared by PyTorch's stream of numbers for one seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from op_table.call import OWN, PROBABILITY, Library, Op, Tensor, as_dtype, call, of, with_, x

TURNED = x(3, 4, layout="transposed")


def filling(method: str, lib: Library) -> Callable[..., Tensor]:
    """A method that fills a tensor, as a function of the tensor that fills a copy."""
    return lambda tensor, *rest: getattr(tensor.clone(), method)(*rest)


def ops() -> Iterator[Op]:
    """All ops of this module."""
    probabilities = x(2, 3, domain=PROBABILITY)
    drawn = {
        "cauchy": ((), (1.0, 2.0), (0.0, -1.0)),
        "exponential": ((), (2.5,), (0.0,)),
        "geometric": ((0.25,), (1.5,), (0.0,)),
        "log_normal": ((), (0.5, 0.25), (1.0, -1.0)),
        "uniform": ((), (-1.0, 3.0), (2.0, 1.0)),
    }
    for name, arguments in drawn.items():
        calls = [call(given, *some) for some in arguments for given in (x(5), TURNED, x())]
        first = arguments[0]
        yield Op(
            name,
            (*calls, call(x(0), *first)),
            function=partial(filling, f"{name}_"),
            scaled=lambda n, first=first: call(x(n), *first),
        )
    yield Op(
        "bernoulli",
        (
            call(probabilities),
            call(x(2, 3), 0.25),
            call(x(3, 2, domain=PROBABILITY, layout="transposed")),
            call(x(domain=PROBABILITY)),
            call(x(0)),
            call(of(1.5)),
        ),
        scaled=lambda n: call(x(n, domain=PROBABILITY)),
    )
    yield Op(
        "normal",
        (
            call(x(5), 2.0),
            call(1.0, x(5, domain=PROBABILITY)),
            call(x(2, 3), x(3, domain=PROBABILITY, seed=1)),
            call(x(20), 1.0),
            with_(call(1.0, 2.0, (2, 3)), variant="number_mean"),
            with_(call(1.0, 2.0, (20,), dtype=OWN), variant="number_mean"),
            with_(call(0.0, -1.0, (2,)), variant="number_mean"),
            *(
                with_(
                    c,
                    variant="in_place",
                    function=lambda lib: lambda t, *rest: t.clone().normal_(*rest),
                )
                for c in (call(x(5)), call(x(20), 1.0, 2.0), call(TURNED), call(x(3), 0.0, -1.0))
            ),
        ),
        scaled=lambda n: call(x(n), 2.0),
    )
    yield Op(
        "multinomial",
        (
            call(x(4, domain=PROBABILITY), 2),
            call(x(2, 4, domain=PROBABILITY), 6, replacement=True),
            call(x(3, domain=PROBABILITY), 4),
            call(of(0.0, 0.0), 1),
            call(of(-1.0, 1.0), 1),
            call(x(3, domain=PROBABILITY), 0),
        ),
        scaled=lambda n: call(x(n // 5, 5, domain=PROBABILITY), 2),
    )
    yield Op(
        "randint",
        (
            call(5, (2, 3)),
            call(2, 9, (20,)),
            call(2, 7, (4,), dtype=OWN),
            call(0, (2,)),
            call(3, (0,)),
            call(0, 1 << 40, (3,)),
        ),
        scaled=lambda n: call(5, (n,)),
    )
    yield Op(
        "randn",
        (
            call(2, 3),
            call((20,)),
            call(4, dtype=OWN),
            call(()),
            call(0),
            call(3, dtype=as_dtype("c128")),
        ),
        scaled=lambda n: call(n),
    )
