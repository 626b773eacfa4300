"""Tools around programs: the hub, pytrees with paths, measurements, counts, weak references."""

from __future__ import annotations

import collections
import gc
import hashlib
import os
import sys
import urllib.error
from collections import OrderedDict, defaultdict, deque, namedtuple
from pathlib import Path
from typing import Any

import pytest

import pullback as torch
from pullback import hub, nn
from pullback.utils import _pytree as pytree
from pullback.utils import benchmark, collect_env, swap_tensors
from pullback.utils.flop_counter import FlopCounterMode, register_flop_formula
from pullback.utils.module_tracker import ModuleTracker
from pullback.utils.weak import TensorWeakRef, WeakIdRef, WeakTensorKeyDictionary

Pair = namedtuple("Pair", ["x", "y"])


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "part.py").write_text("def scale(): return 3\n")
    (folder / "hubconf.py").write_text(
        "dependencies = ['json']\n"
        "from part import scale\n"
        "def model(size, bias=True):\n"
        "    'Makes a model.'\n"
        "    import pullback\n"
        "    return pullback.nn.Linear(size, scale(), bias=bias)\n"
        "def late():\n"
        "    from other import NAME\n"
        "    return NAME\n"
    )
    (folder / "other.py").write_text("NAME = 'imported by a call'\n")
    return folder


def test_a_model_from_a_local_folder(repository: Path) -> None:
    model = hub.load(str(repository), "model", 2, source="local", bias=False)
    assert (model.in_features, model.out_features, model.bias) == (2, 3, None)
    before = list(sys.path)
    assert hub.load(str(repository), "late", source="local") == "imported by a call"
    assert sys.path == before
    with pytest.raises(RuntimeError, match="Cannot find callable nope in hubconf"):
        hub.load(str(repository), "nope", source="local")
    with pytest.raises(ValueError, match="Unknown source"):
        hub.load(str(repository), "model", source="web")
    with pytest.raises(FileNotFoundError, match=r"there is no file hubconf\.py"):
        hub.load(str(repository.parent), "model", source="local")
    (repository / "hubconf.py").write_text("dependencies = ['no_such_package_at_all']\n")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package_at_all"):
        hub.load(str(repository), "model", source="local")


def test_repositories_that_were_downloaded(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub._repository, "_chosen", [])
    hub.set_dir(tmp_path / "hub")
    kept = tmp_path / "hub" / "owner_name_HEAD"
    kept.parent.mkdir()
    repository.rename(kept)
    assert hub.get_dir() == str(tmp_path / "hub")
    assert hub.list("owner/name", trust_repo=True, verbose=False) == [
        "scale",
        "model",
        "late",
    ]
    assert hub.help("owner/name", "model") == "Makes a model."
    with pytest.raises(ValueError, match="expected 'owner/name'"):
        hub.load("owner", "model", trust_repo=True)
    monkeypatch.setattr("builtins.input", lambda question: "n")
    with pytest.raises(Exception, match=r"Untrusted repository\."):
        hub.load("another/name", "model")
    with pytest.raises(Exception, match=r"Untrusted repository\."):
        hub.load("owner/name", "late", trust_repo=False)


def test_where_downloads_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub._repository, "_chosen", [])
    monkeypatch.setenv("TORCH_HOME", "/x")
    assert hub.get_dir() == os.path.join("/x", "hub")


def test_downloads_check_their_sum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"weights")
    digest = hashlib.sha256(b"weights").hexdigest()
    hub.download_url_to_file(source.as_uri(), str(target), digest[:8])
    assert target.read_bytes() == b"weights"
    assert "7 bytes" in capsys.readouterr().err
    target.unlink()
    with pytest.raises(RuntimeError, match=r'invalid hash value \(expected "0000", got'):
        hub.download_url_to_file(source.as_uri(), str(target), "0000", progress=False)
    assert sorted(os.listdir(tmp_path)) == ["source"]
    with pytest.raises(urllib.error.URLError, match=r"cannot download http://127\.0\.0\.1:9/x: no"):
        hub.download_url_to_file("http://127.0.0.1:9/x", str(target))


TREE = {
    "a": [1, (2, 3)],
    "b": Pair(4, 5),
    "c": OrderedDict(z=6),
    "d": deque([7], maxlen=3),
    "e": defaultdict(list, {"k": 8}),
    "n": None,
}


def test_paths_lead_to_leaves() -> None:
    leaves, spec = pytree.tree_flatten_with_path(TREE)
    texts = ["['a'][0]", "['a'][1][0]", "['a'][1][1]", "['b'].x", "['b'].y", "['c']['z']"]
    texts += ["['d'][0]", "['e']['k']", "['n']"]
    assert [pytree.keystr(path) for path, _ in leaves] == texts
    assert [pytree.key_get(TREE, path) for path, _ in leaves] == [leaf for _, leaf in leaves]
    assert spec == pytree.tree_structure(TREE)
    # (Nine leaves, and the containers of which there are seven.)
    assert (spec.num_leaves, spec.num_nodes) == (9, 16)
    found = pytree.tree_map_with_path(lambda k, x, y: (pytree.keystr(k), x + y), [1], [2])
    assert found == [("[0]", 3)]
    assert pytree.tree_leaves_with_path([1], is_leaf=lambda x: isinstance(x, list)) == [((), [1])]


def test_structures_as_texts() -> None:
    spec = pytree.tree_structure([1, {"a": (2, 3)}, deque([7], maxlen=3)])
    text = pytree.treespec_dumps(spec)
    # (Recorded with PyTorch 2.15.)
    leaf = '{"type": null, "context": null, "children_spec": []}'
    assert text == (
        f'[1, {{"type": "builtins.list", "context": "null", "children_spec": [{leaf}, '
        '{"type": "builtins.dict", "context": "[\\"a\\"]", "children_spec": [{"type": '
        f'"builtins.tuple", "context": "null", "children_spec": [{leaf}, {leaf}]}}]}}, '
        f'{{"type": "collections.deque", "context": "3", "children_spec": [{leaf}]}}]}}]'
    )
    assert pytree.treespec_loads(text) == spec
    grouped = pytree.tree_structure(defaultdict(list, a=1))
    assert pytree.treespec_loads(pytree.treespec_dumps(grouped)) == grouped
    assert pytree.treespec_pprint(spec) == "[*, {'a': (*, *)}, deque([*], maxlen=3)]"
    with pytest.raises(NotImplementedError, match="namedtuple class"):
        pytree.treespec_dumps(pytree.tree_structure(Pair(1, 2)))
    with pytest.raises(ValueError, match="Unknown protocol 99"):
        pytree.treespec_loads("[99, {}]")
    with pytest.raises(TypeError, match="Expected `treespec` to be an instance of PyTreeSpec"):
        pytree.treespec_dumps(3)


def test_registered_types_say_their_keys_and_name() -> None:
    class Box:
        def __init__(self, x: Any) -> None:
            self.x = x

    class Silent(Box):
        pass

    pytree.register_pytree_node(
        Box,
        lambda box: ([box.x], None),
        lambda children, _: Box(*children),
        serialized_type_name="test.Box",
        flatten_with_keys_fn=lambda box: ([(pytree.GetAttrKey("x"), box.x)], None),
    )
    pytree.register_pytree_node(Silent, lambda b: ([b.x], None), lambda c, _: Silent(*c))
    try:
        ((path, leaf),) = pytree.tree_leaves_with_path([Box(3)])
        assert (pytree.keystr(path), leaf) == ("[0].x", 3)
        spec = pytree.tree_structure(Box(1))
        assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
        with pytest.raises(ValueError, match="Did not find a flatten_with_keys_fn"):
            pytree.tree_flatten_with_path(Silent(1))
        with pytest.raises(NotImplementedError, match="No registered serialization name"):
            pytree.treespec_dumps(pytree.tree_structure(Silent(1)))
    finally:
        for kind in (Box, Silent):
            del pytree.SUPPORTED_NODES[kind]
    with pytest.raises(ValueError, match="must be None or registered"):
        pytree.register_pytree_node(Box, None, None, to_dumpable_context=str)  # type: ignore[arg-type]


def test_questions_about_trees() -> None:
    assert not pytree.tree_is_leaf([1])
    assert pytree.tree_is_leaf(1)
    assert pytree.tree_all_only(int, lambda x: x > 0, [1, "a"])
    assert not pytree.tree_any_only(int, lambda x: x > 1, [1, "a"])
    maximum = torch.max(torch.ones(2, 2), 0)
    assert pytree.is_namedtuple(Pair)
    assert pytree.is_namedtuple_instance(Pair(1, 2))
    assert not pytree.is_namedtuple((1, 2))
    assert pytree.is_structseq(maximum)
    assert pytree.is_structseq_class(type(maximum))
    assert not pytree.is_structseq_instance(Pair(1, 2))


def test_a_timer_measures() -> None:
    ticks = iter(range(10**9))
    timer = benchmark.Timer(
        "x + 1", globals={"x": torch.ones(1)}, label="sum", timer=lambda: next(ticks) * 1e-3
    )
    measured = timer.timeit(10)
    assert (measured.number_per_run, len(measured.times)) == (10, 1)
    assert measured.median == pytest.approx(1e-4)
    real = benchmark.Timer("x + 1", globals={"x": torch.ones(1)}, num_threads=1)
    blocks = real.blocked_autorange(min_run_time=0.01)
    assert sum(blocks.raw_times) >= 0.01
    assert 0 < blocks.median < 0.01
    assert "thread(s)" in repr(blocks)
    assert real.adaptive_autorange(threshold=1e9, max_run_time=0.1).mean > 0
    with pytest.raises(NotImplementedError, match="there is no C\\+\\+ interface"):
        benchmark.Timer("x", language="c++")
    with pytest.raises(NotImplementedError, match="collect_callgrind is not available"):
        real.collect_callgrind()
    with pytest.raises(NotImplementedError, match="blocked_autorange"):
        real.autorange()


def measurement(times: list[float], **words: Any) -> benchmark.Measurement:
    return benchmark.Measurement(1, times, benchmark.TaskSpec("x", "pass", **words))


def test_times_are_summarised() -> None:
    numpy = pytest.importorskip("numpy")
    times = [1.0, 2.0, 4.0, 8.0, 3.0]
    one = measurement(times)
    assert one.mean == pytest.approx(numpy.mean(times))
    assert one.median == numpy.median(times)
    low, high = numpy.percentile(times, [25, 75])
    assert one.iqr == pytest.approx(high - low)
    assert one.has_warnings
    assert one.as_row_name == "x"
    assert not one.meets_confidence()
    assert measurement([1.0] * 100).significant_figures == 5
    assert one.significant_figures == 1
    both = benchmark.Measurement.merge([one, measurement([5.0])])
    assert [len(m.times) for m in both] == [6]
    with pytest.raises(ValueError, match="No measurements are available"):
        measurement([]).median  # noqa: B018 (asking is the point)


def test_measurements_are_compared_in_a_table() -> None:
    results = [
        measurement([1e-3], label="add", sub_label="small", description="ours"),
        measurement([2e-3], label="add", sub_label="small", description="theirs"),
        measurement([4e-3], label="add", sub_label="large", description="ours"),
    ]
    table = benchmark.Compare(results)
    text = str(table)
    assert "[-------- add --------]" in text
    assert "Times are in milliseconds (ms)." in text
    rows = [line.split("|") for line in text.splitlines() if "small" in line or "large" in line]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["small", "1.0", "2.0"],
        ["large", "4.0", ""],
    ]
    table.colorize(rowwise=True)
    table.trim_significant_figures()
    table.highlight_warnings()
    assert "\033[92m" in str(table)
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        benchmark.Compare([3])  # type: ignore[list-item]


def test_words_for_times() -> None:
    assert benchmark.select_unit(3e-5) == ("us", 1e-6)
    assert benchmark.unit_to_english("ns") == "nanosecond"
    assert benchmark.trim_sigfig(1234.5, 2) == 1200
    assert benchmark.ordered_unique([2, 1, 2]) == [2, 1]
    with benchmark.set_torch_threads(1):
        assert torch.get_num_threads() == 1


def test_inputs_are_drawn_by_their_constraints() -> None:
    pytest.importorskip("numpy")
    fuzzer = benchmark.Fuzzer(
        parameters=[
            benchmark.FuzzedParameter("n", 4, 16, "loguniform"),
            benchmark.FuzzedParameter(
                "m", distribution={2: 0.5, benchmark.ParameterAlias("n"): 0.5}
            ),
        ],
        tensors=[
            benchmark.FuzzedTensor("x", ("n", "m"), max_elements=128),
            benchmark.FuzzedSparseTensor("s", ("n", "m"), density=None, nnz="m"),
        ],
        constraints=[lambda n, m: n % 2 == 0],
        seed=0,
    )
    found = list(fuzzer.take(20))
    assert len(found) == 20
    for tensors, likes, parameters in found:
        assert tensors["x"].shape == (parameters["n"], parameters["m"])
        assert parameters["n"] % 2 == 0
        assert parameters["m"] in (2, parameters["n"])
        assert tensors["x"].numel() <= 128
        assert likes["x"]["is_contiguous"] == tensors["x"].is_contiguous()
        assert tensors["s"].is_sparse
    assert {like["x"]["is_contiguous"] for _, like, _ in found} == {True, False}
    assert 0 < fuzzer.rejection_rate < 1
    again = list(fuzzer.take(20))
    assert [p for _, _, p in again] == [p for _, _, p in found]
    with pytest.raises(ValueError, match="Repeated names"):
        benchmark.Fuzzer([benchmark.FuzzedParameter("a", 1, 2, "uniform")] * 2, [])
    with pytest.raises(ValueError, match="Unknown distribution"):
        benchmark.FuzzedParameter("a", 1, 2, "normal")


def test_products_are_counted_by_module() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10)
    )
    with FlopCounterMode(display=False) as counter:
        x = torch.randn(2, 3, 8, 8, requires_grad=True)
        model(x).sum().backward()
        torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 4, 5))
    # The image has 64 places and 108 weights a place, the matrix 2560 weights; twice for backward.
    convolution, linear, batch = 2 * 2 * 64 * 108, 2 * 2 * 2560, 2 * 2 * 3 * 4 * 5
    assert counter.get_total_flops() == 3 * convolution + 3 * linear + batch
    counts = counter.get_flop_counts()
    assert sum(counts["Sequential.0"].values()) == 3 * convolution
    assert sum(counts["Sequential.3"].values()) == 3 * linear
    assert "Sequential.3" in counter.get_table()
    assert "Sequential.3" not in counter.get_table(depth=1)


def test_counts_are_those_of_the_algorithm() -> None:
    def total(run: Any) -> int:
        with FlopCounterMode(display=False) as counter:
            run()
        return int(counter.get_total_flops())

    def backward(function: Any, *shapes: tuple[int, ...], **kwargs: Any) -> int:
        inputs = [torch.ones(shape, requires_grad=True) for shape in shapes]
        return total(lambda: function(*inputs, **kwargs).sum().backward())

    # (Recorded with PyTorch 2.15.)
    assert backward(torch.conv2d, (2, 3, 8, 8), (4, 3, 3, 3), stride=2, padding=1) == 20736
    assert backward(torch.conv2d, (2, 4, 8, 8), (6, 2, 3, 3), groups=2) == 62208
    assert backward(torch.conv_transpose2d, (2, 3, 8, 8), (3, 4, 3, 3), stride=2) == 82944
    assert backward(torch.conv_transpose2d, (2, 4, 8, 8), (4, 4, 3, 3), groups=2) == 147456
    assert backward(torch.conv3d, (2, 3, 8, 8, 8), (4, 3, 3, 3, 3)) == 839808
    assert total(lambda: torch.conv2d(torch.ones(3, 8, 8), torch.ones(4, 3, 3, 3))) == 7776
    assert total(lambda: torch.conv1d(torch.ones(2, 3, 8), torch.ones(4, 3, 3))) == 864
    a, b, c = torch.ones(2, 3), torch.ones(3, 4), torch.ones(2, 4)
    assert total(lambda: torch.mm(a, b)) == total(lambda: torch.mm(a, mat2=b, out=c)) == 48
    assert total(lambda: torch.ones(5, 2, 3) @ b) == 240
    assert (
        total(lambda: c.addmm_(a, b)) == total(lambda: a * a + a) == total(lambda: b.mv(b[0])) == 0
    )
    attention = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    query, key = torch.ones(2, 3, 5, 8), torch.ones(2, 3, 7, 8)
    assert total(lambda: attention(query, key, key)) == 6720
    assert backward(lambda *qkv: attention(*qkv)[0], query.shape, key.shape, key.shape) == 23520
    functional = nn.functional.scaled_dot_product_attention
    assert total(lambda: functional(query, key, key)) == 6720


def test_programs_without_memory_are_counted() -> None:
    def run(device: str) -> int:
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 10)).to(device)
        with FlopCounterMode(display=False) as counter:
            model(torch.ones(2, 3, 8, 8, device=device)).sum().backward()
        return int(counter.get_total_flops())

    assert run("meta") == run("cpu") > 0


def test_formulas_can_be_given() -> None:
    formula = {torch.ops.aten.add: lambda a, b, out_shape=None, **_: out_shape[0]}
    with FlopCounterMode(display=False, custom_mapping=formula) as counter:
        torch.ones(5) + torch.ones(5)
    assert counter.get_total_flops() == 5
    before = dict(torch.utils.flop_counter.flop_registry)
    try:

        @register_flop_formula(torch.ops.aten.mul, get_raw=True)
        def mul_flop(a: Any, b: Any, out_val: Any = None) -> int:
            return int(out_val.numel())

        with FlopCounterMode(display=False) as counter:
            torch.ones(3, 1) * torch.ones(4)
    finally:
        torch.utils.flop_counter.flop_registry.clear()
        torch.utils.flop_counter.flop_registry.update(before)
    assert counter.get_total_flops() == 12


def test_modules_at_work_are_known_forwards_and_backwards() -> None:
    seen: list[tuple[bool, set[str]]] = []

    class Part(nn.Module):
        def forward(self, x: Any) -> Any:
            """Doubles."""
            seen.append((tracker.is_bw, set(tracker.parents)))
            y = x * 2
            y.register_hook(lambda g: seen.append((tracker.is_bw, set(tracker.parents))))
            return y

    model = nn.Sequential(nn.Linear(2, 2), Part())
    with ModuleTracker() as tracker:
        model(torch.ones(1, 2, requires_grad=True)).sum().backward()
        assert tracker.parents == {"Global"}
    inside = {"Global", "Sequential", "Sequential.1"}
    assert seen[0] == (False, inside)
    assert seen[1][0]


def test_weak_dictionaries_tell_tensors_apart_by_identity() -> None:
    x, y = torch.ones(2), torch.ones(2)
    table = WeakTensorKeyDictionary({x: "x"})
    table[y] = "y"
    assert (table[x], table[y], len(table)) == ("x", "y", 2)
    assert WeakIdRef(x) == WeakIdRef(x) != WeakIdRef(y)
    reference = TensorWeakRef(y)
    assert reference() is y
    del y
    gc.collect()
    assert reference() is None
    assert (len(table), next(iter(table)) is x, 3 in table) == (1, True, False)
    del table[x]
    assert not table.copy()
    with pytest.raises(AssertionError, match=r"expected torch\.Tensor"):
        TensorWeakRef(3)


def test_tensors_change_places() -> None:
    a, b = nn.Parameter(torch.ones(2)), torch.zeros(3, dtype=torch.int64)
    a.grad = torch.full((2,), 5.0)
    a.tag = "a"
    first, second = id(a), id(b)
    swap_tensors(a, b)
    assert (id(a), id(b)) == (first, second)
    assert (type(a), a.tolist(), a.requires_grad) == (torch.Tensor, [0, 0, 0], False)
    assert (type(b), b.tolist(), b.tag) == (nn.Parameter, [1, 1], "a")
    assert b.grad.tolist() == [5, 5]
    with pytest.raises(RuntimeError, match="it is no leaf"):
        swap_tensors(b * 2, a)
    kept = TensorWeakRef(a)
    with pytest.raises(RuntimeError, match="weakref associated with it"):
        swap_tensors(a, b)
    assert kept() is a


def test_the_machine_is_described() -> None:
    info = collect_env.get_env_info()
    assert info.torch_version == torch.__version__
    assert info.is_cuda_available == "False"
    assert "Torch version: " in collect_env.pretty_str(info)
    assert collect_env.run("no-such-program-at-all --version")[0] == 127
    assert collect_env.run_and_read_all(lambda command: (0, "a\nb", ""), "x") == "a\nb"
    assert collect_env.run_and_return_first_line(lambda command: (0, "a\nb", ""), "x") == "a"
    assert collect_env.run_and_parse_first_match(lambda c: (0, "v 1", ""), "x", r"v (\d)") == "1"
    assert collect_env.run_and_parse_first_match(lambda c: (1, "v 1", ""), "x", r"v (\d)") is None


def test_small_tools() -> None:
    assert torch.utils.throughput_benchmark.format_time(time_us=1500) == "1.500ms"
    assert torch.utils.throughput_benchmark.format_time(time_s=2) == "2.000s"
    assert "test_small_tools" in torch.utils.get_cpp_backtrace()

    def function() -> None:
        pass

    torch.utils.set_module(function, "mine")
    assert function.__module__ == "mine"
    with pytest.raises(TypeError, match="mod argument should be a string"):
        torch.utils.set_module(function, 3)
    assert isinstance(torch.utils.data._utils.collate.default_collate([1, 2]), torch.Tensor)
    assert collections.deque is deque


def test_tensorboard_says_what_it_needs() -> None:
    try:
        import tensorboard  # noqa: F401
    except ModuleNotFoundError:
        with pytest.raises(ModuleNotFoundError, match="pip install tensorboard"):
            __import__("pullback.utils.tensorboard")
    else:
        from pullback.utils.tensorboard import SummaryWriter

        assert SummaryWriter.add_scalar
