"""What a crawl lists of transformers: every layer class, with a layer or a reason."""

import pytest

from ops_crawler import transformers_source
from ops_crawler.lifting.closures import closure_of, layer_classes
from ops_crawler.lifting.frozen import frozen
from ops_crawler.lifting.library import library_version
from ops_crawler.lifting.lift import Refusal
from ops_crawler.lifting.reasons import NotLiftedError
from ops_crawler.transformers_source import TransformersSource

BERT = "transformers.models.bert.modeling_bert"


@pytest.fixture
def listed(monkeypatch):
    """What is listed of the given classes."""

    def asked(digests, refusals=None):
        monkeypatch.setattr(transformers_source, "closures", lambda: (digests, refusals or {}))
        return {operator.name: operator for operator in TransformersSource().operators()}

    return asked


@pytest.mark.skipif(
    library_version() != frozen().library_version, reason="the layers were made with another transformers"
)
def test_every_class_of_a_file_is_listed_with_a_layer_or_a_reason(listed):
    names = layer_classes(BERT)
    operators = listed({(BERT, name): closure_of(BERT, name).digest for name in names})
    assert operators.keys() == {f"{BERT}.{name}" for name in names}
    own = {layer.name: layer for layer in frozen().layers if layer.module == BERT}
    for name, layer in own.items():
        operator = operators[f"{BERT}.{name}"]
        assert (operator.set_aside, operator.source) == (None, "transformers")
        assert tuple(parameter.name for parameter in operator.parameters) == layer.parameters
    assert "not_frozen" not in {operator.set_aside for operator in operators.values()}


def test_another_class_with_the_closure_of_a_layer_counts_as_the_same(listed):
    layer = frozen().layers[0]
    operators = listed({(layer.module, layer.name): layer.digest, ("transformers.x", "Other"): layer.digest})
    assert operators[f"{layer.module}.{layer.name}"].set_aside is None
    other = operators["transformers.x.Other"]
    assert (other.set_aside, other.alias_group) == ("same_closure", f"{layer.module}.{layer.name}")


def test_where_the_class_of_a_layer_is_gone_the_first_like_it_stands_for_it(listed):
    layer = frozen().layers[0]
    operators = listed({("transformers.x", name): layer.digest for name in ("Other", "Another")})
    assert operators["transformers.x.Another"].set_aside is None
    assert operators["transformers.x.Other"].set_aside == "same_closure"
    assert {one.alias_group for one in operators.values()} == {f"{layer.module}.{layer.name}"}


def test_a_changed_or_new_class_is_not_frozen(listed):
    layer = frozen().layers[0]
    operators = listed({(layer.module, layer.name): "changed", ("transformers.x", "New"): "new"})
    assert {operator.set_aside for operator in operators.values()} == {"not_frozen"}


def test_a_class_without_a_closure_keeps_its_reason(listed):
    operators = listed({}, {("transformers.x", "Other"): Refusal(reason="foreign_import", detail="scipy")})
    assert operators["transformers.x.Other"].set_aside == "foreign_import"


@pytest.mark.parametrize("module", ["mobilebert.modeling_mobilebert", "blip.modeling_blip_text"])
def test_a_file_under_another_licence_is_set_aside(module):
    module = f"transformers.models.{module}"
    for name in layer_classes(module):
        with pytest.raises(NotLiftedError, match="other_license"):
            closure_of(module, name)
    assert module not in {layer.module for layer in frozen().layers}
