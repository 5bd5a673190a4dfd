from pathlib import Path

import pytest

from composer.candidate import Candidate
from filters.judging import first_finding
from filters.policy import Policy
from filters.reasons import Reason, Stage
from filters.screening import screened
from filters.verdict import Claim


def objection(measurement, policy=None):
    found = first_finding(measurement, policy or Policy(), Claim(), only=Stage.SIMILARITY)
    return found[1] if found else None


def objection_to(code):
    return objection(screened(Candidate(index=0, name="0", code=code)))


def test_a_shared_skeleton_alone_is_no_reason(good):
    assert objection(good(kb_operator_similarity=0.97)) is None


@pytest.mark.parametrize(
    ("change", "evidence"),
    [
        (
            {"kb_ast_similarity": 0.91},
            {"instrument": "ast_similarity", "nearest": "level1/1_A", "score": 0.91},
        ),
        (
            {"kb_signature_match": "level1/3_c"},
            {"instrument": "signature", "nearest": "level1/3_c", "score": 1.0},
        ),
        (
            {"kb_same_operators_similarity": 0.93, "kb_same_operators_nearest": "level1/4_d"},
            {"instrument": "operator_similarity", "nearest": "level1/4_d", "score": 0.93},
        ),
    ],
)
def test_each_instrument_is_a_reason(good, change, evidence):
    finding = objection(good(**change))
    assert finding.reason is Reason.CONTAMINATED
    assert finding.evidence == evidence


@pytest.mark.parametrize("field", ["kb_ast_similarity", "kb_same_operators_similarity"])
def test_the_limit_itself_is_allowed(good, field):
    facts = good(**{field: 0.9})
    assert objection(facts) is None
    assert objection(facts, Policy(kb_similarity_max=0.89)) is not None


DISGUISES = {
    "names and sizes": """
        class Model(nn.Module):
            def __init__(self, n_in, n_out, gain, leak):
                super().__init__()
                self.affine, self.gain, self.leak = nn.Linear(n_in, n_out), gain, nn.LeakyReLU(leak)

            def forward(self, rows):
                return self.leak(self.affine(rows) * self.gain)
    """,
    "functions on hand-made parameters": """
        class Model(nn.Module):
            def __init__(self, n_in, n_out, gain, leak):
                super().__init__()
                self.gain, self.leak = gain, leak
                self.weight = nn.Parameter(torch.randn(n_out, n_in))
                self.bias = nn.Parameter(torch.randn(n_out))

            def forward(self, x):
                return F.leaky_relu(torch.mul(F.linear(x, self.weight, self.bias), self.gain), self.leak)
    """,
    "body elsewhere, checks and notes": """
        def finish(x: torch.Tensor, leak: float) -> torch.Tensor:
            assert x.dim() == 2
            return F.leaky_relu(x, leak)

        class Stage(nn.Module):
            '''Most of it.'''

            def __init__(self, n_in: int, n_out: int, gain: float, leak: float) -> None:
                super(Stage, self).__init__()
                if n_in <= 0:
                    raise ValueError("no inputs")
                self.layers = nn.Sequential(nn.Linear(n_in, n_out))
                self.gain, self.leak = gain, leak

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return finish((scaled := self.layers(x) * self.gain), self.leak)

        class Model(Stage):
            pass
    """,
}


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_benchmark_task_in_disguise(task, disguise):
    finding = objection_to(task(DISGUISES[disguise], init="[8, 16, 2.0, 0.1]"))
    assert finding.evidence["nearest"] == "level2/12_Gemm_Multiply_LeakyReLU"


def test_another_operator_is_another_task(task):
    code = task(DISGUISES["names and sizes"].replace("LeakyReLU", "Softshrink"), init="[8, 16, 2.0, 0.1]")
    assert objection_to(code) is None


def test_the_executed_signature_counts_once_it_is_known(task, good):
    code = task(DISGUISES["names and sizes"], init="[8, 16, 2.0, 0.1]")
    candidate = Candidate(index=0, name="0", code=code)
    other = screened(candidate, good(signature=("linear", "mul", "leakyrelu", "cumsum")))
    assert other.kb_signature_match == ""
    same = screened(candidate, good(signature=("linear", "mul", "leakyrelu")))
    assert same.kb_signature_match == "level2/12_Gemm_Multiply_LeakyReLU"


def test_text_that_cannot_be_analysed_has_no_similarity():
    facts = screened(Candidate(index=0, name="0", code="class Model(:"))
    assert facts.kb_ast_similarity is None


def test_the_cases():
    """What is no copy of a task must pass; two of the hostile cases happen to be a lone ReLU or sigmoid."""
    folder = Path(__file__).parents[4] / "shared/cases"
    if not folder.exists():
        pytest.skip("needs ../shared/cases")
    cases = {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py"))}
    found = {
        name
        for name, code in cases.items()
        if name[:2] in ("ac", "ct", "dg", "dp", "nd", "cm", "lb") and objection_to(code)
    }
    assert found == {name for name in cases if name.startswith("ct_")} - {"ct_algebraic_rewrite"}
