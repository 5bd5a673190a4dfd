"""What calibration makes of real measurements; the figures depend on the machine and are not asserted."""

import dataclasses
import random
import tomllib

import pytest

from composer.profiles import CPU, profile_from, profile_text
from composer.roofline import estimate
from composer.rules import RULES
from filters import calibration
from filters.calibration import Sample

FEW = ("torch.abs", "torch.log1p", "torch.matmul", "torch.nn.RMSNorm")


@pytest.fixture(scope="module")
def calibrated():
    lines = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibration, "RULES", [rule for rule in RULES if rule.operator in FEW])
        return calibration.calibrate("cpu", 0.0, lines.append), lines


def test_the_profile_of_this_machine_can_be_written_and_read(calibrated):
    profile, _ = calibrated
    assert profile_from(tomllib.loads(profile_text(profile))) == profile
    assert set(profile.matmul_flops_per_second) == {"float32", "bfloat16", "float16"}
    assert set(profile.dtype_slowdowns) == {"bfloat16", "float16"}
    assert profile.tensor_bytes_max == CPU.tensor_bytes_max


def test_an_operator_that_this_torch_cannot_estimate_or_run_is_told_and_left_out(monkeypatch):
    def fails(rule, *rest):
        if rule.operator == "torch.abs":
            raise RuntimeError("aten.equal.default\nwhose result depends on values")
        return solved(rule, *rest)

    solved, lines = calibration.solved, []
    few = [rule for rule in RULES if rule.operator in ("torch.abs", "torch.log1p")]
    monkeypatch.setattr(calibration, "RULES", few)
    monkeypatch.setattr(calibration, "solved", fails)
    monkeypatch.setattr(calibration, "_WANTED_SECONDS", (1e-3,))
    samples = calibration._samples(CPU, calibration.LayerClock("cpu"), 0.0, lines.append)
    assert [sample.operator for sample in samples] == ["torch.log1p"]
    assert lines[0] == "torch.abs: left out, RuntimeError: aten.equal.default"


def test_every_rule_is_measured_even_without_budget_for_further_rounds(calibrated):
    _, lines = calibrated
    assert [line for line in lines if "left out" in line] == []
    assert "round 1 of 3: 4 layers so far" in lines
    assert lines[-1] == "round 3 of 3: 4 layers so far"


def drawn(name):
    (rule,) = [rule for rule in RULES if rule.operator == name]
    return calibration.solved(rule, CPU, 2e-3, random.Random(0))


def test_a_slowdown_goes_to_the_aten_operator_that_takes_the_time_or_to_the_public_one():
    bare = dataclasses.replace(CPU, slowdowns={})
    factors = {"torch.abs": 3.0, "torch.nn.RMSNorm": 5.0}
    samples = []
    for operator, factor in factors.items():
        plan = drawn(operator)
        seconds = estimate(plan, bare).seconds * factor
        samples.append(Sample(operator=operator, plan=plan, measured_seconds=seconds))
    slowdowns = calibration.with_slowdowns(bare, samples).slowdowns
    assert slowdowns == pytest.approx({"abs": 3.0, "torch.nn.RMSNorm": 5.0})


def test_times_that_are_mostly_launches_say_nothing():
    sample = Sample(operator="torch.abs", plan=drawn("torch.abs"), measured_seconds=1e-4)
    assert calibration.with_slowdowns(CPU, [sample]).slowdowns == {}
