"""Sources of one's own: how they are found, and what happens when they break."""

import ast
import sys
from pathlib import Path

import pytest

from ops_crawler.crawl import NoOperatorsError, Survey, survey
from ops_crawler.operator import Operator

CASES = Path(__file__).parents[3] / "shared" / "cases"
EXAMPLE = Path(__file__).parents[2] / "examples" / "own_operators"

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
GOOD = HEAD + "\nclass Swish(nn.Module):\n    def forward(self, x):\n        return x * torch.sigmoid(x)\n"


@pytest.fixture
def folder(tmp_path):
    """Return a function that writes files into a folder `mine` and returns what a crawl of it gives."""

    def write(**files: str) -> Survey:
        path = tmp_path / "mine"
        path.mkdir(exist_ok=True)
        for name, text in files.items():
            (path / f"{name}.py").write_text(text)
        return survey([str(path)])

    return write


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Return a function that makes an importable module of some text; the working folder holds it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(name: str, text: str) -> None:
        (tmp_path / f"{name}.py").write_text(text)

    return write


def by_name(found: Survey) -> dict[str, Operator]:
    return {operator.name: operator for operator in found.operators}


def test_every_public_module_class_of_a_folder_is_an_operator(folder):
    hidden = (
        GOOD
        + "\nclass _Hidden(nn.Module):\n    pass\n\nclass Settings:\n    pass\n\ndef helper(x):\n    pass\n"
    )
    found = folder(blocks=hidden)
    assert by_name(found).keys() == {"mine.blocks.Swish"}
    assert found.problems == ()
    swish = by_name(found)["mine.blocks.Swish"]
    assert (swish.source, swish.kind, swish.set_aside) == ("mine", "module", None)
    assert swish.usage.layouts == ("NF", "NLF", "NCL", "NCHW")
    assert swish.usage.runs == ("torch.sigmoid",)


def test_a_broken_file_is_told_in_one_line_and_stops_no_other(folder):
    found = folder(a_broken="import nowhere", b_syntax="def f(:", c_exits="raise SystemExit(3)", d_good=GOOD)
    assert by_name(found).keys() == {"mine.d_good.Swish"}
    errors = [problem.partition(".py: ")[2] for problem in found.problems]
    assert errors[0] == "ModuleNotFoundError: No module named 'nowhere'"
    assert errors[1].startswith("SyntaxError: invalid syntax")
    assert errors[2] == "SystemExit: 3"


def test_files_of_a_folder_may_import_one_another(folder):
    found = folder(base=GOOD, derived="from .base import Swish\n\nclass Mine(Swish):\n    pass\n")
    derived = by_name(found)["mine.derived.Mine"]
    assert derived.set_aside == "no_plain_source"
    assert derived.detail == "needs Swish from .base, which a task cannot import; define it beside"


def test_a_required_argument_is_listed_and_no_value_is_invented(folder):
    text = (
        HEAD
        + """
class Residual(nn.Module):
    def __init__(self, width, depth_index, *, slope=0.1):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x, /, *, scale=None):
        return self.linear(x)
"""
    )
    found = folder(blocks=text)
    residual = by_name(found)["mine.blocks.Residual"]
    assert [p.name for p in residual.parameters if p.required] == ["width", "depth_index"]
    assert [(p.name, p.default) for p in residual.parameters if p.keyword_only] == [("slope", "0.1")]
    assert (residual.set_aside, residual.usage) == (None, None)
    (problem,) = found.problems
    assert "nothing says what `width`, `depth_index` shall be" in problem


@pytest.mark.parametrize("parameter", ["config", "settings: BlockConfig"])
def test_a_class_that_takes_a_config_object_is_set_aside(folder, parameter):
    text = (
        HEAD
        + f"""
class BlockConfig:
    width = 64

class Block(nn.Module):
    def __init__(self, {parameter}, index: int):
        raise RuntimeError("never to be built")
"""
    )
    found = folder(blocks=text)
    assert by_name(found).keys() == {"mine.blocks.Block"}
    assert by_name(found)["mine.blocks.Block"].set_aside == "needs_config"


def test_a_class_that_fails_when_called_is_set_aside_with_its_error(folder):
    text = GOOD.replace("return x * torch.sigmoid(x)", "raise RuntimeError('not\\ntoday')")
    found = folder(blocks=text)
    assert by_name(found)["mine.blocks.Swish"].set_aside == "fails"
    (problem,) = found.problems
    assert "RuntimeError: not today" in problem


SOURCE = """
from ops_crawler.own import own_operator
import torch


def double(x):
    return torch.add(x, x)


class Mine:
    def operators(self):
        yield own_operator(double, layouts=("NF",), license="MIT")
        {more}
"""


def test_a_source_is_found_by_dotted_path(package):
    package("dotted_source", SOURCE.format(more="pass"))
    found = survey(["dotted_source:Mine"])
    (double,) = found.operators
    assert (double.name, double.kind, double.source) == (
        "dotted_source.double",
        "function",
        "dotted_source:Mine",
    )
    assert double.usage.license == "MIT"
    assert double.usage.code == ("import torch\n\n\ndef double(x):\n    return torch.add(x, x)\n")


def test_a_source_is_found_by_its_entry_point(package, tmp_path):
    package("entered_source", SOURCE.format(more="pass"))
    information = tmp_path / "entered-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: entered\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[opweaver.sources]\nentered = entered_source:Mine\n")
    sys.path.append(str(tmp_path))
    (double,) = survey(["entered"]).operators
    assert (double.name, double.source) == ("entered_source.double", "entered")


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ("raise KeyError('gone')", "after 1 operators: KeyError: 'gone'"),
        ("yield 'relu'", "yields a str where an Operator is due; left out"),
        ("yield own_operator(double)", "broken_source.double is already there"),
    ],
)
def test_a_source_that_breaks_on_the_way_keeps_what_it_gave(package, more, problem, monkeypatch):
    monkeypatch.delitem(sys.modules, "broken_source", raising=False)
    package("broken_source", SOURCE.format(more=more))
    found = survey(["broken_source:Mine"])
    assert by_name(found).keys() == {"broken_source.double"}
    (told,) = found.problems
    assert told.startswith(f"source broken_source:Mine: {problem}")


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("empty_source:Mine", "AttributeError: module 'empty_source' has no attribute 'Mine'"),
        ("empty_source:NUMBER", "int has no method operators()"),
        ("no_source_of_ours:Mine", "ModuleNotFoundError: No module named 'no_source_of_ours'"),
    ],
)
def test_a_source_that_cannot_be_loaded_is_told_with_its_error(package, name, error):
    package("empty_source", "NUMBER = 3\n")
    with pytest.raises(NoOperatorsError, match="no operators") as raised:
        survey([name])
    assert f"source {name}: {error}" in str(raised.value)


def test_two_operators_whose_helpers_clash_do_not_both_take_part(folder):
    text = GOOD.replace("torch.sigmoid(x)", "_gate(x)") + "\ndef _gate(x):\n    return {gate}\n"
    one = text.format(gate="torch.tanh(x)")
    other = text.format(gate="torch.erf(x)").replace("Swish", "Erf")
    found = folder(a=one, b=other)
    assert by_name(found)["mine.a.Swish"].usage is not None
    clashing = by_name(found)["mine.b.Erf"]
    assert (clashing.set_aside, clashing.usage) == ("no_plain_source", None)
    assert "defines _gate, which mine.a.Swish defines otherwise" in found.problems[0]


def test_the_example_package_gives_its_operators(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(EXAMPLE)])
    found = survey(["own_operators:OwnOperators"])
    assert found.problems == ()
    assert {operator.name.partition(".")[2]: operator.usage.layouts for operator in found.operators} == {
        "norms.FusedRMSNorm": ("NF", "NLF"),
        "rotary.RotaryEmbedding": ("NLF",),
        "vision.LocalContrast": ("NCHW",),
        "vision.SqueezeExcitation": ("NCHW",),
        "vision.merge_scales": ("NCHW",),
    }
    rotary = by_name(found)["own_operators.rotary.RotaryEmbedding"]
    assert rotary.usage.runs == ("torch.cat",), "the constructor does not count"


def test_the_example_package_is_a_folder_too():
    found = survey([str(EXAMPLE / "own_operators")])
    names = {operator.name for operator in found.operators}
    assert {"own_operators.norms.FusedRMSNorm", "own_operators.vision.LocalContrast"} <= names
    assert by_name(found)["own_operators.vision.LocalContrast"].usage is not None


@pytest.mark.skipif(not CASES.is_dir(), reason="../shared/cases is not here")
class TestCases:
    def test_crawled_modules_have_their_outcome(self, tmp_path):
        for name in ("cr_class_needs_config", "cr_missing_default"):
            (tmp_path / f"{name}.py").write_text((CASES / f"{name}.py").read_text())
        found = by_name(survey([str(tmp_path)]))
        short = {name.rpartition(".")[2]: operator for name, operator in found.items()}
        assert short.keys() == {"TinyAttention", "DecoderBlock"}
        assert short["TinyAttention"].set_aside == "needs_config"
        parameters = short["DecoderBlock"].parameters
        assert {
            "required": [p.name for p in parameters if p.required],
            "keyword_only": [p.name for p in parameters if p.keyword_only],
        } == self.expected("cr_missing_default")["DecoderBlock"]

    def test_every_name_without_signature_is_listed(self):
        names = self.constant("cr_no_signature", "NAMES")
        found = by_name(survey(["torch"]))
        assert len([name for name in names if name in found]) == len(names)

    def test_random_fill_and_view_operators_are_not_offered(self):
        found = by_name(survey(["torch"]))
        case = "cr_random_fill_and_view_operators"
        names = [
            name
            for group in ("RANDOM", "FILL", "UNINITIALISED", "VIEW")
            for name in self.constant(case, group)
        ]
        assert len(names) >= 30
        assert [name for name in names if name in found and found[name].set_aside is None] == []

    def expected(self, case: str) -> dict:
        return self.constant(case, "EXPECT")

    def constant(self, case: str, name: str):
        tree = ast.parse((CASES / f"{case}.py").read_text())
        (value,) = [
            node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == name
        ]
        return ast.literal_eval(value)
