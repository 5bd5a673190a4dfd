import math

import pytest

from filters.judging.compiled import compile_mismatch, ill_conditioned, not_compiled, other_structure
from filters.policy import Policy
from filters.reasons import Reason
from filters.verdict import Claim


def test_one_graph_is_enough_and_breaks_are_allowed(good):
    assert not_compiled(good(graphs=1, graph_breaks=7), Policy(), Claim()) is None
    found = not_compiled(good(graphs=0, graph_breaks=2), Policy(), Claim())
    assert found.reason is Reason.NOT_COMPILED
    assert found.evidence == {"graph_breaks": 2}


def test_other_structure(good):
    assert other_structure(good(), Policy(), Claim()) is None
    found = other_structure(good(structure_fault="eager [None], compiled []"), Policy(), Claim())
    assert found.reason is Reason.COMPILE_MISMATCH
    assert found.evidence == {"difference": "eager [None], compiled []"}


def test_ill_conditioned(good):
    policy = Policy(eager_error_max=1e-2)
    assert ill_conditioned(good(eager_error=1e-2), policy, Claim()) is None
    found = ill_conditioned(good(eager_error=1.1e-2), policy, Claim())
    assert found.reason is Reason.ILL_CONDITIONED
    assert found.evidence == {"eager_error": 1.1e-2}


def test_without_double_precision_nothing_is_said_about_conditioning(good):
    facts = good(compared_with="allclose", eager_error=None, compiled_error=None, allowed_error=None)
    assert ill_conditioned(facts, Policy(), Claim()) is None
    assert compile_mismatch(facts, Policy(), Claim()) is None


def test_allclose_decides_without_double_precision(good):
    facts = good(compared_with="allclose", compiled_error=None, compiled_allclose=False)
    found = compile_mismatch(facts, Policy(), Claim())
    assert found.reason is Reason.COMPILE_MISMATCH
    assert found.evidence == {"by": "allclose"}


def test_double_precision_overrules_allclose(good):
    assert compile_mismatch(good(compiled_allclose=False), Policy(), Claim()) is None


def test_compile_mismatch(good):
    assert compile_mismatch(good(compiled_error=1e-5, allowed_error=1e-5), Policy(), Claim()) is None
    found = compile_mismatch(good(compiled_error=2e-5, allowed_error=1e-5), Policy(), Claim())
    assert found.reason is Reason.COMPILE_MISMATCH
    assert found.evidence == {"compiled_error": 2e-5, "allowed": 1e-5, "eager_error": 1e-7}


@pytest.mark.parametrize(
    ("ask", "fact"), [(ill_conditioned, "eager_error"), (compile_mismatch, "compiled_error")]
)
def test_an_error_that_is_no_number_counts_as_large(good, ask, fact):
    assert ask(good(**{fact: math.nan}), Policy(), Claim()) is not None
