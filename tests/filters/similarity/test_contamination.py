import dataclasses

import pytest

from filters.policy import Policy
from filters.reasons import Reason
from filters.similarity import SimilarityFacts, contaminated, shipped_reference, similarity

CLEAN = SimilarityFacts(
    kb_ast_similarity=0.4,
    kb_nearest="level1/1_a",
    kb_signature_match=None,
    kb_operator_similarity=0.95,
    kb_operator_nearest="level1/2_b",
    kb_same_operators_similarity=None,
    kb_same_operators_nearest=None,
)


def test_a_shared_skeleton_alone_is_no_reason():
    assert contaminated(CLEAN, Policy()) is None


@pytest.mark.parametrize(
    ("change", "evidence"),
    [
        (
            {"kb_ast_similarity": 0.91},
            {"instrument": "ast_similarity", "nearest": "level1/1_a", "score": 0.91},
        ),
        (
            {"kb_signature_match": "level1/3_c"},
            {"instrument": "signature", "nearest": "level1/3_c", "score": None},
        ),
        (
            {"kb_same_operators_similarity": 0.93, "kb_same_operators_nearest": "level1/4_d"},
            {"instrument": "operator_similarity", "nearest": "level1/4_d", "score": 0.93},
        ),
    ],
)
def test_each_instrument_is_a_reason(change, evidence):
    finding = contaminated(dataclasses.replace(CLEAN, **change), Policy())
    assert finding.reason is Reason.CONTAMINATED
    assert finding.evidence == evidence


@pytest.mark.parametrize("field", ["kb_ast_similarity", "kb_same_operators_similarity"])
def test_the_limit_itself_is_allowed(field):
    facts = dataclasses.replace(CLEAN, **{field: 0.9})
    assert contaminated(facts, Policy()) is None
    assert contaminated(facts, Policy(kb_similarity_max=0.89)) is not None


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
    code = task(DISGUISES[disguise], init="[8, 16, 2.0, 0.1]")
    finding = contaminated(similarity(code, None, shipped_reference()), Policy())
    assert finding.evidence["nearest"] == "level2/12_Gemm_Multiply_LeakyReLU"


def test_another_operator_is_another_task(task):
    code = task(DISGUISES["names and sizes"].replace("LeakyReLU", "Softshrink"), init="[8, 16, 2.0, 0.1]")
    assert contaminated(similarity(code, None, shipped_reference()), Policy()) is None


def test_the_cases(cases):
    """What is no copy of a task must pass; two of the hostile cases happen to be a lone ReLU or sigmoid."""
    found = {
        name
        for name, code in cases.items()
        if name[:2] in ("ac", "ct", "dg", "dp", "nd", "cm", "lb")
        and contaminated(similarity(code, None, shipped_reference()), Policy())
    }
    assert found == {name for name in cases if name.startswith("ct_")} - {"ct_algebraic_rewrite"}
