"""What the text of a library class needs, found without importing the library."""

import ast

from ops_crawler.lifting.closures import closure_of, layer_classes

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


def test_a_record_of_the_library_becomes_a_named_tuple_with_its_fields():
    closure = closure_of(BERT, "BertEncoder")
    record = next(ast.unparse(tree) for name, tree in closure.trees() if name.startswith("BaseModelOutput"))
    name, fields = (
        "BaseModelOutputWithPastAndCrossAttentions",
        "'hidden_states', 'attentions', 'cross_attentions'",
    )
    assert record.startswith(f"{name} = namedtuple({name!r}, ['last_hidden_state', ")
    assert record.endswith(f"{fields}], defaults=[None] * 5)")
    assert closure.imports["namedtuple"] == ("collections", "namedtuple")


def test_what_no_task_can_have_is_known_with_its_reason():
    matcher = closure_of(
        "transformers.models.mask2former.modeling_mask2former", "Mask2FormerHungarianMatcher"
    )
    assert str(matcher.missing["linear_sum_assignment"]) == "foreign_import: scipy"
