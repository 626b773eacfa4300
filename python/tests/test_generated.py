"""What the generator writes about ops: stubs that a type checker can use, and a complete page."""

import ast

import pytest

import pullback as torch
from pullback import _C
from pullback._gen import __main__ as command
from pullback._gen import page, stub
from pullback._gen.op import described

OPS = described()
STUBS = {name: ast.parse(text) for name, text in stub.texts(OPS).items()}
EXTENSION = STUBS["_C/__init__.pyi"]
FUNCTIONS = STUBS["_C/_VariableFunctions.pyi"]


def definitions(body: list[ast.stmt], name: str) -> list[ast.FunctionDef]:
    return [node for node in body if isinstance(node, ast.FunctionDef) and node.name == name]


def class_body(module: ast.Module, name: str) -> list[ast.stmt]:
    (node,) = [n for n in module.body if isinstance(n, ast.ClassDef) and n.name == name]
    return node.body


def defined(body: list[ast.stmt]) -> set[str]:
    names = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(ast.unparse(node.target))
        elif isinstance(node, ast.ImportFrom):
            names.update(alias.asname or "" for alias in node.names)
    return names


def keyword_only(function: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in function.args.kwonlyargs]


def test_the_overloads_of_add_take_alpha_and_out_by_keyword():
    first, *others = definitions(FUNCTIONS.body, "add")
    assert others
    assert all(
        ast.unparse(d) == "overload" for node in (first, *others) for d in node.decorator_list
    )
    assert keyword_only(first) == ["alpha", "out"]
    assert [argument.arg for argument in first.args.args] == ["input", "other"]
    assert ast.unparse(first.args.kw_defaults[0]) == "1"


def test_methods_take_no_out():
    (first, *_) = definitions(class_body(EXTENSION, "TensorBase"), "add")
    assert keyword_only(first) == ["alpha"]


def test_max_along_a_dimension_returns_a_named_tuple():
    results = {ast.unparse(node.returns) for node in definitions(FUNCTIONS.body, "max")}
    assert results == {"Tensor", "return_types.max"}
    names = defined(class_body(STUBS["return_types.pyi"], "max"))
    assert {"values", "indices"} <= names
    found = torch.max(torch.ones(2, 2), 0)
    assert {name for name in names if name.startswith("n_")} <= set(dir(found))


def test_in_place_forms_are_methods_and_functions():
    assert definitions(class_body(EXTENSION, "TensorBase"), "add_")
    assert definitions(FUNCTIONS.body, "relu_")


def test_an_op_with_one_signature_is_not_overloaded():
    (only,) = definitions(FUNCTIONS.body, "tanh")
    assert not only.decorator_list


def test_sizes_may_be_spread_over_the_arguments():
    texts = [ast.unparse(node.args) for node in definitions(FUNCTIONS.body, "zeros")]
    assert any(text.startswith("size: _size") for text in texts)
    assert any(text.startswith("*size: _int") for text in texts)


def test_everything_in_the_extension_is_in_its_stub():
    hidden = {name for name in dir(_C) if name.startswith("__")}
    assert set(dir(_C)) - hidden <= defined(EXTENSION.body)


def test_every_attribute_of_tensors_is_in_the_stub():
    implied = {"__dict__", "__doc__", "__delattr__", "__repr__", "__setattr__"}
    operators = {name for name in vars(_C.TensorBase) if name.endswith("___")}
    missing = set(vars(_C.TensorBase)) - implied - operators
    assert missing <= defined(class_body(EXTENSION, "TensorBase"))


@pytest.mark.parametrize(
    "name", ["Generator", "Size", "UntypedStorage", "_FunctionBase", "_NodeBase", "device", "dtype"]
)
def test_every_attribute_of_a_class_is_in_the_stub(name):
    # What every class has says nothing; comparisons are those of the objects.
    found = {n for n in vars(getattr(_C, name)) if not n.startswith("__")}
    assert found <= defined(class_body(EXTENSION, name))


def test_every_public_op_is_on_the_page():
    text = command.texts()[command.ROOT / "docs" / "ops.md"]
    called = {
        cell.removeprefix("x.").partition("(")[0]
        for line in text.splitlines()
        if line.startswith("| `")
        for cell in line.split("`")[1::2]
    }
    for name in _C._public_names():
        assert name in called or name.removesuffix("_") in called, name


def test_a_sentence_ends_before_the_next_one_begins():
    assert page._sentence("About 1.5 times,\nroughly. More.") == "About 1.5 times, roughly."


def test_texts_are_the_same_each_time():
    assert command.texts() == command.texts()


def test_check_names_the_stale_file_and_changes_nothing(monkeypatch, tmp_path, capsys):
    path = tmp_path / "docs" / "ops.md"
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "texts", lambda: {path: "new"})
    assert command.main(["--check"]) == 1
    assert "docs/ops.md is stale" in capsys.readouterr().err.replace("\\", "/")
    assert not path.exists()
    assert command.main([]) == 0
    assert path.read_text() == "new"
    assert command.main(["--check"]) == 0


def test_editors_are_told_what_every_op_does() -> None:
    for name in ("_C/_VariableFunctions.pyi", "_C/_nn.pyi", "_C/_linalg.pyi", "_C/_special.pyi"):
        first: dict[str, ast.FunctionDef] = {}
        for node in STUBS[name].body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                first.setdefault(node.name, node)
        assert [n for n, node in first.items() if not ast.get_docstring(node)] == []
    body = class_body(EXTENSION, "TensorBase")
    assert ast.get_docstring(definitions(body, "exp")[0])
    assert ast.get_docstring(definitions(body, "mT")[0])
    sort = ast.get_docstring(
        next(n for n in STUBS["return_types.pyi"].body if getattr(n, "name", None) == "sort")  # type: ignore[arg-type]
    )
    assert sort == "What `sort` returns: `values`, `indices`."


def test_texts_that_a_stub_could_not_hold_are_written_otherwise() -> None:
    told = "\n".join(stub._told("def f() -> None: ...", 'A \\ and """ and "', ""))
    (function,) = ast.parse(told).body
    assert isinstance(function, ast.FunctionDef)
    assert (ast.get_docstring(function) or "").rstrip() == "A \\ and ''' and \""


def test_the_main_namespace_is_told_of_what_it_has() -> None:
    names = {
        alias.asname
        for node in STUBS["_C/_public.pyi"].body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert {"add", "matmul", "cat"} <= names
    assert not names & {"einsum", "meshgrid", "tensordot"}
    assert all(vars(torch)[name] is getattr(_C._VariableFunctions, name) for name in names)
