"""The report tells what is missing in words."""

import pytest

from filters.doctor import report
from filters.sandbox.layers import survey
from filters.settings import FilterSettings


@pytest.fixture
def fresh_survey():
    survey.cache_clear()
    yield
    survey.cache_clear()


def test_report_names_device_sandbox_and_compiler():
    checks = {check.name: check for check in report(FilterSettings(device="cpu", workers=1))}
    assert list(checks) == ["torch", "machine", "sandbox", "device", "compiler", "torch.compile"]
    assert checks["device"].detail.startswith("cpu: ")
    assert all("\n" not in check.detail for check in checks.values())
    assert all(checks[name].ok for name in ("torch", "device", "compiler", "torch.compile")), checks


def test_report_without_programs_says_why(monkeypatch, fresh_survey):
    monkeypatch.setenv("PATH", "")
    settings = FilterSettings(device="cpu", workers=1, sandbox="none")
    checks = {check.name: check for check in report(settings)}
    assert not checks["sandbox"].ok
    assert "no bubblewrap: bwrap is not installed" in checks["sandbox"].detail
    assert checks["compiler"] == ("compiler", False, "g++ is not installed")
    assert not checks["torch.compile"].ok


def test_report_without_the_wanted_device():
    checks = {check.name: check for check in report(FilterSettings(device="cuda"))}
    if "workers" not in checks:
        pytest.skip("there is a CUDA device")
    assert "--device cpu" in checks["workers"].detail
