"""Judged sets in files: small ones with every kind of end, one as large as a release."""

import base64
import gzip
import json
import random
import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from composer.candidate import Candidate
from data.files import write_verdicts
from data.tasksets import read_taskset
from filters.measurement import Measurement
from filters.reasons import Reason, Stage
from filters.verdict import Verdict

SHARED = Path(__file__).resolve().parents[4] / "shared"
CODE = '''import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A layer."""

    def forward(self, x):
        x = F.gelu(x)  # smooth
        return x.sum(dim=1)


def get_inputs():
    return [torch.randn({rows}, 1024)]


def get_init_inputs():
    return []
'''
FACTS = Measurement(
    stages_done=("build", "conduct", "repeatability", "output", "degenerate", "labels", "runtime"),
    wall_seconds=21.2, kb_ast_similarity=0.1755, kb_nearest="level2/66_Matmul_Dropout_Softmax",
    kb_signature_match="", kb_operator_similarity=0.5625, kb_operator_nearest="level2/99_Matmul_GELU_Softmax",
    kb_same_operators_similarity=0.0, kb_same_operators_nearest="", contract_fault="", inputs_fixed=False,
    input_shapes=((80, 176, 576),), input_dtypes=("float32",), input_bytes=32440320, n_params=0,
    output_shapes=((80, 176),), output_dtypes=("float32",), peak_memory_mb=137.6, side_effects=(),
    mutated_inputs=(), rng_consumed=(), seed_changes_output=False, repeats_equal=True, state_changed=False,
    train_eval_same=True, repeated_scatter_targets="", output_digest="85" * 32, fresh_process_equal=True,
    unsupported_output="", non_finite_values=0, output_elements=8110080, passing_answers=(),
    varies_along_batch=True, ignored_inputs=(), inert_parameters=(), inert_parameter_share=0.0,
    ops=("torch.nn.functional.gelu", "torch.sum"), signature=("gelu", "sum"), aten_ops=("gelu", "sum"),
    aten_nodes=5, ineffective_ops=(), flops=0, bytes=162426880, eager_ms=24.07, eager_ms_iqr=7.33,
    eager_samples=10, tensor_time_share=0.97, graphs=1, graph_breaks=0, compile_seconds=5.5, compile_ms=3.91,
    compile_ms_iqr=0.77, compile_samples=16, structure_fault="", compared_with="fp64", eager_error=6.5e-08,
    compiled_error=6e-08, allowed_error=1e-05, compiled_allclose=True,
)  # fmt: skip


@dataclass(frozen=True)
class JudgedSet:
    """A `verdicts.parquet` and the candidates that it speaks of."""

    verdicts: Path
    candidates: list[Candidate]


def ended(candidate: Candidate, outcome: str = "accepted", reason: str = "accepted", stage: str | None = None,
          **evidence: object) -> Verdict:  # fmt: skip
    return Verdict(
        index=candidate.index, id=candidate.id, outcome=outcome, reason=Reason(reason),
        stage=Stage(stage) if stage else None, evidence=evidence,
    )  # fmt: skip


@pytest.fixture(scope="session")
def judged(tmp_path_factory) -> JudgedSet:
    """Eight candidates of our own composer that ended in different ways."""
    own = [
        Candidate(index=i, name=f"task_{i}", code=CODE.format(rows=64 + i), composer="rules", seed=0)
        for i in range(8)
    ]
    own[7] = replace(own[7], composer=None)
    ends = [
        ended(own[0]), ended(own[1]), ended(own[2], "surplus"),
        ended(own[3], "rejected", "forbidden", "source", found=["import os"]),
        ended(own[4], "rejected", "contaminated", "similarity", nearest="level1/19_ReLU"),
        ended(own[5], "rejected", "too_fast", "runtime", eager_ms=0.41234567, at_least=1.0),
        ended(own[6], "infrastructure", "needs_measurement", missing=["eager_ms"]),
        ended(own[7], "rejected", "duplicate", "set", of=0),
    ]  # fmt: skip
    times = {0: 24.0, 1: 2.0, 2: 8.0, 5: 0.4}
    facts = {own[i].id: replace(FACTS, eager_ms=ms, kb_ast_similarity=0.1 * i) for i, ms in times.items()}
    path = tmp_path_factory.mktemp("judged") / "verdicts.parquet"
    write_verdicts(path, own, ends, facts)
    return JudgedSet(path, own)


@pytest.fixture(scope="session")
def original() -> Path:
    """CUDA-Agent-Ops-6K as it was published."""
    path = SHARED / "reference/ops6k/cuda_agent_ops_6k.parquet"
    if not path.exists():
        pytest.skip(f"needs the reference set at {path.relative_to(SHARED.parent)} beside the project")
    return path


@pytest.fixture(scope="session")
def release(tmp_path_factory, original) -> JudgedSet:
    """6,000 accepted rows: real texts of different authors, facts spread as they are in a real run."""
    draw = random.Random(0)
    candidates = [replace(each, composer="rules", seed=0) for each in read_taskset(str(original))]
    facts = {each.id: _varied(each, draw) for each in candidates}
    path = tmp_path_factory.mktemp("release") / "verdicts.parquet"
    write_verdicts(path, candidates, [ended(each) for each in candidates], facts)
    return JudgedSet(path, candidates)


def _varied(candidate: Candidate, draw: random.Random) -> Measurement:
    eager = 10 ** draw.uniform(0, 2)
    shape = tuple(draw.choice((16, 24, 80, 256, 576)) for _ in range(3))
    ops = candidate.requested_ops or ("torch.sum",)
    return replace(
        FACTS,
        ops=ops, signature=ops, aten_ops=tuple(draw.sample(ops, len(ops))),
        input_shapes=(shape,), output_shapes=(shape,), input_bytes=4 * shape[0] * shape[1] * shape[2],
        eager_ms=eager, eager_ms_iqr=draw.random(), compile_ms=eager / draw.uniform(0.5, 4),
        compile_ms_iqr=draw.random(), compile_seconds=draw.uniform(2, 20), wall_seconds=draw.uniform(5, 60),
        tensor_time_share=draw.random(), peak_memory_mb=draw.uniform(1, 4000),
        bytes=draw.randrange(10**9), flops=draw.randrange(10**12), n_params=draw.randrange(10**7),
        kb_ast_similarity=draw.random(), kb_nearest=f"level2/{draw.randrange(100)}_Task",
        kb_operator_similarity=draw.random(), kb_operator_nearest=f"level2/{draw.randrange(100)}_Task",
        eager_error=draw.random() / 1e7, compiled_error=draw.random() / 1e7,
    )  # fmt: skip


@pytest.fixture
def unpacked():
    """Return the rows that a page carries, as the browser unpacks them."""

    def unpack(html: str) -> dict:
        packed = re.search(r'<script id="packed-rows"[^>]*>([^<]*)</script>', html).group(1)
        return json.loads(gzip.decompress(base64.b64decode(packed)))

    return unpack
