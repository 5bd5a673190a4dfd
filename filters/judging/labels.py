"""Do the labels say what ran?"""

from filters.judging.registry import filter_of
from filters.measurement import Measurement
from filters.operators import DROPOUT, kind_of_name, signature_element
from filters.policy import Policy
from filters.reasons import Reason, Stage
from filters.verdict import Claim, Finding

_INACTIVE = {kind_of_name(name) for name in DROPOUT} | {"identity"}
_NO_OPERATORS = frozenset(
    "Module ModuleDict ModuleList Parameter ParameterDict ParameterList Sequential functional".split()
)


@filter_of(Stage.LABELS, "ops")
def requested_operators_ran(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """9 % of Ops-6K carry a label whose operator their code does not use.

    Whoever asks for a view, a comparison or `+` gets it if it was called, though it is no label of ours.
    """
    ran = _elements(m.ops) | (set(m.signature or ()) - _INACTIVE)
    absent = [name for name in _operators_of(claim) if _element(name) not in ran]
    if not absent:
        return None
    return Finding(reason=Reason.LABEL_MISMATCH, evidence={"absent": absent, "ran": m.ops})


@filter_of(Stage.LABELS, "ops")
def requested_operators_matter(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """A requested operator that could be left out trains nothing."""
    idle = [name for name in _operators_of(claim) if _element(name) in _elements(m.ineffective_ops)]
    return Finding(reason=Reason.OPERATOR_IGNORED, evidence={"operators": idle}) if idle else None


@filter_of(Stage.LABELS, "ops")
def few_enough(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """The paper stacks at most five operators; layers lifted from a library are as long as they are."""
    count = len(m.ops or ())
    if claim.whole_layer or count <= policy.ops_max:
        return None
    return Finding(reason=Reason.TOO_MANY_OPS, evidence={"count": count, "ran": m.ops})


@filter_of(Stage.LABELS, "aten_nodes")
def small_enough(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """A lifted layer that unrolls into thousands of calls is a loop, not a layer."""
    if not claim.whole_layer or (m.aten_nodes or 0) <= policy.aten_nodes_max:
        return None
    return Finding(reason=Reason.TOO_MANY_OPS, evidence={"aten_nodes": m.aten_nodes})


def _operators_of(claim: Claim) -> list[str]:
    """Return what was asked for and can run; released sets list containers and namespaces as well."""
    return [name for name in claim.requested_ops if name.rpartition(".")[2] not in _NO_OPERATORS]


def _elements(names: tuple[str, ...] | None) -> set[str]:
    return {_element(name) for name in names or ()}


def _element(name: str) -> str:
    """Return the kind of operator behind a label, however it is spelt: `nn.ReLU`, `F.relu`, `torch.relu`."""
    for short, path in (("nn.", "torch.nn."), ("F.", "torch.nn.functional.")):
        if name.startswith(short):
            name = path + name.removeprefix(short)
    return signature_element(name) or name
