"""A whole run with a model: what is measured and rejected is corrected, and nothing is asked for twice."""

import pyarrow.parquet as pq
import pytest

from data.files import read_candidates, read_verdicts
from filters.reasons import Reason

COMMAND = (
    "run",
    "--composer",
    "llm",
    "--model",
    "scripted",
    "--mode",
    "free",
    "--run-dir",
    "run",
    "--count",
    2,
)


@pytest.mark.slow
def test_rejections_are_corrected_by_rule_or_by_the_model_and_a_second_start_asks_nothing(
    opweaver_run, endpoint, answers, tmp_path
):
    def task(operator, *changes):
        code = answers().content.replace("tanh", operator)
        code = code.replace(
            "import torch\n", f"# operators: torch.nn.Linear, torch.{operator}\nimport torch\n", 1
        )
        for old, new in changes:
            code = code.replace(old, new)
        return answers(code)

    vanishing = ("(self.linear(x))", "(self.linear(x)) * 1e-5")
    large = ("BATCH_SIZE = 96", "BATCH_SIZE = 20000")
    first = [task("tanh", vanishing), task("sigmoid", large), task("erf")]

    def answer(number, body):
        return first[number] if number < len(first) else task("tanh")

    server = endpoint(answer)
    opweaver_run.environment.update(
        OPENAI_BASE_URL=server.url,
        OPWEAVER_LLM__CONCURRENCY="1",
        OPWEAVER_POLICY__PEAK_MEMORY_GIB_MAX="0.1",
        OPWEAVER_POLICY__EAGER_MS_MIN="0",
        OPWEAVER_POLICY__EAGER_MS_MAX="100000",
    )
    done = opweaver_run(*COMMAND)
    assert done.returncode == 0, done.stderr

    rows = pq.read_table(tmp_path / "run/dataset/data/train-00000-of-00001.parquet").to_pylist()
    corrected, resized = rows
    assert (corrected["composer"], corrected["llm_mode"], corrected["prompt_version"]) == (
        "scripted",
        "free",
        "1",
    )
    assert (corrected["repair_turns"], resized["repair_turns"]) == (1, 0)
    assert "1e-5" not in corrected["code"]
    assert "BATCH_SIZE = 3200\n" in resized["code"]  # two steps to 0.4 of what was too much
    assert read_candidates(tmp_path / "run/candidates.parquet")[1].size_edits == 2

    assert len(server.bodies) == len(first) + 1
    objection = server.bodies[-1]["messages"][-1]["content"]
    assert "zeros pass for it" in objection
    assert f"[{Reason.VANISHING_OUTPUT}]" in objection
    outcomes = [row.verdict.outcome for row in read_verdicts(tmp_path / "run/verdicts.parquet")]
    assert outcomes == ["accepted", "accepted", "surplus"]

    server.bodies.clear()
    (tmp_path / "run/verdicts.parquet").unlink()  # so that the run is not known to be finished
    again = opweaver_run(*COMMAND)
    assert again.returncode == 0, again.stderr
    assert server.bodies == []
    assert pq.read_table(tmp_path / "run/dataset/data/train-00000-of-00001.parquet").to_pylist() == rows

    other = opweaver_run(*COMMAND[:-2], "--count", 3, "--model", "another")
    assert other.returncode == 2
    assert "holds a run with other settings: llm (was " in other.stderr
