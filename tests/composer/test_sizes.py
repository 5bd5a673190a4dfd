"""Sizes: their ladder, the predicted cost, and the solver between them."""

import dataclasses
import itertools
import math
import random

import pytest

from composer.profiles import CPU, GIB, H200
from composer.roofline import estimate
from composer.sizes import (
    BOUNDS,
    FASTEST,
    SLOWEST,
    TAIL_SLOWEST,
    ladder,
    moved,
    rungs_within,
    solve,
    steps_towards,
    wanted_seconds,
)


def test_ladder_steps_are_about_one_and_a_half():
    rungs = [rung for rung in ladder() if rung >= 16]
    ratios = [larger / smaller for smaller, larger in itertools.pairwise(rungs)]
    assert all(1.3 < ratio < 1.7 for ratio in ratios)
    assert all(rung % 8 == 0 for rung in rungs)


def test_every_kind_of_axis_has_a_choice():
    assert all(len(rungs_within(*bounds)) >= 5 for bounds in BOUNDS.values())


def test_cost_counts_bytes_and_not_views(chain):
    plan = chain("NF", "relu").plan().resized({"BATCH_SIZE": 1024, "FEATURES": 1024})
    cost = estimate(plan, H200)
    assert cost.input_bytes == cost.tensor_bytes == 4 * 2**20
    assert cost.peak_bytes == 3 * cost.input_bytes
    assert cost.seconds == pytest.approx(8 * 2**20 / 4.3e12 + H200.launch_seconds)


def test_cost_of_a_matrix_product_is_its_flops(chain):
    sizes = {"BATCH_SIZE": 4096, "FEATURES": 4096, "OUT_FEATURES": 4096}
    cost = estimate(chain("NF", "matmul").plan().resized(sizes), H200)
    assert cost.seconds == pytest.approx(2 * 4096**3 / H200.matmul_flops_per_second["float32"], rel=0.01)


@pytest.mark.parametrize("profile", [CPU, H200], ids=lambda profile: profile.name)
@pytest.mark.parametrize(
    ("layout", "names"),
    [("NF", ["matmul", "gelu"]), ("NCHW", ["Conv2d", "GroupNorm"]), ("NCL", ["tanh", "softplus"])],
)
def test_solved_sizes_meet_the_wanted_time_on_the_ladder(chain, profile, layout, names):
    for milliseconds in (2, 4):
        plan = solve(chain(layout, *names).plan(), profile, milliseconds / 1e3, random.Random(0))
        assert estimate(plan, profile).seconds * 1e3 == pytest.approx(milliseconds, rel=0.5)
        assert all(plan.sizes[name] in rungs_within(*BOUNDS[letter]) for name, letter in plan.axes.items())


def test_memory_bounds_what_time_would_allow(chain):
    plan = solve(chain("NF", "abs").plan(), H200, 1.0, random.Random(0))
    assert plan is None or estimate(plan, H200).input_bytes <= 4 * GIB


def test_layers_that_no_size_makes_slow_enough_have_no_solution(chain):
    assert solve(chain("NF", "sum").plan(), CPU, FASTEST, random.Random(0)) is None


def test_wanted_times_are_log_uniform_with_a_tail():
    rng = random.Random(0)
    drawn = [wanted_seconds(rng) for _ in range(4000)]
    assert FASTEST <= min(drawn) < max(drawn) <= TAIL_SLOWEST
    for bounds, share in (((FASTEST, SLOWEST), 0.9), ((SLOWEST, TAIL_SLOWEST), 0.1)):
        inside = [seconds for seconds in drawn if bounds[0] <= seconds <= bounds[1]]
        assert len(inside) / len(drawn) == pytest.approx(share, abs=0.02)
        middle = math.sqrt(bounds[0] * bounds[1])
        assert sum(seconds < middle for seconds in inside) / len(inside) == pytest.approx(0.5, abs=0.08)


@pytest.mark.parametrize("profile", [CPU, H200], ids=["cpu", "h200"])
def test_solved_times_are_spread_like_the_wanted_ones(chain, profile):
    rng = random.Random(0)
    errors = []
    for number in range(24):
        seconds = wanted_seconds(rng)
        plan = solve(chain("NF", "matmul", "gelu", seed=number).plan(), profile, seconds, rng)
        errors.append(math.log(estimate(plan, profile).seconds / seconds) if plan else math.inf)
    assert all(abs(error) < math.log(1.5) for error in errors if error != math.inf)
    assert sum(abs(error) < math.log(1.25) for error in errors) >= 0.7 * len(errors)
    assert errors.count(math.inf) <= 2


def test_a_layer_that_moves_bytes_alone_is_given_up_where_memory_ends(chain):
    assert solve(chain("NF", "abs").plan(), H200, TAIL_SLOWEST, random.Random(0)) is None


@pytest.mark.parametrize(
    ("measured_ms", "too_fast", "steps"),
    [(0.99, True, 1), (0.7, True, 2), (0.01, True, 2), (101, False, -1), (140, False, -2), (9000, False, -2)],
)
def test_steps_follow_the_ratio_of_target_and_measured_time(measured_ms, too_fast, steps):
    assert steps_towards(measured_ms / 1e3, too_fast=too_fast) == steps


@pytest.mark.parametrize("steps", [-2, -1, 0, 1, 2])
def test_each_step_changes_the_time_by_a_rung_of_the_ladder(chain, steps):
    plan = solve(chain("NF", "matmul", "gelu").plan(), H200, 2.5e-3, random.Random(0))
    other = moved(plan, H200, steps)
    ratio = estimate(other, H200).seconds / estimate(plan, H200).seconds
    assert ratio == pytest.approx(1.5**steps, rel=0.25)
    assert set(other.sizes.values()) <= set(ladder())
    assert {name for name in plan.sizes if plan.sizes[name] != other.sizes[name]} <= {"BATCH_SIZE"}


def test_steps_end_where_memory_does(chain):
    full = moved(solve(chain("NF", "abs").plan(), CPU, FASTEST, random.Random(0)), CPU, 99)
    assert estimate(full, CPU).tensor_bytes <= CPU.tensor_bytes_max
    assert moved(full, CPU, 1) == full


def test_half_types_have_a_rate_and_a_bandwidth_of_their_own():
    profile = dataclasses.replace(
        CPU,
        launch_seconds=0.0,
        slowdowns={},
        matmul_flops_per_second={"float32": 1e9, "bfloat16": 4e9},
        dtype_slowdowns={"bfloat16": 3.0},
    )
    assert profile.seconds("mm", 1, 4 * 10**9, "bfloat16") == 1.0
    assert profile.seconds("mm", 1, 4 * 10**9, "float64") == 4.0
    ratio = profile.seconds("abs", 10**6, 0, "bfloat16") / profile.seconds("abs", 10**6, 0)
    assert ratio == pytest.approx(3.0)


def test_where_the_time_goes_is_told_by_aten_operator(chain):
    cost = estimate(chain("NF", "relu").plan(), dataclasses.replace(H200, slowdowns={}))
    assert cost.aten_seconds == {"relu": pytest.approx(cost.seconds)}
    assert cost.flops == 0
