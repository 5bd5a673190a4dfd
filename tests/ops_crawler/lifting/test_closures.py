"""What the text of a library class needs, found without importing the library."""

import pytest

from ops_crawler.lifting.closures import closure_of, layer_classes
from ops_crawler.lifting.reasons import NotLiftedError

BERT = "transformers.models.bert.modeling_bert"
LLAMA = "transformers.models.llama.modeling_llama"
MISTRAL = "transformers.models.mistral.modeling_mistral"


def test_layers_are_told_from_models_and_records():
    names = layer_classes(BERT)
    assert {"BertSelfAttention", "BertLayer", "BertPooler"} <= set(names)
    assert not {"BertModel", "BertPreTrainedModel", "BertForPreTrainingOutput"} & set(names)


def test_a_closure_holds_helpers_before_the_class():
    names = [name for _, name in closure_of(LLAMA, "LlamaAttention").definitions]
    assert names[-1] == "LlamaAttention"
    assert {"rotate_half", "apply_rotary_pos_emb", "repeat_kv", "eager_attention_forward"} <= set(names)
    assert names.index("rotate_half") < names.index("apply_rotary_pos_emb")


def test_families_with_one_text_have_one_closure():
    assert closure_of(LLAMA, "LlamaRMSNorm").digest == closure_of(MISTRAL, "MistralRMSNorm").digest
    assert closure_of(LLAMA, "LlamaRMSNorm").digest != closure_of(LLAMA, "LlamaMLP").digest


def test_a_layer_that_returns_a_record_of_the_library_is_refused():
    with pytest.raises(NotLiftedError) as refused:
        closure_of(BERT, "BertEncoder")
    assert refused.value.reason == "library_part"
    assert "BaseModelOutput" in refused.value.detail
