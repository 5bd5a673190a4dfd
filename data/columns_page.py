"""Renders `docs/columns.md` from the schema: `python -m data.columns_page`."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from data.schema import CANDIDATE, DATASET, OPERATOR, REJECTED, VERDICT, Column

PAGE = Path(__file__).parents[1] / "docs" / "columns.md"

_TABLES = (
    ("Dataset rows (config `default`)", DATASET),
    ("Rejected candidates (config `rejected`)", REJECTED),
    ("Operators (config `operators`, `operators.parquet`)", OPERATOR),
    ("Candidates (`candidates.parquet`)", CANDIDATE),
    ("Verdicts (`verdicts.parquet`)", VERDICT),
)


def columns_page() -> str:
    """Return the page as Markdown."""
    sections = [f"## {title}\n\n{columns_table(columns)}" for title, columns in _TABLES]
    introduction = (
        "# Columns\n\nGenerated from `data/schema.py` by `python -m data.columns_page`; edit there. "
        "A null means that the fact was not measured or does not apply.\n\n"
    )
    return introduction + "\n".join(sections)


def columns_table(columns: Sequence[Column]) -> str:
    """Return some columns as a Markdown table."""
    lines = ["| column | type | unit | meaning |", "|---|---|---|---|"]
    lines += [
        f"| `{column.name}` | {type_name(column.type)} | {column.unit} | {column.meaning} |"
        for column in columns
    ]
    return "\n".join(lines) + "\n"


def type_name(type: pa.DataType) -> str:
    """Return an Arrow type in words."""
    if pa.types.is_list(type):
        return f"list of {type_name(type.value_type)}"
    if pa.types.is_struct(type):
        return "struct of " + ", ".join(f"{field.name} ({type_name(field.type)})" for field in type)
    return str(type)


if __name__ == "__main__":
    PAGE.write_text(columns_page(), encoding="utf-8")
