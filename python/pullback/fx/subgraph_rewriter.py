"""Replacing the subgraphs that match a pattern."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import nn
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, nodes_in

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """A subgraph that matches the pattern, and what stands for the pattern's nodes."""

    anchor: Node
    nodes_map: dict[Node, Node]


class ReplacedPatterns(NamedTuple):
    """A match, and the nodes that were put in its place."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def _graph_of(pattern: Any) -> Graph:
    if isinstance(pattern, GraphModule):
        return pattern.graph
    if isinstance(pattern, Graph):
        return pattern
    return symbolic_trace(pattern).graph


class _Matcher:
    """Compares a pattern with the subgraphs of a graph, from the results to the inputs."""

    def __init__(self, pattern: Graph) -> None:
        self.pattern = pattern
        self.ends = pattern.output_node().all_input_nodes

    def match_at(self, node: Node) -> dict[Node, Node] | None:
        """The replacement of the pattern's nodes if its (last) result is ``node``."""
        found: dict[Node, Node] = {}
        if not self._is_like(self.ends[-1], node, found):
            return None
        return found if self._is_closed(found) else None

    def _is_like(self, mine: Any, theirs: Any, found: dict[Node, Node]) -> bool:
        if isinstance(mine, Node):
            return isinstance(theirs, Node) and self._nodes_alike(mine, theirs, found)
        if isinstance(mine, tuple | list):
            return (
                isinstance(theirs, tuple | list)
                and len(mine) == len(theirs)
                and all(self._is_like(a, b, found) for a, b in zip(mine, theirs, strict=True))
            )
        if isinstance(mine, dict):
            return (
                isinstance(theirs, dict)
                and mine.keys() == theirs.keys()
                and all(self._is_like(mine[key], theirs[key], found) for key in mine)
            )
        return bool(type(mine) is type(theirs) and mine == theirs)

    def _nodes_alike(self, mine: Node, theirs: Node, found: dict[Node, Node]) -> bool:
        if mine in found:
            return found[mine] is theirs
        if mine.op == "placeholder":
            found[mine] = theirs
            return True
        if theirs in found.values() or mine.op != theirs.op or not self._same_target(mine, theirs):
            return False
        found[mine] = theirs
        alike = self._is_like(mine.args, theirs.args, found)
        if alike and self._is_like(dict(mine.kwargs), dict(theirs.kwargs), found):
            return True
        del found[mine]
        return False

    def _same_target(self, mine: Node, theirs: Node) -> bool:
        if mine.op != "call_module":
            return bool(mine.target == theirs.target)
        a, b = (node.graph.owning_module for node in (mine, theirs))
        if a is None or b is None:
            return bool(mine.target == theirs.target)
        return type(a.get_submodule(mine.target)) is type(b.get_submodule(theirs.target))

    def _is_closed(self, found: dict[Node, Node]) -> bool:
        """Whether results computed inside are not used outside."""
        inside = set(found.values())
        for mine, theirs in found.items():
            is_open = mine.op == "placeholder" or mine in self.ends
            if not is_open and any(user not in inside for user in theirs.users):
                return False
        return all(end in found for end in self.ends)


def replace_pattern(
    gm: GraphModule,
    pattern: Callable[..., Any] | GraphModule,
    replacement: Callable[..., Any] | GraphModule,
) -> list[Match]:
    """Replaces each subgraph of a module's graph that matches a pattern.

    Args:
        gm: the module, which is changed.
        pattern: a function, or module, of as many inputs as the replacement.
        replacement: what to put in its place.

    Returns:
        The matches. Those that overlap an earlier one are left out.
    """
    replaced = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(anchor=item.anchor, nodes_map=item.nodes_map) for item in replaced]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Callable[..., Any] | Graph | GraphModule,
    replacement: Callable[..., Any] | Graph | GraphModule | None = None,
    match_filters: list[Callable[[Any, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[..., Graph] | None = None,
) -> list[ReplacedPatterns]:
    """As :func:`replace_pattern`, at the matches that all filters let pass.

    Args:
        gm: the module.
        pattern: what to look for.
        replacement: what to put in its place.
        match_filters: called with the match, the module's graph and the pattern's.
        ignore_literals: must be false.
        replacement_callback: gives the replacement for a match.

    Raises:
        NotImplementedError: for ``ignore_literals``.
    """
    if ignore_literals:
        raise NotImplementedError("replace_pattern_with_filters(ignore_literals=True)")
    looked_for = _graph_of(pattern)
    matcher = _Matcher(looked_for)
    fixed = None if replacement is None else _graph_of(replacement)
    taken: set[Node] = set()
    done: list[ReplacedPatterns] = []
    for node in list(gm.graph.nodes):
        found = None if node.op in ("placeholder", "output") else matcher.match_at(node)
        if found is None:
            continue
        inside = {theirs for mine, theirs in found.items() if mine.op != "placeholder"}
        match = Match(node, found)
        allowed = all(check(match, gm.graph, looked_for) for check in match_filters or [])
        if not allowed or inside & taken:
            continue
        taken |= inside
        new = fixed if fixed is not None else replacement_callback(match, gm.graph, looked_for)  # type: ignore[misc]
        done.append(_replace(gm, matcher, match, inside, new))
    gm.recompile()
    if isinstance(replacement, nn.Module):
        _take_over(gm, replacement)
    gm.graph.lint()
    return done


def _replace(
    gm: GraphModule, matcher: _Matcher, match: Match, inside: set[Node], new: Graph
) -> ReplacedPatterns:
    inputs = [node for node in matcher.pattern.nodes if node.op == "placeholder"]
    new_inputs = [node for node in new.nodes if node.op == "placeholder"]
    if len(inputs) != len(new_inputs):
        raise AssertionError(
            f"the pattern has {len(inputs)} inputs, the replacement {len(new_inputs)}"
        )
    values: dict[Node, Node] = {
        own: match.nodes_map[old]
        for own, old in zip(new_inputs, inputs, strict=True)
        if old in match.nodes_map
    }
    with gm.graph.inserting_before(match.anchor):
        before = set(gm.graph.nodes)
        results: list[Node] = []
        copied = gm.graph.graph_copy(new, values)
        results.extend(nodes_in([copied]))
    added = [node for node in gm.graph.nodes if node not in before]
    ends = matcher.ends
    if len(ends) != len(results):
        raise AssertionError(
            f"the pattern gives {len(ends)} results, the replacement {len(results)}"
        )
    for end, result in zip(ends, results, strict=True):
        match.nodes_map[end].replace_all_uses_with(result, lambda user: user not in added)
    for node in reversed(gm.graph.nodes):
        if node in inside and not node.users:
            gm.graph.erase_node(node)
    return ReplacedPatterns(match.anchor, match.nodes_map, added)


def _take_over(gm: GraphModule, replacement: nn.Module) -> None:
    """Gives the module the submodules and parameters of the replacement."""
    for name, module in replacement.named_children():
        if not hasattr(gm, name):
            gm.add_submodule(name, copy.deepcopy(module))
    for name, parameter in replacement.named_parameters(recurse=False):
        if not hasattr(gm, name):
            gm.register_parameter(name, copy.deepcopy(parameter))
