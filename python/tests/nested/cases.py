"""A call for every rule of nested tensors. Each is compared with a loop over the components."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pullback as torch

F = torch.nn.functional
Call = Callable[..., Any]


@dataclass
class Case:
    """``nested`` is called with a nested tensor, ``single`` with each component."""

    names: tuple[str, ...]
    nested: Call
    single: Call
    # How results of components become that of the whole: nested, stacked, or ("total") the call on
    # all components one below another.
    result: str = "nested"
    prepare: Call | None = None


def same(*names: str, call: Call, **kwargs: Any) -> Case:
    return Case(names, call, call, **kwargs)


def named(name: str, *args: Any, prepare: Call | None = None) -> Case:
    """The function of the name, wherever it is: as method, in ``torch`` or in ``functional``."""

    # (The call of `F.logsigmoid` has the name of its op.)
    where = name.replace("log_sigmoid", "logsigmoid")

    def call(x: Any) -> Any:
        for space in (torch.Tensor, torch, F):
            if callable(getattr(space, where, None)):
                return getattr(space, where)(x, *args)
        return getattr(torch.special, name)(x, *args)

    return Case((name,), call, call, prepare=prepare)


def whole(x: Any) -> Any:
    return (x * 4).to(torch.int64)


def positive(x: Any) -> Any:
    return x.abs() + 0.1


def above_one(x: Any) -> Any:
    return x.abs() + 1.1


def inside(x: Any) -> Any:
    return x.sigmoid()


PREPARED: dict[str, Call] = {
    **dict.fromkeys(
        ("log", "log10", "log1p", "log2", "sqrt", "rsqrt", "lgamma", "digamma"), positive
    ),
    **dict.fromkeys(("acosh", "arccosh"), above_one),
    **dict.fromkeys(
        ("acos", "arccos", "asin", "arcsin", "atanh", "arctanh", "erfinv", "logit"), inside
    ),
    **dict.fromkeys(("bitwise_not", "__invert__"), whole),
}
# Those of the unary names that need more arguments, draw, or are ops only.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "threshold": (0.1, 2.0),
    "dropout": (0.0, False),
    "alpha_dropout": (0.0, False),
    "to": (torch.float32,),
    "type": (torch.float32,),
    "full_like": (3.0,),
}
APART = {"_to_copy", "alias", "bernoulli", "empty_like", "rand_like", "randn_like"}

W = torch.arange(20.0, dtype=torch.float64).reshape(5, 4).cos()
ROWS = torch.arange(25.0, dtype=torch.float64).reshape(5, 5).sin()
TABLE = torch.arange(30.0, dtype=torch.float64).reshape(10, 3).sin()


def index_of(x: Any) -> Any:
    return x.select(-1, 0).abs().mul(3).to(torch.int64).clamp(0, 9)


OTHERS = [
    same("where", call=lambda x: torch.where(x > 0, x, x * 2)),
    same("masked_fill", call=lambda x: x.masked_fill(x > 0, 1.5)),
    same("addcmul", call=lambda x: torch.addcmul(x, x, x, value=0.5)),
    same("addcdiv", call=lambda x: torch.addcdiv(x, x, x.exp(), value=0.5)),
    same("lerp", call=lambda x: torch.lerp(x, x * x, 0.3)),
    same("clamp", call=lambda x: x.clamp(-0.5, 0.5)),
    same("clip", call=lambda x: x.clip(min=-0.5)),
    same("clamp_min", call=lambda x: x.clamp_min(0.1)),
    same("clamp_max", call=lambda x: x.clamp_max(0.1)),
    same("isclose", call=lambda x: torch.isclose(x, x + 1e-12)),
    same("ldexp", call=lambda x: torch.ldexp(x, torch.tensor(2))),
    same("heaviside", call=lambda x: torch.heaviside(x.detach(), x.detach() * 0)),
    same("add", call=lambda x: x + ROWS[0]),
    # Reductions.
    Case(("sum",), lambda x: x.sum(1), lambda x: x.sum(0), "stacked"),
    Case(("sum",), lambda x: x.sum(1, keepdim=True), lambda x: x.sum(0, keepdim=True), "stacked"),
    Case(("sum",), lambda x: x.sum(), lambda x: x.sum(), "total"),
    Case(("sum",), lambda x: x.sum((0, 1)), lambda x: x.sum(0), "total"),
    same("sum", call=lambda x: x.sum(-1)),
    same("sum", call=lambda x: x.sum(-1, keepdim=True)),
    *(
        Case(
            (name,),
            lambda x, name=name: getattr(x, name)(dim=1),
            lambda x, name=name: getattr(x, name)(dim=0),
            "stacked",
        )
        for name in (
            "mean",
            "prod",
            "amax",
            "amin",
            "logsumexp",
            "nansum",
            "nanmean",
            "argmax",
            "argmin",
            "any",
            "all",
            "count_nonzero",
        )
    ),
    *(
        same(name, call=lambda x, name=name: getattr(x, name)(dim=-1))
        for name in ("mean", "prod", "amax", "amin", "var", "std", "logsumexp", "argmax", "any")
    ),
    *(
        Case(
            (name,),
            lambda x, name=name: getattr(x, name)(1)[0],
            lambda x, name=name: getattr(x, name)(0)[0],
            "stacked",
        )
        for name in ("max", "min")
    ),
    same("max", call=lambda x: torch.max(x, x * x)),
    # (One component has a single row: no degree of freedom is to be taken from it.)
    *(
        Case(
            (name,),
            lambda x, name=name: getattr(x, name)(dim=1, correction=0),
            lambda x, name=name: getattr(x, name)(dim=0, correction=0),
            "stacked",
        )
        for name in ("var", "std")
    ),
    Case(("norm",), lambda x: x.norm(2, 1), lambda x: x.norm(2, 0), "stacked"),
    Case(("norm",), lambda x: x.norm(), lambda x: x.norm(), "total"),
    *(
        Case(
            (name,),
            lambda x, f=f: f(x, 1),
            lambda x, f=f: f(x, 0),
        )
        for name, f in (
            ("softmax", torch.softmax),
            ("log_softmax", torch.log_softmax),
            ("softmin", F.softmin),
            ("cumsum", torch.cumsum),
            ("cumprod", torch.cumprod),
            ("logcumsumexp", torch.logcumsumexp),
        )
    ),
    same("softmax", call=lambda x: F.softmax(x, -1)),
    # Shapes.
    Case(("transpose",), lambda x: x.transpose(1, 2), lambda x: x.transpose(0, 1)),
    Case(("swapaxes",), lambda x: x.swapaxes(1, 2), lambda x: x.swapaxes(0, 1)),
    Case(("swapdims",), lambda x: x.swapdims(-1, 1), lambda x: x.swapdims(-1, 0)),
    Case(("permute",), lambda x: x.permute(0, 2, 1), lambda x: x.permute(1, 0)),
    same("unsqueeze", call=lambda x: x.unsqueeze(-1)),
    Case(("unsqueeze",), lambda x: x.unsqueeze(1), lambda x: x.unsqueeze(0)),
    same("squeeze", call=lambda x: x.unsqueeze(-1).squeeze(-1)),
    same("unflatten", call=lambda x: x.unflatten(-1, [1, 5])),
    same("flatten", call=lambda x: x.unflatten(-1, [5, 1]).flatten(-2, -1)),
    Case(("view",), lambda x: x.view(len(x), -1, 5, 1), lambda x: x.view(-1, 5, 1)),
    Case(("reshape",), lambda x: x.reshape(len(x), -1, 1, 5), lambda x: x.reshape(-1, 1, 5)),
    same("view_as", call=lambda x: x.view_as(x.unflatten(-1, [1, 5]))),
    same("reshape_as", call=lambda x: x.reshape_as(x.unflatten(-1, [1, 5]))),
    same("expand_as", call=lambda x: x.narrow(-1, 0, 1).expand_as(x)),
    Case(
        ("expand",),
        lambda x: x.narrow(-1, 0, 1).expand(len(x), -1, 3),
        lambda x: x.narrow(-1, 0, 1).expand(-1, 3),
    ),
    same("narrow", call=lambda x: x.narrow(-1, 1, 2)),
    same("select", call=lambda x: x.select(-1, 1)),
    same("__getitem__", call=lambda x: x[..., 1:4]),
    same("__getitem__", call=lambda x: x[..., 2]),
    Case(("__getitem__",), lambda x: x[:, None, :, ::2], lambda x: x[None, :, ::2]),
    same("split", call=lambda x: x.split(2, -1)[1]),
    same("split_with_sizes", call=lambda x: x.split_with_sizes([1, 4], -1)[1]),
    same("tensor_split", call=lambda x: x.tensor_split(2, -1)[1]),
    same("chunk", call=lambda x: x.chunk(2, -1)[1]),
    same("cat", call=lambda x: torch.cat([x, x * x], -1)),
    same("concat", call=lambda x: torch.concat([x, x], -1)),
    same("concatenate", call=lambda x: torch.concatenate([x, x], -1)),
    same("stack", call=lambda x: torch.stack([x, x * x], -1)),
    Case(("stack",), lambda x: torch.stack([x, x], 1), lambda x: torch.stack([x, x], 0)),
    same("contiguous", call=lambda x: x.contiguous()),
    # Products.
    same("matmul", call=lambda x: x @ W),
    same("__matmul__", call=lambda x: x.__matmul__(W)),
    Case(("__rmatmul__",), lambda x: W.T @ x.transpose(1, 2), lambda x: W.T @ x.T),
    Case(("matmul",), lambda x: x.transpose(1, 2) @ x, lambda x: x.T @ x, "stacked"),
    Case(
        ("bmm",),
        lambda x: torch.bmm(x, W.expand(len(x), 5, 4)),
        lambda x: x @ W,
    ),
    same("linear", call=lambda x: F.linear(x, W.T, W[0])),
    same("layer_norm", call=lambda x: F.layer_norm(x, (5,), ROWS[0], ROWS[1])),
    same("rms_norm", call=lambda x: F.rms_norm(x, (5,), ROWS[0])),
    same("normalize", call=lambda x: F.normalize(x, dim=-1)),
    same("embedding", call=lambda x: F.embedding(index_of(x), TABLE)),
    *(
        Case(
            ("scaled_dot_product_attention",),
            lambda x, causal=causal: F.scaled_dot_product_attention(
                x.unsqueeze(1), x.unsqueeze(1) * 2, x.unsqueeze(1).cos(), is_causal=causal
            ),
            lambda x, causal=causal: F.scaled_dot_product_attention(
                x.unsqueeze(0), x.unsqueeze(0) * 2, x.unsqueeze(0).cos(), is_causal=causal
            ),
        )
        for causal in (False, True)
    ),
]
