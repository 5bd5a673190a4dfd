"""Lifted layers as candidates."""

import ast
import re

import pytest

from composer.layers import (
    LayerComposer,
    MixedComposer,
    NoLayersError,
    fitted,
    layer_place,
    predicted_seconds,
)
from composer.profiles import CPU, H200
from composer.rule_composer import RuleComposer
from composer.sizes import FASTEST, SLOWEST
from ops_crawler.crawl import crawl
from ops_crawler.lifting.frozen import frozen
from ops_crawler.operator import Operator

LAYERS = [
    Operator(name=name, kind="module", signature="unknown", source="transformers", alias_group=name)
    for name in (f"{layer.module}.{layer.name}" for layer in frozen().layers[::7])
]


def test_every_layer_is_dealt_once_and_says_where_it_is_from():
    composer = LayerComposer(LAYERS, CPU, seed=3)
    candidates = [composer.compose(place, 10 + place) for place in range(len(composer))]
    assert len({candidate.source_path + candidate.requested_ops[0] for candidate in candidates}) == len(
        composer
    )
    for candidate in candidates:
        assert candidate.data_source == "transformers"
        assert candidate.source_license == "Apache-2.0"
        assert re.fullmatch(r"src/transformers/models/\S+\.py of transformers \S+", candidate.source_path)
        assert "Licensed under the Apache License, Version 2.0" in candidate.code


def test_a_candidate_depends_on_seed_and_place_alone():
    one, other = (LayerComposer(LAYERS, H200, seed=5) for _ in range(2))
    assert one.compose(4, 7) == other.compose(4, 7)
    assert one.compose(4, 7).code != LayerComposer(LAYERS, H200, seed=6).compose(4, 7).code


@pytest.mark.parametrize("profile", [CPU, H200])
def test_batches_are_near_the_wanted_times(profile):
    sized = [one for layer in frozen().layers[::7] if (one := fitted(layer, profile))]
    assert len(sized) > 30
    for one in sized:
        assert list(one.seconds) == sorted(one.seconds)
        assert any(FASTEST <= seconds <= SLOWEST for seconds in one.seconds.values())
        assert one.seconds == {batch: predicted_seconds(one.scale, batch, profile) for batch in one.seconds}


def test_a_measured_miss_moves_the_batch_alone():
    composer = LayerComposer(LAYERS, CPU, seed=3)
    moved = 0
    for place in range(20):
        at, larger, smaller = (composer.compose(place, place, steps) for steps in (0, 1, -1))
        assert smaller.predicted_ms <= at.predicted_ms <= larger.predicted_ms
        assert {one.origin for one in (at, larger, smaller)} == {"lifted"}
        different = [
            (one, other)
            for one, other in zip(at.code.splitlines(), larger.code.splitlines(), strict=True)
            if one != other
        ]
        moved += len(different)
        assert all(one.startswith("BATCH_SIZE = ") for one, _ in different)
    assert moved > 10


def test_the_gpu_gets_the_widths_of_the_library():
    scales = {one.scale.name for layer in frozen().layers[::7] if (one := fitted(layer, H200))}
    assert "full" in scales


def test_the_share_is_even_and_exact():
    places = [layer_place(index, 0.25) for index in range(100)]
    dealt = [place for place in places if place is not None]
    assert dealt == list(range(25))
    assert all(place is not None for place in places[3::4])
    assert [layer_place(index, 0.0) for index in range(9)] == [None] * 9


def test_rules_take_over_once_all_layers_are_dealt():
    operators = crawl()
    composer = MixedComposer(RuleComposer(operators, CPU, seed=0), [*operators, *LAYERS[:20]], share=0.5)
    sources = [composer.compose(index).data_source for index in (1, 301)]
    assert sources == ["transformers", None]


def test_a_share_without_layers_says_what_to_do():
    operators = crawl()
    with pytest.raises(NoLayersError, match="add the source `transformers`"):
        MixedComposer(RuleComposer(operators, CPU, seed=0), operators, share=0.5)


def test_no_text_imports_transformers():
    for layer in frozen().layers:
        for node in ast.walk(ast.parse(layer.text)):
            if isinstance(node, ast.ImportFrom):
                assert node.module.partition(".")[0] != "transformers", layer.name
            elif isinstance(node, ast.Import):
                assert all(alias.name.partition(".")[0] != "transformers" for alias in node.names), layer.name
