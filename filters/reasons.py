"""Why a task is not accepted, and at which stage that was found: the design's section 3 as two enums."""

from enum import StrEnum


class Stage(StrEnum):
    """Stages in the order in which they are judged."""

    REPLY = "reply"
    SOURCE = "source"
    SIMILARITY = "similarity"
    BUILD = "build"
    CONDUCT = "conduct"
    REPEATABILITY = "repeatability"
    OUTPUT = "output"
    DEGENERATE = "degenerate"
    LABELS = "labels"
    RUNTIME = "runtime"
    COMPILE = "compile"
    COMPARE = "compare"
    SET = "set"


class Reason(StrEnum):
    """The first rule that fired. Extend this list; never rename a member."""

    ACCEPTED = "accepted"

    EMPTY_REPLY = "empty_reply"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    NO_CODE = "no_code"
    AMBIGUOUS_CODE = "ambiguous_code"

    SYNTAX = "syntax"
    TOO_LARGE = "too_large"
    CONTRACT = "contract"
    FORBIDDEN = "forbidden"

    CONTAMINATED = "contaminated"

    INIT_FAILED = "init_failed"
    INPUTS_FAILED = "inputs_failed"
    FIXED_INPUTS = "fixed_inputs"
    FORWARD_FAILED = "forward_failed"
    OUT_OF_MEMORY = "out_of_memory"
    TOO_MUCH_MEMORY = "too_much_memory"
    TIMEOUT = "timeout"
    CRASHED = "crashed"

    SIDE_EFFECT = "side_effect"
    MUTATES_INPUT = "mutates_input"

    STOCHASTIC = "stochastic"
    STATEFUL = "stateful"
    NONDETERMINISTIC = "nondeterministic"

    UNSUPPORTED_OUTPUT = "unsupported_output"
    NON_FINITE = "non_finite"
    EMPTY_OUTPUT = "empty_output"

    CONSTANT_OUTPUT = "constant_output"
    VANISHING_OUTPUT = "vanishing_output"
    IDENTITY_OUTPUT = "identity_output"
    INPUT_IGNORED = "input_ignored"
    PARAMETER_IGNORED = "parameter_ignored"

    LABEL_MISMATCH = "label_mismatch"
    OPERATOR_IGNORED = "operator_ignored"
    TOO_MANY_OPS = "too_many_ops"

    TOO_FAST = "too_fast"
    TOO_SLOW = "too_slow"
    PADDED = "padded"

    COMPILE_FAILED = "compile_failed"
    NOT_COMPILED = "not_compiled"

    ILL_CONDITIONED = "ill_conditioned"
    COMPILE_MISMATCH = "compile_mismatch"

    DUPLICATE = "duplicate"

    NEEDS_MEASUREMENT = "needs_measurement"
    """Not a rejection: a fact is missing, the next `run` measures it."""
    WORKER_LOST = "worker_lost"
    """Not a rejection: the sandbox failed, not the candidate."""
