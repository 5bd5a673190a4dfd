"""The shared cases: small real-life tasks with the outcomes that are right for them."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from composer.candidate import Candidate
from filters.engine import Engine
from filters.judge import judge, judge_set
from filters.judging.source import source_finding
from filters.policy import Policy
from filters.screening import screened
from filters.settings import FilterSettings

CASES = Path(__file__).resolve().parents[2].parent / "shared" / "cases"
RIGHT_AT_LEAST = 73
RIGHT_AT_LEAST_IN_THE_SANDBOX = 12
ANY_TIME = Policy(eager_ms_min=0.0, eager_ms_max=1e6)

needs_cases = pytest.mark.skipif(
    not (CASES / "expected.json").exists(), reason="the shared cases are not in ../shared/cases"
)

QUICK = """
    ac_complex_result ac_python_scalar_inputs ac_scatter_with_permutation ac_sort_named_result
    cm_dropout_alias_mutation cm_index_out_of_range cm_state_grows_between_calls dg_fully_masked_rows_nan
    dg_layerscale_tiny_branch dg_norm_then_full_mean lb_more_than_five_hidden nd_scatter_duplicate_targets
    nd_set_iteration_order rp_kernelbook_dialect
""".split()
HOSTILE_AND_QUICK = """
    hg_segmentation_fault sb_default_dtype_leak sb_exit_at_import sb_forged_verdict_on_stdout sb_gc_tampering
    sb_hard_exit_in_forward sb_noisy_but_valid sb_thread_deferred_work
""".split()


def expected(*, sandbox: bool = False) -> dict[str, list[str]]:
    """Return the allowed reasons by case; in the sandbox only of what is hostile, and never `forbidden`."""
    cases = json.loads((CASES / "expected.json").read_text(encoding="utf-8"))
    if not sandbox:
        return {name: case["allowed"] for name, case in cases.items()}
    hostile = {name: case["allowed"] for name, case in cases.items() if name[:3] in ("sb_", "hg_")}
    return {
        name: [r for r in allowed if r != "forbidden"] or ["side_effect"] for name, allowed in hostile.items()
    }


def candidate(name: str, index: int = 0) -> Candidate:
    return Candidate(index=index, name=name, code=(CASES / f"{name}.py").read_text(encoding="utf-8"))


@needs_cases
@pytest.mark.parametrize("name", QUICK)
def test_case(engine, name):
    case = candidate(name)
    found = source_finding(case.code, Policy())
    measurement = engine.measure(case) if found is None else None
    verdict = judge(case, measurement, ANY_TIME, skip_source_filters=found is None)
    assert verdict.reason in expected()[name], verdict


@needs_cases
@pytest.mark.parametrize("name", HOSTILE_AND_QUICK)
def test_hostile_case_in_the_sandbox(engine, name):
    case = candidate(name)
    verdict = judge(case, engine.measure(case), ANY_TIME, skip_source_filters=True)
    assert verdict.reason in expected(sandbox=True)[name], verdict


def wrong_verdicts(right: dict[str, list[str]], *, skip_source_filters: bool = False) -> list[str]:
    """Judge the cases as an audit does and return those whose reason is not among the right ones."""
    policy = Policy(eager_ms_max=2_000.0)  # the machine may be busy
    cases = [candidate(name, index) for index, name in enumerate(sorted(right))]
    with Engine(FilterSettings(device="cpu", workers=2), policy) as engine, ThreadPoolExecutor(2) as pool:

        def measured(case):
            if skip_source_filters:
                return engine.measure(case)
            runs = source_finding(case.code, policy) is None
            return screened(case, engine.measure(case)) if runs else None

        measurements = dict(zip((case.id for case in cases), pool.map(measured, cases), strict=True))
    verdicts = {
        case.index: judge(case, measurements[case.id], policy, skip_source_filters=skip_source_filters)
        for case in cases
    }
    if not skip_source_filters:
        known = {name: m for name, m in measurements.items() if m is not None}
        verdicts = {verdict.index: verdict for verdict in judge_set(cases, verdicts, known)}
    return [
        f"{case.name}: {verdicts[case.index].reason}"
        for case in cases
        if verdicts[case.index].reason not in right[case.name]
    ]


@pytest.mark.slow
@needs_cases
def test_all_cases():
    right = expected()
    wrong = wrong_verdicts(right)
    assert len(right) - len(wrong) >= RIGHT_AT_LEAST, wrong


@pytest.mark.slow
@needs_cases
def test_all_hostile_cases_in_the_sandbox():
    right = expected(sandbox=True)
    wrong = wrong_verdicts(right, skip_source_filters=True)
    assert len(right) - len(wrong) >= RIGHT_AT_LEAST_IN_THE_SANDBOX, wrong
