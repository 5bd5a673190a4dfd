"""The frozen layers, and how a crawl compares the installed library with them."""

import ast
import dataclasses
import re

import pytest

from ops_crawler.lifting import frozen as frozen_module
from ops_crawler.lifting.frozen import Changes, changes, freeze, frozen, unconfirmed
from ops_crawler.lifting.library import library_version
from ops_crawler.lifting.lift import Lifting, Refusal
from ops_crawler.lifting.reasons import LIFTING_REASONS
from ops_crawler.lifting.task_text import render
from ops_crawler.reasons import REASONS

ALLOWED = {"torch", "math", "typing", "collections", "dataclasses", "functools"}


def lifting(layers=None, refusals=None) -> Lifting:
    return Lifting(
        layers=frozen().layers if layers is None else layers,
        refusals=frozen().refusals if refusals is None else refusals,
    )


def test_enough_layers_of_enough_families():
    assert len(frozen().layers) >= 800
    assert len({layer.family for layer in frozen().layers}) >= 120
    assert len({layer.digest for layer in frozen().layers}) == len(frozen().layers)


def test_every_class_that_is_not_lifted_has_a_known_reason():
    assert (
        {refusal.reason for refusal in frozen().refusals.values()} <= LIFTING_REASONS.keys() <= REASONS.keys()
    )
    lifted = {(layer.module, layer.name) for layer in frozen().layers}
    assert not lifted & frozen().refusals.keys()


def test_every_task_imports_what_tasks_may_and_defines_one_model():
    for layer in frozen().layers:
        tree = ast.parse(render(layer, layer.scales[-1], 2))
        imported = {
            (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name).partition(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
        }
        assert imported <= ALLOWED, layer.name
        assert sum(isinstance(node, ast.ClassDef) and node.name == "Model" for node in tree.body) == 1


def test_every_layer_keeps_licence_file_and_version():
    for layer in frozen().layers:
        assert layer.library_version == frozen().library_version
        assert layer.path.startswith("src/transformers/models/")
        assert "Apache License, Version 2.0" in render(layer, layer.scales[0], 2)
    assert sum(bool(layer.copyright) for layer in frozen().layers) > 0.9 * len(frozen().layers)


def test_the_same_lifting_gives_the_same_file():
    assert freeze(lifting(), frozen().library_version) == frozen_module.FILE.read_bytes()
    assert not changes(lifting())


def test_differences_are_named():
    first, second, *rest = frozen().layers
    other = dataclasses.replace(first, text=first.text + "\n")
    refusals = {**frozen().refusals, (second.module, second.name): Refusal(reason="mismatch", detail="")}
    found = changes(lifting((other, *rest), refusals))
    assert found.changed == (f"{first.module}.{first.name}",)
    assert found.refused == (f"{second.module}.{second.name}",)
    assert (found.new, found.gone, found.gained) == ((), (), ())


def test_a_class_that_was_refused_before_is_a_difference():
    first, *rest = frozen().layers
    (module, name), _ = next(iter(frozen().refusals.items()))
    found = changes(lifting((first, dataclasses.replace(first, module=module, name=name), *rest)))
    assert found.gained == (f"{module}.{name}",)
    assert found


def test_no_parameter_holds_what_the_memory_held():
    for layer in frozen().layers:
        assert not re.search(r"Parameter\(torch\.(empty\(|(Float)?Tensor\((?!\[))", layer.text), layer.name


@pytest.mark.skipif(
    library_version() != frozen().library_version, reason="the layers were made with another transformers"
)
def test_the_installed_library_has_the_closures_of_the_layers():
    from ops_crawler.lifting.closures import closure_of

    for layer in frozen().layers[::40]:
        assert closure_of(layer.module, layer.name).digest == layer.digest, layer.name


@pytest.mark.slow
@pytest.mark.skipif(
    library_version() != frozen().library_version, reason="the layers were made with another transformers"
)
def test_what_more_time_confirms_is_no_difference():
    layer = next(one for one in frozen().layers if one.family == "bert")
    name = f"{layer.module}.{layer.name}"
    found = Changes(
        new=(), gone=(), changed=(), refused=(name, "transformers.models.bert.modeling_bert.Other")
    )
    left = unconfirmed(found)
    assert left.refused == ("transformers.models.bert.modeling_bert.Other",)
