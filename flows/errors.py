"""How a command ends, and the errors that decide it.

| what happened | raised | exit code |
|---|---|---|
| the result is not the wanted one: rejected, too few rows, verdicts that do not add up | `Unfinished` | 1 |
| options, settings or files that the user can put right | `UsageError`, `data.errors.InputError` | 2 |
| no key, address or model that a language model can be asked with | `EndpointSettingsError` | 2 |
| a package that only this command needs is not installed | `ModuleNotFoundError` for one of `OPTIONAL` | 2 |
| a path that nothing can lie at, or that this user may not look at | `OSError` with one of `_NO_PLACE` | 2 |
| the machine failed: disk, ledger, sandbox, Prefect's server, the Hub | `InfrastructureError`, `data.errors.StorageError`, `filters.errors.SandboxFault` | 3 |
| the endpoint of a language model fails | `EndpointError` | 3 |
| Ctrl-C, SIGTERM | `KeyboardInterrupt` | 130 |

The text of each is one line: where, what failed, what to do next; `flows.cli` prints it and nothing else.
What a candidate does wrong is never raised, it becomes a verdict. Any other exception is a bug and keeps its
traceback.
"""  # noqa: E501 - a table

import errno

from composer.llm.errors import EndpointError, EndpointSettingsError
from data.errors import InputError, StorageError
from filters.errors import SandboxFault


class Unfinished(Exception):
    """The command came to its end, but not with the wanted result."""


class UsageError(Exception):
    """The user asked for something that does not exist or does not fit."""


class InfrastructureError(Exception):
    """The machine around the run failed; the same command can be given again once it works."""


EXIT_CODES: dict[type[Exception], int] = {
    Unfinished: 1,
    UsageError: 2,
    InputError: 2,
    EndpointSettingsError: 2,  # before its base class
    InfrastructureError: 3,
    StorageError: 3,
    SandboxFault: 3,
    EndpointError: 3,
}
INTERRUPTED = 130
OPTIONAL = ("prefect", "datasets", "huggingface_hub", "openai", "ray", "prefect_ray")
"""Packages that `check`, `filter`, `audit` and `judge` do without."""
_EXTRAS = {"ray": "opweaver[ray]", "prefect_ray": "opweaver[ray]"}
"""How they are installed with versions that fit, where not by their own names."""
_NO_PLACE = {errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES, errno.EPERM}
"""What the first look at a path may come to, wherever that is; all else has a boundary of its own."""


def exit_code(error: Exception) -> int | None:
    """Return the exit code for an error that the user is told in one line, None for a bug."""
    if missing_package(error):
        return EXIT_CODES[UsageError]
    known = next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), None)
    return EXIT_CODES[UsageError] if known is None and _is_no_place(error) else known


def explain(error: Exception) -> str:
    """Return what the user is told about an error that has an exit code."""
    if package := missing_package(error):
        advice = f"`pip install '{_EXTRAS[package]}'`" if package in _EXTRAS else "install it with pip"
        return f"this command needs the package {package}, which is not installed; {advice}"
    if isinstance(error, OSError) and _is_no_place(error):
        return f"{error.filename}: cannot be used ({error.strerror}); check the path and its rights"
    return str(error)


def _is_no_place(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in _NO_PLACE and error.filename is not None


def missing_package(error: Exception) -> str | None:
    """Return the name of the optional package for want of which a command failed, None for other errors."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    package = (name or "").partition(".")[0]
    return package if package in OPTIONAL else None
