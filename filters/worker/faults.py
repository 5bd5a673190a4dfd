"""How a candidate fails inside its worker."""

import torch


class CandidateFault(Exception):
    """The candidate failed; `fault` is the measurement's word for it. Never leaves the worker."""

    def __init__(self, fault: str, detail: str) -> None:
        super().__init__(detail)
        self.fault = fault
        self.detail = detail


class CannotTell(BaseException):
    """A probe of ours does not apply here. Passes through the candidate's handlers on its way out."""


def is_out_of_memory(error: BaseException) -> bool:
    """True for every way in which Python, torch and this package say that memory ran out."""
    if isinstance(error, CandidateFault):
        return error.fault == "out_of_memory"
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error)
    # the CUDA allocator's own report of an exhausted device can fail and raise something else instead
    return isinstance(error, RuntimeError) and ("can't allocate memory" in text or "CachingAllocator" in text)


def one_line(error: BaseException) -> str:
    """Return `Type: first line of the message`, at most 300 characters."""
    first = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first}"[:300]
