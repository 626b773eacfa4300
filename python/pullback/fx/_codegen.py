"""A graph as the text of a Python function."""

from __future__ import annotations

import builtins
import keyword
import operator
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from .node import Node, map_arg, qualified_name

if TYPE_CHECKING:
    from .graph import Graph

_INFIX = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.floordiv: "//",
    operator.truediv: "/",
    operator.mod: "%",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.eq: "==",
    operator.ne: "!=",
    operator.pow: "**",
    operator.lshift: "<<",
    operator.rshift: ">>",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.matmul: "@",
}
_INPLACE = {
    operator.iadd: "+=",
    operator.isub: "-=",
    operator.imul: "*=",
    operator.itruediv: "/=",
    operator.ifloordiv: "//=",
    operator.imod: "%=",
    operator.ipow: "**=",
    operator.imatmul: "@=",
    operator.iand: "&=",
    operator.ior: "|=",
    operator.ixor: "^=",
    operator.ilshift: "<<=",
    operator.irshift: ">>=",
}
_PREFIX = {operator.neg: "-", operator.pos: "+", operator.invert: "~"}


class PythonCode(NamedTuple):
    """The text of a function, and what its names mean."""

    src: str
    globals: dict[str, Any]


class Names:
    """Names that are given once."""

    def __init__(self) -> None:
        self.used: set[str] = set()
        self._counts: dict[str, int] = {}

    def new(self, candidate: str) -> str:
        """A name like ``candidate`` that is an identifier, no word of Python's and not used yet."""
        name = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        name = f"_{name}" if name[0].isdigit() else name
        found = re.match(r"(.*)_(\d+)$", name)
        base, number = (found[1], int(found[2])) if found else (name, None)
        while name in self.used or keyword.iskeyword(name) or hasattr(builtins, name):
            number = self._counts.get(base, 0) + 1 if number is None else number + 1
            self._counts[base] = number
            name = f"{base}_{number}"
        self.used.add(name)
        return name


class Writer:
    """Writes a function, and notes the objects that its text names."""

    def __init__(self, taken: set[str]) -> None:
        """``taken`` are the names of the function's variables."""
        self.globals: dict[str, Any] = {}
        self._names = Names()
        self._names.used = {*taken, "self", "torch"}

    def name_of(self, value: Any, hint: str) -> str:
        """The name of an object in the text."""
        top = hint.partition(".")[0]
        if top == "torch" and "." in hint:
            from .node import _top

            self.globals.setdefault("torch", _top())
            if self._reaches(hint, value):
                return hint
        if getattr(builtins, hint, None) is value:
            return hint
        for name, known in self.globals.items():
            if known is value:
                return name
        name = self._names.new(hint.replace(".", "_"))
        self.globals[name] = value
        return name

    def _reaches(self, path: str, value: Any) -> bool:
        found: Any = self.globals["torch"]
        for part in path.split(".")[1:]:
            found = getattr(found, part, None)
        return found is value

    def literal(self, value: Any) -> str:
        """An argument as text."""
        if isinstance(value, Node):
            return value.name
        if isinstance(value, tuple):
            items = ", ".join(self.literal(item) for item in value)
            if hasattr(value, "_fields"):
                return f"{self.name_of(type(value), type(value).__name__)}({items})"
            return f"({items}{',' if len(value) == 1 else ''})"
        if isinstance(value, list):
            return f"[{', '.join(self.literal(item) for item in value)}]"
        if isinstance(value, dict):
            pairs = (f"{self.literal(key)}: {self.literal(item)}" for key, item in value.items())
            return f"{{{', '.join(pairs)}}}"
        if isinstance(value, slice):
            parts = (self.literal(part) for part in (value.start, value.stop, value.step))
            return f"slice({', '.join(parts)})"
        if value is Ellipsis or isinstance(value, str | int | bool | type(None) | bytes):
            return repr(value)
        if isinstance(value, float | complex):
            text = repr(value)
            is_plain = not any(word in text for word in ("inf", "nan"))
            return text if is_plain else self.name_of(value, "_constant")
        text = str(value)
        if text.startswith("torch."):
            return self.name_of(value, text)
        hint = (
            qualified_name(value) if callable(value) and hasattr(value, "__name__") else "_constant"
        )
        return self.name_of(value, hint)

    def call(self, node: Node) -> str:
        """The arguments of a call, in brackets."""
        args = [self.literal(arg) for arg in node.args]
        args += [f"{name} = {self.literal(arg)}" for name, arg in node.kwargs.items()]
        return f"({', '.join(args)})"

    def statement(self, node: Node, annotation: str) -> str:
        """The statement of a node."""
        to = f"{node.name}{annotation}"
        target = node.target
        if node.op == "call_method":
            rest = [self.literal(arg) for arg in node.args[1:]]
            rest += [f"{name} = {self.literal(arg)}" for name, arg in node.kwargs.items()]
            return f"{to} = {self.literal(node.args[0])}.{target}({', '.join(rest)})"
        if node.op == "call_module":
            return f"{to} = {_path(target)}{self.call(node)}"
        if node.op == "get_attr":
            return f"{to} = {_path(target)}"
        plain = not node.kwargs
        values = node.args
        if plain and len(values) == 2 and target in _INFIX:
            left, right = map(self.literal, values)
            return f"{to} = {left} {_INFIX[target]} {right}"
        if plain and len(values) == 2 and target in _INPLACE:
            left, right = map(self.literal, values)
            return f"{to} = {left}; {to} {_INPLACE[target]} {right}"
        if plain and len(values) == 1 and target in _PREFIX:
            return f"{to} = {_PREFIX[target]}{self.literal(values[0])}"
        if plain and target is operator.getitem:
            return f"{to} = {self.literal(values[0])}[{self.literal(values[1])}]"
        if target is getattr and plain and len(values) == 2 and str(values[1]).isidentifier():
            return f"{to} = {self.literal(values[0])}.{values[1]}"
        return f"{to} = {self.name_of(target, qualified_name(target))}{self.call(node)}"


def _path(target: str) -> str:
    """An attribute of the module: ``self.weight``, ``getattr(self.layers, "0").weight``."""
    text = "self"
    for part in target.split("."):
        # (Modules in lists have numbers for names.)
        text = f"{text}.{part}" if part.isidentifier() else f'getattr({text}, "{part}")'
    return text


def _parameter(writer: Writer, node: Node) -> str:
    """An input of the function, under the name that callers use."""
    default = f" = {writer.literal(node.args[0])}" if node.args else ""
    return f"{node.target}{default}"


def last_uses(graph: Graph) -> dict[Node, list[Node]]:
    """The nodes whose results are not used after each node."""
    seen: set[Node] = set()
    ending: dict[Node, list[Node]] = {}

    def see(user: Node, used: Node) -> None:
        if used not in seen:
            seen.add(used)
            ending.setdefault(user, []).append(used)

    for node in reversed(graph.nodes):
        map_arg((node.args, node.kwargs), lambda used, user=node: see(user, used))  # type: ignore[misc]
    return ending


def generate(graph: Graph, root: str) -> PythonCode:
    """The function ``forward`` of a graph."""
    names = [(node.name, str(node.target).lstrip("*")) for node in graph.nodes]
    writer = Writer({name for pair in names for name in pair})
    ending = last_uses(graph)
    inputs: list[str] = []
    lines: list[str] = []
    for node in graph.nodes:
        if node.op == "placeholder":
            inputs.append(_parameter(writer, node))
            plain = str(node.target).lstrip("*")
            if plain != node.name:
                lines.append(f"{node.name} = {plain}")
            if not node.users:
                continue
        elif node.op == "output":
            lines.append(f"return {writer.literal(node.args[0])}")
            continue
        else:
            lines.append(writer.statement(node, ""))
        done = [used.name for used in ending.get(node, [])]
        if not node.users and node.op != "placeholder":
            done.append(node.name)
        if done and lines:
            lines[-1] += f";  {' = '.join(done)} = None"
    body = "\n".join(f"    {line}" for line in lines) or "    pass"
    source = f"\ndef forward({', '.join([root, *inputs])}):\n{body}\n"
    return PythonCode(source, writer.globals)
