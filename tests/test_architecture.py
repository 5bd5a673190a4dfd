"""The import graph of the house: one direction, public names only, heavy packages in one place each."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("ops_crawler", "composer", "filters", "data", "environment", "flows")
"""In the direction of the imports: a room may import those to its left."""
OWNERS = {
    "prefect": ("flows/",),
    "ray": ("flows/cluster/",),
    "prefect_ray": ("flows/cluster/",),
    "datasets": ("data/",),
    "huggingface_hub": ("data/",),
    "openai": ("composer/llm", "environment/agent"),
}
"""Who may import a package of which others must stay free: paths by their beginning."""


class Import(NamedTuple):
    """One imported name, wherever in the file it stands."""

    file: str
    module: str
    name: str | None
    """What is taken from the module; None for `import module`."""


def imports_of(path: Path) -> Iterator[Import]:
    file = path.relative_to(ROOT).as_posix()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (Import(file, alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            yield from (Import(file, node.module or "", alias.name) for alias in node.names)


def room_of(path: str) -> str:
    return path.replace(".", "/").partition("/")[0]


IMPORTS = [
    found for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")) for found in imports_of(path)
]
BETWEEN_ROOMS = [
    found
    for found in IMPORTS
    if room_of(found.module) in ROOMS and room_of(found.module) != room_of(found.file)
]


def test_the_graph_is_not_empty():
    assert {room_of(found.file) for found in BETWEEN_ROOMS} >= {"composer", "filters", "data", "flows"}


def test_imports_between_rooms_point_one_way():
    backwards = [
        found
        for found in BETWEEN_ROOMS
        if ROOMS.index(room_of(found.module)) > ROOMS.index(room_of(found.file))
    ]
    assert backwards == []


def test_no_room_imports_a_private_name_of_another():
    private = [
        found
        for found in BETWEEN_ROOMS
        if any(part.startswith("_") for part in [*found.module.split("."), found.name or ""])
    ]
    assert private == []


@pytest.mark.parametrize("package", OWNERS)
def test_a_heavy_package_is_imported_by_its_owner_alone(package):
    users = {found.file for found in IMPORTS if room_of(found.module) == package}
    assert {file for file in users if not file.startswith(OWNERS[package])} == set()


def test_candidate_code_is_executed_by_the_worker_alone():
    callers = {
        path.relative_to(ROOT).as_posix()
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("exec", "eval")
    }
    assert {file for file in callers if not file.startswith("filters/worker/")} == set()


@pytest.mark.parametrize("room", [room for room in ROOMS if (ROOT / room).exists()])
def test_every_module_stays_readable(room):
    long = {
        path.relative_to(ROOT).as_posix(): count
        for path in (ROOT / room).rglob("*.py")
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > 300
    }
    assert long == {}
