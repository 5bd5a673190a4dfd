"""The schema is the contract: names and order of the design, explicit types, a page that is current."""

import pyarrow as pa

from data.columns_page import PAGE, columns_page
from data.schema import CANDIDATE, DATASET, OPERATOR, REJECTED, VERDICT, arrow_schema
from filters.measurement import Measurement

DESIGN = """
ops data_source code id family_id op_count requested_ops aten_ops categories difficulty split
input_shapes input_dtypes input_bytes output_shapes output_dtypes n_params inert_parameters flops
bytes eager_ms eager_ms_iqr compile_ms compile_ms_iqr timing_samples compile_seconds graph_breaks
peak_memory_mb train_eval_same kb_ast_similarity kb_nearest kb_operator_similarity
kb_operator_nearest device_name driver_version cuda_version torch_version transformers_version
tf32_matmul tf32_cudnn composer seed request_hash source_license source_path
llm_mode prompt_version repair_turns
""".split()


def test_dataset_rows_have_the_columns_of_the_design():
    assert [column.name for column in DATASET] == DESIGN


def test_verdicts_start_as_the_design_says_and_hold_every_fact():
    names = [column.name for column in VERDICT]
    assert names[:7] == ["name", "id", "index", "verdict", "reason", "stage", "evidence"]
    assert names[7:-1] == list(Measurement.__dataclass_fields__)
    assert names[-1] == "earlier_sizings"


def test_names_are_unique_and_meanings_are_given():
    for columns in (DATASET, REJECTED, OPERATOR, CANDIDATE, VERDICT):
        assert len({column.name for column in columns}) == len(columns)
        assert [column.name for column in columns if not column.meaning] == []


def test_types_follow_the_records():
    schema = arrow_schema(VERDICT)
    assert schema.field("input_shapes").type == pa.list_(pa.list_(pa.int64()))
    assert schema.field("eager_ms").type == pa.float64()
    assert schema.field("stages_done").type == pa.list_(pa.string())
    assert schema.field("repeats_equal").type == pa.bool_()
    assert {column.name: column.unit for column in VERDICT}["peak_memory_mb"] == "MB (10^6 bytes)"
    assert not any(pa.types.is_null(column.type) for column in DATASET)


def test_the_committed_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == columns_page(), "run python -m data.columns_page"
