"""Which sandbox is taken, and what is said where there is none."""

import subprocess
import sys

import pytest

from composer.candidate import Candidate
from filters.engine import Engine
from filters.errors import SandboxFault
from filters.policy import Policy
from filters.sandbox.layers import Layer, survey, usable
from filters.settings import FilterSettings
from tests.filters.confined import ROOT, why_not


def test_foreign_code_needs_a_sandbox(engine, monkeypatch):
    code = "raise RuntimeError('ran')"
    foreign = Candidate(index=0, name="foreign", code=code)
    ours = Candidate(index=1, name="ours", code=code, origin="rules")
    monkeypatch.setattr(engine, "sandbox", "none")
    with pytest.raises(SandboxFault, match="--unsafe"):
        engine.measure(foreign)
    assert engine.measure(ours).fault_detail.endswith("ran")
    monkeypatch.setattr(engine, "_unsafe", True)
    assert engine.measure(foreign).fault_detail.endswith("ran")


def test_a_layer_that_does_not_work_is_refused_in_one_line(monkeypatch):
    monkeypatch.setenv("PATH", "")
    survey.cache_clear()
    try:
        with pytest.raises(SandboxFault, match="bwrap is not installed"):
            usable("bubblewrap")
    finally:
        survey.cache_clear()


REFUSING = """
from filters.sandbox import layers, seccomp
from filters.sandbox.syscalls import give_up_privileges
give_up_privileges()
seccomp.restrict(signals=False)
print(layers.usable("auto")[0].name, *(layer.why_not for layer in layers.survey()[:2]), sep="\\n")
"""


def test_where_namespaces_are_refused_landlock_is_taken():
    """As in most containers."""
    if why_not("landlock") is not None:
        pytest.skip(f"the sandbox landlock does not work here: {why_not('landlock')}")
    code = REFUSING
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    name, no_bubblewrap, no_namespaces = told.stdout.strip().splitlines()
    assert name == "landlock"
    assert "bwrap" in no_bubblewrap
    assert "Operation not permitted" in no_namespaces


def test_a_layer_in_which_no_worker_answers_is_passed_over(monkeypatch):
    monkeypatch.setattr("filters.sandbox.bubblewrap.command", lambda *_, **__: ["false"])
    monkeypatch.setattr("filters.engine.usable", lambda _: (Layer(name="bubblewrap"), Layer(name="none")))
    with Engine(FilterSettings(device="cpu", workers=1, compile_backend="aot_eager"), Policy()) as engine:
        assert engine.sandbox == "none"
        assert "did not start" in engine.passed_over["bubblewrap"]
        with pytest.raises(SandboxFault, match=r"only in a sandbox \(bubblewrap: .*did not start.*--unsafe"):
            engine.measure(Candidate(index=0, name="foreign", code=""))
