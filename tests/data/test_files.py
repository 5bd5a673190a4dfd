"""Files of a run come back as they were written, stay whole, and say in one line what is wrong with them."""

import dataclasses
import math
import random
import subprocess
import sys
from pathlib import Path

import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from composer.candidate import Candidate
from data.errors import InputError, StorageError
from data.files import (
    Judged,
    read_candidates,
    read_operators,
    read_timings,
    read_verdicts,
    write_candidates,
    write_operators,
    write_verdicts,
)
from data.schema import VERDICT, arrow_schema
from data.tables import read_table
from filters.measurement import Measurement
from filters.reasons import Reason, Stage
from filters.verdict import Verdict
from ops_crawler.operator import Operator, Parameter

PROJECT = Path(__file__).parents[2]
GELU = Operator(
    name="torch.nn.functional.gelu",
    kind="function",
    signature="(input, approximate='none')",
    parameters=(
        Parameter(name="input", required=True),
        Parameter(name="approximate", required=False, default="'none'"),
    ),
    summary="Applies GELU.",
    library_version="2.13.0",
)
UNKNOWN = Operator(name="torch.dot", kind="function", signature="unknown")


def candidate(index: int, code: str = "x = 1\n") -> Candidate:
    return Candidate(
        index=index, name=f"c{index}", code=code, requested_ops=("torch.exp",), seed=7, composer="rules"
    )


def verdict(index: int, reason: Reason = Reason.ACCEPTED, stage: Stage | None = None, **evidence) -> Verdict:
    outcome = "accepted" if reason is Reason.ACCEPTED else "rejected"
    return Verdict(
        index=index, id=candidate(index).id, outcome=outcome, reason=reason, stage=stage, evidence=evidence
    )


def test_operators_come_back(tmp_path):
    write_operators(tmp_path / "operators.parquet", [GELU, UNKNOWN])
    assert read_operators(tmp_path / "operators.parquet") == [GELU, UNKNOWN]
    write_operators(tmp_path / "operators.parquet", [])
    assert read_operators(tmp_path / "operators.parquet") == []


def test_candidates_come_back_byte_for_byte(tmp_path):
    path = tmp_path / "deep" / "er" / "candidates.parquet"
    written = [candidate(4, "a = 1\r\n# \u2028 \x0c \x85 \x00 \U0001f600\n"), candidate(2)]
    write_candidates(path, written)
    assert read_candidates(path) == written
    assert [entry.name for entry in path.parent.iterdir()] == [path.name], "no temporary file stays"


def test_a_file_cannot_claim_to_be_ours(tmp_path):
    path = tmp_path / "candidates.parquet"
    write_candidates(path, [dataclasses.replace(candidate(0), origin="rules")])
    assert read_table(path)["origin"].to_pylist() == ["rules"]
    assert [c.origin for c in read_candidates(path)] == ["foreign"]


def test_a_lone_surrogate_becomes_its_escape_and_keeps_its_id(tmp_path):
    path = tmp_path / "candidates.parquet"
    broken = candidate(0, "LABEL = '\ud83d'\n")
    write_candidates(path, [broken, candidate(1)])
    first, second = read_candidates(path)
    assert (first.code, first.id) == ("LABEL = '\\ud83d'\n", broken.id)
    assert second == candidate(1)


def test_verdicts_come_back_with_their_facts(tmp_path):
    path = tmp_path / "verdicts.parquet"
    measured = Measurement(input_shapes=((2, 3), ()), eager_ms=1.5, eager_error=math.inf, bytes=2**40, ops=())
    verdicts = [verdict(0), verdict(1, Reason.TOO_FAST, Stage.RUNTIME, eager_ms=0.1, note="\ud83d")]
    write_verdicts(path, [candidate(1), candidate(0)], verdicts, {candidate(0).id: measured})
    assert read_verdicts(path) == [
        Judged(name="c0", verdict=verdicts[0], measurement=measured),
        Judged(name="c1", verdict=verdicts[1], measurement=measured),
    ]
    table = pandas.read_parquet(path)
    assert dict(zip(table["name"], table["reason"], strict=True)) == {"c0": "accepted", "c1": "too_fast"}
    assert list(table.columns[:7]) == ["name", "id", "index", "verdict", "reason", "stage", "evidence"]


def test_the_schema_does_not_depend_on_the_rows(tmp_path):
    write_verdicts(tmp_path / "empty.parquet", [], [], {})
    write_verdicts(tmp_path / "nulls.parquet", [candidate(0)], [verdict(0)], {})
    for name in ("empty", "nulls"):
        assert read_table(tmp_path / f"{name}.parquet").schema.equals(arrow_schema(VERDICT))


def test_forged_facts_do_not_stop_the_writing(tmp_path):
    path = tmp_path / "verdicts.parquet"
    forged = Measurement(n_params=10**30, fault_detail="\udcff", input_shapes=((-(10**30),),))
    write_verdicts(path, [candidate(0)], [verdict(0)], {candidate(0).id: forged})
    (row,) = read_verdicts(path)
    assert row.measurement == Measurement(
        n_params=2**63 - 1, fault_detail="\\udcff", input_shapes=((-(2**63),),)
    )


def test_recorded_times(tmp_path):
    path = tmp_path / "verdicts.parquet"
    candidates = [candidate(0, "a"), candidate(1, "b"), candidate(2, "a")]
    verdicts = [dataclasses.replace(verdict(c.index), id=c.id) for c in candidates]
    timed = Measurement(eager_ms=2.0, eager_samples=30, n_params=4, compile_seconds=3.5)
    write_verdicts(
        path, candidates, verdicts, {candidates[0].id: timed, candidates[1].id: Measurement(graphs=1)}
    )
    assert read_timings(path) == {
        candidates[0].id: {"eager_ms": 2.0, "eager_samples": 30, "compile_seconds": 3.5}
    }


@pytest.mark.parametrize("read", [read_candidates, read_verdicts, read_operators, read_timings])
def test_a_file_that_is_not_ours(tmp_path, read):
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "absent.parquet")
    (tmp_path / "text.parquet").write_text("index,code\n")
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read(tmp_path / "text.parquet")
    pq.write_table(pa.table({"colour": ["red"]}), tmp_path / "other.parquet")
    with pytest.raises(InputError, match="lacks the columns"):
        read(tmp_path / "other.parquet")


def test_a_torn_file(tmp_path):
    path = tmp_path / "candidates.parquet"
    write_candidates(path, [candidate(0)])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read_candidates(path)


def test_a_verdict_of_another_version(tmp_path):
    path = tmp_path / "verdicts.parquet"
    write_verdicts(path, [candidate(0)], [verdict(0)], {})
    table = read_table(path)
    position = table.schema.get_field_index("reason")
    pq.write_table(table.set_column(position, "reason", pa.array(["too_ugly"])), path)
    with pytest.raises(InputError, match=r"not ours.*too_ugly"):
        read_verdicts(path)


def test_a_full_disk_keeps_the_old_file(small_disk):
    path = small_disk / "candidates.parquet"
    write_candidates(path, [candidate(0)])
    noise = random.Random(0).randbytes(300_000).hex()
    with pytest.raises(StorageError, match=r"candidates\.parquet: cannot be written: the disk is full; free"):
        write_candidates(path, [candidate(0, noise)])
    assert read_candidates(path) == [candidate(0)]
    assert [entry.name for entry in small_disk.iterdir()] == [path.name]


def test_a_read_only_disk(read_only):
    with pytest.raises(StorageError, match="the disk is read-only; choose another place"):
        write_candidates(read_only / "candidates.parquet", [candidate(0)])


def test_a_limit_on_the_size_of_files(tmp_path):
    path = tmp_path / "candidates.parquet"
    script = (
        "import sys, signal, resource, pathlib\n"
        "from composer.candidate import Candidate\n"
        "from data.errors import StorageError\n"
        "from data.files import write_candidates\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "try:\n"
        "    write_candidates(pathlib.Path(sys.argv[1]), [Candidate(index=0, name='a', code='x')])\n"
        "except StorageError as error:\n"
        "    print(error)\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", script, path], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert "larger than the limit of this process" in child.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_no_place(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="a part of this path is a file"):
        write_candidates(tmp_path / "file" / "candidates.parquet", [candidate(0)])
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match="this is a folder; give a file name"):
        write_candidates(tmp_path / "folder", [candidate(0)])
