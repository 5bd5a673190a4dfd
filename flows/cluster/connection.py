"""To the cluster and back: Ray's start, what it offers, and its errors in one line."""

import logging
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayError

from flows.errors import InfrastructureError, UsageError
from flows.prefect_server import QUIET

_CONNECT_SECONDS = 10
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """What every shard holds, and how many shards the cluster holds at once."""

    device: str
    """`cpu` or `cuda`."""
    count: int
    cores: int
    """CPU slots of a shard."""

    @property
    def options(self) -> dict[str, Any]:
        """What a shard asks Ray for. It is tried again by us, without what it had finished."""
        gpus = 1 if self.device == "cuda" else 0
        return {"num_cpus": self.cores, "num_gpus": gpus, "max_retries": 0, "max_calls": 1}


@contextmanager
def connected(address: str | None) -> Iterator[str]:
    """Join the cluster for the block and yield the address at which its nodes reach this process.

    Without an address the cluster that RAY_ADDRESS or Ray itself knows here, else one of this machine alone.
    Raises UsageError for an address that cannot be right, InfrastructureError where nobody answers.
    """
    _require_answer(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        ray.init(
            address,
            log_to_driver=False,
            logging_level=logging.CRITICAL,
            include_dashboard=None if address else False,
            runtime_env={"env_vars": QUIET},
        )
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        where = f"Ray at {address}" if address else "Ray"
        raise InfrastructureError(f"{where}: no cluster to be had ({_line(error)}); {_ADVICE}") from None
    for number, handler in handlers.items():  # Ray puts its own in place
        signal.signal(number, handler)
    try:
        yield _own_address()
    except RayError as error:
        raise InfrastructureError(
            f"Ray: the cluster stopped answering ({_line(error)}); run the same command again to go on"
        ) from error
    finally:
        ray.shutdown()


_ADVICE = "start one with `ray start --head`, or leave --address out to use this machine alone"


def slots(wanted: str) -> Slots:
    """Return what the cluster offers for shards on a device, `auto` meaning GPUs where there are any.

    Shards share the cores of a node evenly among its GPUs; without GPUs a shard takes as many CPU slots as
    the smallest node has, because two that measure on one machine disturb each other. Raises UsageError.
    """
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    with_gpus = [node for node in nodes if node.get("GPU")]
    if wanted == "cuda" and not with_gpus:
        raise UsageError("the Ray cluster has no GPU; start its nodes with --num-gpus, or use --device cpu")
    if wanted != "cpu" and with_gpus:
        cores = max(1, min(int(node.get("CPU", 0) // node["GPU"]) for node in with_gpus))
        count = sum(int(min(node["GPU"], node.get("CPU", 0) // cores)) for node in with_gpus)
        device = "cuda"
    else:
        counts = [int(node["CPU"]) for node in nodes if node.get("CPU")]
        cores = min(counts, default=0)
        count = sum(each // cores for each in counts) if cores else 0
        device = "cpu"
    if not count:
        raise UsageError("the Ray cluster has no free CPU slots; start its nodes with --num-cpus")
    return Slots(device=device, count=count, cores=cores)


def _require_answer(address: str | None) -> None:
    """Knock at an address of the form HOST:PORT: Ray itself would try for long, and then end the process."""
    if address in (None, "auto", "local"):
        return
    host, _, port = str(address).rpartition(":")
    if "://" in str(address) or not host or not port.isdigit():
        raise UsageError(
            f"--address {address}: should be HOST:PORT of the head node, such as 10.0.0.5:6379, or auto; "
            "the command runs on a host of the cluster itself"
        )
    try:
        socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise InfrastructureError(f"Ray at {address}: no cluster answers ({error}); {_ADVICE}") from None


def _own_address() -> str:
    """Return where other nodes reach this process: the loopback where there is no other host."""
    hosts = {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
    return ray.util.get_node_ip_address() if len(hosts) > 1 else _LOOPBACK


def _line(error: Exception) -> str:
    """Return the first sentence of what Ray says."""
    return " ".join(str(error).split())[:200]
