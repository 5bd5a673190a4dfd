"""A real Ray cluster of several nodes on this machine; all tests here skip where Ray is not installed."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

pytest.importorskip("ray", reason="needs ray: pip install -e '.[ray]'")


class Nodes:
    """Starts and kills nodes; the first one is the head, on which the run's own process lives."""

    def __init__(self, folder: Path) -> None:
        from ray.cluster_utils import Cluster

        self._cluster = Cluster()
        self._options = {"num_cpus": 1, "object_store_memory": 80_000_000, "include_dashboard": False}
        self._head = self._cluster.add_node(**self._options, temp_dir=str(folder))

    @property
    def address(self) -> str:
        return self._cluster.address

    def add(self):
        """Start one more node with one CPU slot."""
        node = self._cluster.add_node(**self._options)
        self._cluster.wait_for_nodes()
        return node

    def kill(self, node) -> None:
        """Take a node away without warning."""
        self._cluster.remove_node(node, allow_graceful=False)

    def kill_a_shard(self) -> bool:
        """Kill one process that measures on the head, if there is one."""
        (raylet,) = self._head.all_processes["raylet"]
        for pid in children(raylet.process.pid):
            if "ray::measure shard" in Path(f"/proc/{pid}/cmdline").read_text():
                os.kill(pid, signal.SIGKILL)
                return True
        return False

    def end(self) -> None:
        self._cluster.shutdown()


def children(pid: int) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").glob("*/children")
        for child in task.read_text().split()
    ]


@pytest.fixture
def nodes(monkeypatch) -> Iterator[Nodes]:
    """A cluster with its head alone; `nodes.add()` starts more."""
    folder = Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))  # paths of sockets must stay short
    (folder / "ray").mkdir()
    monkeypatch.setenv(
        "RAY_TMPDIR", str(folder)
    )  # where Ray writes down the address, whatever the nodes are told
    cluster = Nodes(folder / "ray")
    yield cluster
    cluster.end()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def rows() -> Callable[[Path], list[dict]]:
    """Return the rows of a run, but for what no recorded time replaces."""

    def read(run_dir: Path) -> list[dict]:
        table = pq.read_table(run_dir / "dataset/data/train-00000-of-00001.parquet")
        return table.drop_columns(["compile_seconds", "peak_memory_mb"]).to_pylist()

    return read


@pytest.fixture
def wait_until() -> Callable:
    """Wait for something that a process brings about; fail where it ends before."""

    def wait(condition: Callable[[], object], process) -> None:
        while not condition():
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.1)

    return wait


@pytest.fixture(scope="session")
def long_run(tmp_path_factory, prefect_url) -> Path:
    """The folder of a run on this machine alone that ended with 24 rows."""
    from tests.flows.conftest import QUICK, Command

    folder = tmp_path_factory.mktemp("long")
    done = Command(folder, os.environ | QUICK | {"PREFECT_API_URL": prefect_url})("run", "--run-dir", "run")
    assert done.returncode == 0, done.stderr
    return folder / "run"
