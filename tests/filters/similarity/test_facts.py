import random

import pytest

from composer.source_names import UnreadableCodeError, parse
from filters.similarity import fingerprint, shipped_reference, similarities, similarity
from filters.similarity.facts import nearest_model, operator_facts
from filters.similarity.sequences import operator_similarities
from filters.similarity.syntax_trees import ast_similarity, model_class

GEMM = """
    class Model(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.gemm = nn.Linear(width, width)

        def forward(self, x):
            return {forward}
"""


def test_facts_of_a_copy(task):
    facts = similarity(task(GEMM.format(forward="F.relu(self.gemm(x)) / 2.0")), None, shipped_reference())
    assert facts.kb_signature_match == "level2/63_Gemm_ReLU_Divide"
    assert facts.kb_same_operators_nearest == "level2/63_Gemm_ReLU_Divide"
    assert 0.6 < facts.kb_same_operators_similarity <= facts.kb_operator_similarity < 1.0
    assert 0.0 < facts.kb_ast_similarity < 0.9


def test_the_executed_signature_counts_where_it_is_known(task):
    code = task(GEMM.format(forward="torch.tanh(self.gemm(x))"))
    assert similarity(code, None, shipped_reference()).kb_signature_match is None
    ran = similarity(code, ("linear", "relu", "div"), shipped_reference())
    assert ran.kb_signature_match == "level2/63_Gemm_ReLU_Divide"


def test_one_by_one_is_as_all_at_once(task):
    codes = [task(GEMM.format(forward=forward)) for forward in ("x.exp()", "self.gemm(x).relu()", "x @ x.T")]
    together = similarities(codes, [fingerprint(code) for code in codes], shipped_reference())
    assert together == [similarity(code, None, shipped_reference()) for code in codes]


def test_the_nearest_model_is_the_nearest_of_all(ops_6k):
    """The search stops early; it must not miss anything, and the forest must not grow."""
    reference = shipped_reference()
    size = len(reference.forest.kinds)
    for row in random.Random(0).sample(ops_6k, 5):
        score, name = nearest_model(row["code"], reference)
        program = reference.forest.plant(model_class(parse(row["code"])))
        every = [ast_similarity(program, other) for other in reference.programs]
        reference.forest.prune(size)
        assert score == max(every)
        assert name == reference.tasks[every.index(score)].name
    assert len(reference.forest.kinds) == size


def test_long_tasks_are_left_out_only_where_nobody_looks(ops_6k):
    """Short and long candidates; the published transformers layers are as long as level 3."""
    reference = shipped_reference()
    prints = [fingerprint(row["code"]) for row in [*ops_6k[:200:2], *ops_6k[5700:5800:2]]]
    every = operator_similarities([candidate.sequence for candidate in prints], reference.sequences)
    for candidate, row, facts in zip(prints, every, operator_facts(prints, reference), strict=True):
        assert facts["kb_operator_similarity"] == pytest.approx(row.max(), abs=1e-4)
        same = [row[place] for place in reference.same_operators(candidate.signature, executed=False)]
        assert facts["kb_same_operators_similarity"] == pytest.approx(max(same) if same else None, abs=1e-4)


def test_no_model_is_near_nothing():
    facts = similarity("x = 1", None, shipped_reference())
    assert facts.kb_ast_similarity == facts.kb_operator_similarity == 0.0
    assert facts.kb_signature_match is facts.kb_same_operators_similarity is None


@pytest.mark.parametrize("code", ["class Model(:", "class Model:\n    x = " + "1 + " * 5000 + "1"])
def test_unreadable_code_is_refused(code):
    size = len(shipped_reference().forest.kinds)
    with pytest.raises(UnreadableCodeError):
        similarity(code, None, shipped_reference())
    with pytest.raises(UnreadableCodeError):
        nearest_model(code, shipped_reference())
    assert len(shipped_reference().forest.kinds) == size
