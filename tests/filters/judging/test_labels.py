import pytest

from filters.judging.labels import (
    few_enough,
    requested_operators_matter,
    requested_operators_ran,
    small_enough,
)
from filters.policy import Policy
from filters.reasons import Reason
from filters.verdict import Claim


@pytest.mark.parametrize("requested", ["torch.sigmoid", "F.sigmoid", "nn.Sigmoid", "torch.nn.Sigmoid"])
def test_a_requested_operator_ran_in_whatever_style(good, requested):
    assert requested_operators_ran(good(), Policy(), Claim(requested_ops=(requested,))) is None


def test_a_requested_operator_did_not_run(good):
    claim = Claim(requested_ops=("torch.nn.Linear", "torch.tanh"))
    found = requested_operators_ran(good(), Policy(), claim)
    assert found.reason is Reason.LABEL_MISMATCH
    assert found.evidence == {"absent": ["torch.tanh"], "ran": ("torch.nn.Linear", "torch.sigmoid")}


@pytest.mark.parametrize("requested", ["torch.add", "add", "torch.t", "nn.Flatten", "torch.ge", "torch.div"])
def test_arithmetic_views_and_comparisons_ran_if_they_were_called(good, requested):
    facts = good(signature=("linear", "add", "div", "transpose", "reshape", "ge", "sigmoid"))
    assert requested_operators_ran(facts, Policy(), Claim(requested_ops=(requested,))) is None
    assert requested_operators_ran(good(), Policy(), Claim(requested_ops=(requested,))) is not None


@pytest.mark.parametrize("requested", ["nn.Dropout", "F.dropout", "nn.AlphaDropout", "nn.Identity"])
def test_what_was_called_and_does_nothing_did_not_run(good, requested):
    facts = good(signature=("linear", "dropout", "alphadropout", "identity", "sigmoid"))
    found = requested_operators_ran(facts, Policy(), Claim(requested_ops=(requested,)))
    assert found.evidence["absent"] == [requested]


def test_containers_and_namespaces_cannot_run(good):
    claim = Claim(requested_ops=("nn.Sequential", "nn.Parameter", "nn.functional", "nn.Linear"))
    assert requested_operators_ran(good(), Policy(), claim) is None


def test_a_requested_operator_without_effect(good):
    facts = good(ineffective_ops=("torch.sigmoid",))
    found = requested_operators_matter(facts, Policy(), Claim(requested_ops=("torch.nn.Sigmoid",)))
    assert found.reason is Reason.OPERATOR_IGNORED
    assert found.evidence == {"operators": ["torch.nn.Sigmoid"]}


def test_an_operator_without_effect_that_nobody_asked_for(good):
    facts = good(ineffective_ops=("torch.sigmoid",))
    assert requested_operators_matter(facts, Policy(), Claim()) is None


def test_layers_too_long_to_be_probed_are_believed(good):
    facts = good(ineffective_ops=None)
    assert requested_operators_matter(facts, Policy(), Claim(requested_ops=("torch.sigmoid",))) is None


def test_number_of_operators(good):
    names = tuple(f"torch.{name}" for name in ("sin", "cos", "tan", "exp", "abs", "tanh"))
    assert few_enough(good(ops=names[:5]), Policy(ops_max=5), Claim()) is None
    found = few_enough(good(ops=names), Policy(ops_max=5), Claim())
    assert found.reason is Reason.TOO_MANY_OPS
    assert found.evidence == {"count": 6, "ran": names}
    assert few_enough(good(ops=names), Policy(ops_max=5), Claim(whole_layer=True)) is None


def test_size_of_a_whole_layer(good):
    layer = Claim(whole_layer=True)
    assert small_enough(good(aten_nodes=2000), Policy(aten_nodes_max=2000), layer) is None
    found = small_enough(good(aten_nodes=2001), Policy(aten_nodes_max=2000), layer)
    assert found.reason is Reason.TOO_MANY_OPS
    assert found.evidence == {"aten_nodes": 2001}
    assert small_enough(good(aten_nodes=2001), Policy(aten_nodes_max=2000), Claim()) is None
