"""The dataset card: what is in the folder, how it came about, and under which conditions it holds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from data.columns_page import columns_table
from data.front_matter import TableFile, front_matter
from data.funnel import QUESTIONS, FunnelLine
from data.schema import DATASET
from filters.policy import Policy
from filters.reasons import Reason

MARK = "Made with OpWeaver"
"""Stands in every card of ours and tells our folders from others."""

_MACHINE = (
    "device_name", "driver_version", "cuda_version", "torch_version", "transformers_version",
    "tf32_matmul", "tf32_cudnn",
)  # fmt: skip
_CITATION = """@misc{cudaagent2026,
  title         = {CUDA Agent: Large-Scale Agentic RL for High-Performance CUDA Kernel Generation},
  year          = {2026},
  eprint        = {2602.24286},
  archivePrefix = {arXiv},
  url           = {https://arxiv.org/abs/2602.24286}
}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What a card tells."""

    name: str
    """Under which the set is loaded, such as `ORG/NAME`."""
    rows: Sequence[Mapping[str, Any]]
    files: Sequence[TableFile]
    funnel: Sequence[FunnelLine]
    policy: Policy
    settings: str
    """TOML."""
    license: str
    """Of what was written for this set; rows taken from elsewhere name their own."""


def card_text(card: Card) -> str:
    """Return `README.md`: YAML for the Hub, then Markdown for people."""
    sections = (_introduction, _contents, _funnel, _filters, _contamination, _machine, _reproduction)
    licences = {card.license: None} | {row["source_license"]: None for row in card.rows if _is_foreign(row)}
    return "\n".join(
        [
            front_matter(card.files, licences),
            *(section(card) for section in sections),
            _LIMITS,
            f"## Columns\n\n{columns_table(DATASET)}",
            _licence(card),
            _citation(),
        ]
    )


def _is_foreign(row: Mapping[str, Any]) -> bool:
    return row["source_license"] is not None


def _introduction(card: Card) -> str:
    listed = "\n".join(f"| `{file.config}` | {file.split} | {file.rows:,} |" for file in card.files)
    return f"""# Fused operator tasks for GPU-kernel agents

Each row of the config `default` is one self-contained PyTorch module: a class `Model`, a function
`get_inputs()` and a function `get_init_inputs()`, as in KernelBench. An agent is asked for a faster kernel
that computes the same. Every row was executed before it was accepted: it is repeatable, depends on all of its
inputs, agrees with its compiled form, and runs long enough to be timed. `rejected` says why each other
candidate was not accepted; `operators` lists what the tasks are composed of. {MARK}.

```python
from datasets import load_dataset

tasks = load_dataset("{card.name}", split="train")
easy = tasks.filter(lambda row: row["difficulty"] == "easy")
rejected = load_dataset("{card.name}", "rejected", split="train")
```

| config | split | rows |
|---|---|---|
{listed}
{_empty_tables(card)}"""


def _empty_tables(card: Card) -> str:
    empty = [f"`{file.config}`" for file in card.files if file.rows == 0 and file.config != "default"]
    if not empty:
        return ""
    return f"\nNothing to list in {' and '.join(empty)}: one row of nulls stands there, so that it loads.\n"


def _contents(card: Card) -> str:
    """Count the rows by what people filter by, and give the range of their figures."""
    names = ("difficulty", "data_source", "composer")
    counts = [
        f"| `{name}` | {', '.join(f'{value} ({n:,})' for value, n in _counts(card.rows, name))} |"
        for name in names
    ]
    figures = (("eager_ms", "ms"), ("compile_ms", "ms"), ("peak_memory_mb", "MB"))
    ranges = [f"| `{name}` | {_range(card.rows, name, unit)} |" for name, unit in figures]
    return "\n".join(["## What the rows are", "", "| column | values |", "|---|---|", *counts, *ranges, ""])


def _counts(rows: Sequence[Mapping[str, Any]], name: str) -> list[tuple[str, int]]:
    return sorted(Counter(str(row[name]) for row in rows).items())


def _range(rows: Sequence[Mapping[str, Any]], name: str, unit: str) -> str:
    known = sorted(row[name] for row in rows if row[name] is not None)
    if not known:
        return "not measured"
    return f"{known[0]:.3g} to {known[-1]:.3g} {unit}, median {known[len(known) // 2]:.3g}"


def _funnel(card: Card) -> str:
    total = sum(line.candidates for line in card.funnel)
    lines = "\n".join(f"| {line.stage} | {line.reason} | {line.candidates:,} |" for line in card.funnel)
    return f"""## Where the candidates went

| stage | reason | candidates |
|---|---|---|
{lines}
| all | | {total:,} |

`surplus` passed every filter, but lies beyond the wanted number of rows.
"""


def _filters(card: Card) -> str:
    asked = "\n".join(f"| {stage} | {question} |" for stage, question in QUESTIONS.items())
    thresholds = "\n".join(
        f"| `{name}` | {getattr(card.policy, name):g} | {field.description} |"
        for name, field in Policy.model_fields.items()
    )
    return f"""## Filters

In this order; the first stage that objects gives the reason.

| stage | asks |
|---|---|
{asked}

| threshold | value | meaning |
|---|---|---|
{thresholds}
"""


def _contamination(card: Card) -> str:
    found = sum(line.candidates for line in card.funnel if line.reason == Reason.CONTAMINATED)
    nearest = [
        f"`{name}` is at most {max(known):.3f}"
        for name in ("kb_ast_similarity", "kb_operator_similarity")
        if (known := [row[name] for row in card.rows if row[name] is not None])
    ]
    accepted = f" Among the accepted rows, {' and '.join(nearest)}." if nearest else ""
    return f"""## Contamination

Every candidate with a sound text was compared with all 270 tasks of KernelBench (levels 1 to 4) by three
instruments, each of which is enough to reject it: the AST similarity of the paper (class `Model`) above
{card.policy.kb_similarity_max:g}; an equal ordered list of the operators that run; and, where the same
operators run in whatever order, a similarity above the same bound of syntax trees that keep the operators,
with helpers and base classes inlined, names made canonical and sizes left out. Scores and nearest task stand
in each row (`kb_*`). Rejected as `contaminated`: {found:,} candidates, whose text is not published.{accepted}
Similarity to other benchmarks was not measured.
"""


def _machine(card: Card) -> str:
    """List the distinct machines and versions of the rows."""
    machines = sorted(
        {tuple("" if row[name] is None else str(row[name]) for name in _MACHINE) for row in card.rows}
    )
    lines = "\n".join(f"| {' | '.join(machine)} |" for machine in machines)
    return f"""## Hardware and versions

Times, bits and peak memory hold for these machines and versions; other ones need a new measurement.

| {" | ".join(_MACHINE)} |
|{"---|" * len(_MACHINE)}
{lines}
"""


def _reproduction(card: Card) -> str:
    return f"""## How to make it again

`opweaver run --config settings.toml` with these settings composes the same candidates. Times differ from run
to run; with the recorded ones (`--timings verdicts.parquet`) the same rows are accepted.

```toml
{card.settings.strip()}
```
"""


_LIMITS = """## Limits

- Only the forward pass in inference (`.eval()`, no gradients) was checked and timed. `train_eval_same` says
  whether train mode gives the same bits.
- Times are medians, taken one task at a time (on a GPU with a cold L2 cache); a row near a bound of
  `eager_ms` may lie outside on another machine. `compile_ms` is the default mode of `torch.compile`, not the
  fastest one there is.
- Inputs are random draws of fixed shapes, and all layers are synthetic or taken from libraries: neither says
  how often a shape or a combination occurs in practice.
- The rows are training tasks. They are no benchmark: `code` is public, and so is each answer made from it.
- `code` is a program. Execute it, and what a model answers to it, only where it can do no harm.
"""


def _licence(card: Card) -> str:
    rows = [row for row in card.rows if _is_foreign(row)]
    if not rows:
        return f"## Licence\n\nAll rows were written for this set and are under `{card.license}`.\n"
    counts = Counter((str(row["source_license"]), str(row["data_source"])) for row in rows)
    lines = "\n".join(f"| {licence} | {source} | {n:,} |" for (licence, source), n in sorted(counts.items()))
    lifted = any(row["data_source"] == "transformers" for row in rows)
    note = (
        "Rows of `transformers` are layers of the library transformers, which is under Apache-2.0: keep its "
        "copyright notice, and state your changes, where you pass them on.\n"
        if lifted
        else ""
    )
    return f"""## Licence

What was written for this set is under `{card.license}`. {len(rows):,} rows hold source text of others:
`source_license` and `source_path` of each say under which licence and from where it was taken.
{note}
| licence | data_source | rows |
|---|---|---|
{lines}
"""


def _citation() -> str:
    return f"""## Citation

The set follows the synthesis of CUDA-Agent-Ops-6K; please cite its paper:

```bibtex
{_CITATION}
```
"""
