"""Several processes compose what one composes."""

import os
from pathlib import Path

import pytest

from composer.profiles import CPU
from flows import composing
from flows.composing import compose_at, composer_of, operators_of
from flows.progress import Progress
from flows.settings import Settings

OWN = Path(__file__).resolve().parents[2] / "examples/own_operators/own_operators"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core composes alone")
def test_processes_compose_what_one_composes_own_operators_included(monkeypatch):
    settings = Settings(sources=("torch", str(OWN)))
    operators = operators_of(settings)
    alone = composer_of(settings, operators, CPU)
    monkeypatch.setattr(composing, "_PLACES_PER_PROCESS", 4)
    started = []
    pool = composing._pool
    monkeypatch.setattr(composing, "_pool", lambda *given: started.append(given[0]) or pool(*given))
    together = compose_at(range(3, 11), settings, operators, CPU, Progress())
    assert started == [2]
    assert together == [alone.compose(index) for index in range(3, 11)]
    assert any(candidate.source_path for candidate in together)
