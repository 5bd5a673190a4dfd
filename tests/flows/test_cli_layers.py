"""What `opweaver crawl` says of lifted layers."""

import dataclasses

import pytest

from flows import cli_layers
from flows.cli_layers import tell_layers, verify_layers
from flows.errors import InfrastructureError
from ops_crawler.lifting import frozen as frozen_module
from ops_crawler.lifting.frozen import frozen
from ops_crawler.lifting.lanes import LiftingError
from ops_crawler.lifting.lift import Lifting
from ops_crawler.operator import Operator


def operator(name: str, set_aside: str | None = None) -> Operator:
    return Operator(
        name=name, kind="module", signature="unknown", source="transformers", set_aside=set_aside,
        alias_group=name, library_version="5.0.0",
    )  # fmt: skip


LISTED = [operator(f"{layer.module}.{layer.name}") for layer in frozen().layers]


def test_no_differences_are_said_so(capsys):
    tell_layers(LISTED)
    said = capsys.readouterr().out
    families = len({layer.family for layer in frozen().layers})
    assert f"transformers: {len(LISTED):,} layers of {families} model families stand alone" in said
    assert f"transformers 5.0.0, layers of transformers {frozen().library_version}: no differences" in said


def test_what_differs_in_the_installed_version_is_named(capsys):
    changed, *rest = LISTED
    new = [operator(f"transformers.models.new.modeling_new.New{n:02}", "not_frozen") for n in range(25)]
    tell_layers([dataclasses.replace(changed, set_aside="not_frozen"), *rest, *new])
    said = capsys.readouterr().out
    assert f"frozen, but changed or gone here (1): {changed.name}\n" in said
    assert "new or changed, so not frozen (26): " in said
    assert said.rstrip().endswith("and 6 more")


def test_a_verification_names_what_differs(monkeypatch, capsys):
    first, *rest = frozen().layers
    lifting = Lifting(
        layers=(dataclasses.replace(first, text=first.text + "\n"), *rest), refusals=frozen().refusals
    )
    monkeypatch.setattr(cli_layers, "_lifted_again", lambda: lifting)
    monkeypatch.setattr(frozen_module, "closures", lambda: ({}, {}))
    monkeypatch.setattr(frozen_module, "lift_classes", lambda jobs, **options: {})
    verify_layers()
    said = capsys.readouterr().out
    assert "layers that differ from the frozen ones: see below" in said
    assert said.rstrip().endswith(f"changed (1): {first.module}.{first.name}")


def test_processes_that_do_not_start_are_an_infrastructure_error(monkeypatch):
    def broken():
        raise LiftingError("the process of the originals does not start: ImportError: no torch")

    monkeypatch.setattr(cli_layers, "_lifted_again", broken)
    with pytest.raises(InfrastructureError, match="--verify: the process of the originals does not start"):
        verify_layers()
