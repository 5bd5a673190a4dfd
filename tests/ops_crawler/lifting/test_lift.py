"""Small real classes of the installed library, lifted in real processes and compared bit by bit."""

import ast

import pytest
import torch

from ops_crawler.lifting.bits import same_bits
from ops_crawler.lifting.lift import Refusal, lift_classes
from ops_crawler.lifting.lifted import LiftedLayer
from ops_crawler.lifting.task_text import render

BERT = "transformers.models.bert.modeling_bert"
LLAMA = "transformers.models.llama.modeling_llama"
TEXTNET = "transformers.models.textnet.modeling_textnet"
QWEN2_VL = "transformers.models.qwen2_vl.modeling_qwen2_vl"
DETR = "transformers.models.detr.modeling_detr"
ALLOWED = {"torch", "math", "typing", "collections", "dataclasses", "functools"}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, LiftedLayer | Refusal]:
    found = lift_classes(
        {
            LLAMA: ["LlamaRMSNorm", "LlamaMLP", "LlamaAttention", "LlamaDecoderLayer"],
            BERT: ["BertSelfAttention", "BertIntermediate", "BertEncoder", "BertCrossAttention"],
            TEXTNET: ["TextNetConvLayer"],
            QWEN2_VL: ["Qwen2VLAttention", "Qwen2VLDecoderLayer"],
            DETR: ["DetrConvEncoder", "DetrDecoderLayer"],
        }
    )
    return {name: outcome for (_, name), outcome in found.items()}


@pytest.mark.parametrize(
    "name",
    [
        "LlamaRMSNorm", "LlamaMLP", "LlamaAttention", "LlamaDecoderLayer", "BertSelfAttention", "BertEncoder",
        "TextNetConvLayer", "Qwen2VLAttention", "Qwen2VLDecoderLayer", "DetrDecoderLayer",
    ],
)  # fmt: skip
def test_a_layer_gives_the_bits_of_the_original(outcomes, name):
    assert isinstance(outcomes[name], LiftedLayer), outcomes[name]


def test_a_text_imports_what_tasks_may(outcomes):
    for layer in outcomes.values():
        if isinstance(layer, LiftedLayer):
            tree = ast.parse(render(layer, layer.scales[0], 2))
            roots = {
                (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name).partition(".")[0]
                for node in ast.walk(tree)
                if isinstance(node, ast.Import | ast.ImportFrom)
            }
            assert roots <= ALLOWED, layer.name


def test_the_activation_is_the_one_of_the_default_configuration(outcomes):
    assert "nn.SiLU()" in outcomes["LlamaMLP"].text
    assert "nn.GELU()" in outcomes["BertIntermediate"].text
    assert "nn.ReLU()" in outcomes["TextNetConvLayer"].text


def test_the_configuration_becomes_plain_arguments(outcomes):
    layer = outcomes["LlamaMLP"]
    assert {"hidden_size", "intermediate_size"} <= set(layer.parameters)
    small, full = layer.scales
    width = layer.parameters.index("hidden_size")
    assert int(full.arguments[width]) == 8 * int(small.arguments[width])


def test_inputs_come_from_the_model_that_ran(outcomes):
    kinds = {one.name: one.kind for one in outcomes["LlamaAttention"].scales[0].inputs}
    assert kinds == {
        "hidden_states": "normal",
        "position_embeddings_0": "signed",
        "position_embeddings_1": "signed",
        "attention_mask": "mask",
    }


def test_what_a_layer_takes_and_never_uses_is_no_input(outcomes):
    names = {one.name for one in outcomes["LlamaDecoderLayer"].scales[0].inputs}
    assert names == {"hidden_states", "attention_mask", "position_embeddings_0", "position_embeddings_1"}
    assert "position_ids = None" in outcomes["LlamaDecoderLayer"].text


def test_a_text_holds_only_what_its_configuration_needs(outcomes):
    text = outcomes["BertEncoder"].text
    assert "Cache" not in text
    assert "namedtuple('BaseModelOutputWithPastAndCrossAttentions'" in text


def test_what_cannot_be_lifted_has_a_reason(outcomes):
    assert outcomes["BertCrossAttention"].reason == "not_reached"
    assert outcomes["DetrConvEncoder"].reason == "original_fails"
    assert "AutoBackbone" in outcomes["DetrConvEncoder"].detail


def test_file_version_and_licence_stay_with_the_text(outcomes):
    layer = outcomes["BertSelfAttention"]
    text = render(layer, layer.scales[0], 2)
    assert text.startswith(f"# BertSelfAttention of Hugging Face transformers {layer.library_version}, src/")
    assert "# Licensed under the Apache License, Version 2.0" in text
    assert any("# Copyright" in line for line in text.splitlines()[:4])


def test_bits_differ_where_values_round_differently():
    one = torch.tensor([1.0])
    assert same_bits([one], [one.clone()])
    assert not same_bits([one], [one + torch.finfo(torch.float32).eps])
    assert not same_bits([one], [one.double()])
    assert not same_bits([torch.tensor(0.0)], [torch.tensor(-0.0)])
    assert same_bits([torch.tensor([True, False])], [torch.tensor([True, False])])
    assert not same_bits([one], [])


def test_a_family_that_takes_too_long_is_said_so():
    found = lift_classes({BERT: ["BertPooler"]}, seconds=0.01)
    assert found[BERT, "BertPooler"].reason == "time_limit"
