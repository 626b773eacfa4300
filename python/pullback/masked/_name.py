"""The names of the operations that masked tensors have, by what becomes of the mask.

Ops and functions have the same names, so each is here once; those that only ops have stand last.
"""

from __future__ import annotations

# The mask stays; there is one tensor.
UNARY = frozenset(
    {
        *("abs", "absolute", "acos", "arccos", "acosh", "arccosh", "angle", "asin", "arcsin"),
        *("asinh", "arcsinh", "atan", "arctan", "atanh", "arctanh", "bitwise_not", "ceil"),
        *("clamp", "clip", "conj_physical", "cos", "cosh", "deg2rad", "digamma", "erf", "erfc"),
        *("erfinv", "exp", "exp2", "expm1", "fill", "fix", "floor", "frac", "i0", "isnan"),
        *("lgamma", "log", "log10", "log1p", "log2", "logit", "nan_to_num", "neg", "negative"),
        *("positive", "rad2deg", "reciprocal", "round", "rsqrt", "sgn", "sigmoid", "sign"),
        *("signbit", "sin", "sinc", "sinh", "sqrt", "square", "tan", "tanh", "trunc", "zero"),
        *("__abs__", "__invert__", "__neg__", "__pos__"),
    }
)

# Ops of one tensor that convert to another dtype.
CONVERSION = frozenset(
    {
        *("to", "type", "_to_copy", "float", "double", "half", "int", "long", "short", "char"),
        *("bool", "bfloat16"),
    }
)

# The masks of the two must be equal; one of them may be plain, or a number.
BINARY = frozenset(
    {
        *("add", "arctan2", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or"),
        *("bitwise_right_shift", "bitwise_xor", "div", "divide", "eq", "floor_divide", "fmax"),
        *("fmin", "fmod", "ge", "greater", "greater_equal", "gt", "le", "less", "less_equal"),
        *("logaddexp", "logaddexp2", "lt", "maximum", "minimum", "mul", "multiply", "ne"),
        *("nextafter", "not_equal", "pow", "remainder", "rsub", "sub", "subtract", "true_divide"),
        *("__radd__", "__rsub__", "__rmul__", "__rtruediv__", "__rfloordiv__", "__rmod__"),
        *("__rpow__", "__add__", "__sub__", "__mul__", "__truediv__", "__floordiv__", "__mod__"),
        *("__pow__", "__and__", "__or__", "__xor__", "__rand__", "__ror__", "__rxor__"),
        *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__lshift__", "__rshift__"),
    }
)

# Data and mask are treated alike; the result has memory of its own.
SHAPE = frozenset(
    {
        *("flip", "fliplr", "flipud", "roll", "rot90", "tile", "repeat", "repeat_interleave"),
        *("index_select", "gather", "take", "take_along_dim", "masked_select", "clone"),
    }
)

# The same, of ops whose result may show the memory of the input. Such calls are no calls here but
# ops of autograd, which knows of the shared memory when one of the two is written into.
VIEW = frozenset(
    {
        *("_reshape_alias", "_unsafe_view", "alias", "broadcast_to", "detach", "diagonal"),
        *("expand", "index", "movedim", "permute", "reshape", "select", "slice", "split"),
        *("split_with_sizes", "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze"),
        *("view", "view_as", "swapaxes", "flatten", "narrow", "contiguous"),
        # The effects of these ops on gradients.
        *("diagonal_backward", "select_backward", "slice_backward", "unfold_backward"),
    }
)

# Ops of several tensors.
JOINING = frozenset(
    {
        *("cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "row_stack"),
        "column_stack",
    }
)

# New elements, with the mask.
LIKE = frozenset({"empty_like", "full_like", "ones_like", "rand_like", "randn_like", "zeros_like"})

# Blocks of a picture as columns, and columns as sums of blocks.
FOLD = frozenset({"im2col", "col2im"})
