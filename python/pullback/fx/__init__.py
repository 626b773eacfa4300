"""Programs as graphs of calls, to be looked at, changed and run.

:func:`symbolic_trace` makes one of a module. A :class:`Graph` is a list of :class:`Node`; a
:class:`GraphModule` runs it as a module, whose ``code`` is its text. :class:`Interpreter` runs it
node by node, :class:`Transformer` makes a new one, :func:`replace_pattern` replaces parts.
"""

from __future__ import annotations

from .. import _absent
from . import _pytree as _pytree
from . import (
    config as config,
)
from . import (
    experimental as experimental,
)
from . import (
    graph as graph,
)
from . import (
    graph_module as graph_module,
)
from . import (
    immutable_collections as immutable_collections,
)
from . import (
    interpreter as interpreter,
)
from . import (
    node as node,
)
from . import (
    operator_schemas as operator_schemas,
)
from . import (
    passes as passes,
)
from . import (
    proxy as proxy,
)
from . import (
    subgraph_rewriter as subgraph_rewriter,
)
from . import (
    tensor_type as tensor_type,
)
from . import (
    traceback as traceback,
)
from ._symbolic_trace import PH as PH
from ._symbolic_trace import PHWithMeta as PHWithMeta
from ._symbolic_trace import ProxyableClassMeta, Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = [
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]

_absent.announce(globals())
