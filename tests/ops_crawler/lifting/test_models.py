"""Models of the library that are built small: what is too large to be built."""

import pytest
import torch
from transformers import BertModel, LlamaModel

from ops_crawler.lifting import models
from ops_crawler.lifting.models import TooLargeError, build
from ops_crawler.lifting.scaling import FULL, WIDTHS


def test_a_model_with_too_many_parameters_is_not_built(monkeypatch):
    monkeypatch.setattr(models, "PARAMETER_BYTES", 4 * 2**20)
    with pytest.raises(TooLargeError, match="more than 4 MiB of parameters"):
        build(BertModel, WIDTHS[2])
    assert build(BertModel, WIDTHS[0]).get_input_embeddings().weight.shape[1] == 96


def test_shapes_alone_may_be_as_large_as_the_library_has_them():
    with torch.device("meta"):
        model = build(LlamaModel, FULL)
    assert sum(parameter.nbytes for parameter in model.parameters()) > models.PARAMETER_BYTES
