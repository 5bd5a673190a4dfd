"""Sizes: their ladder, the predicted cost, and the solver between them."""

import itertools
import random

import pytest

from composer.profiles import CPU, GIB, H200, profile_for
from composer.roofline import estimate
from composer.sizes import BOUNDS, FASTEST, SLOWEST, ladder, rungs_within, solve, wanted_seconds


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
    assert cost.seconds == pytest.approx(2 * 4096**3 / H200.matmul_flops_per_second, rel=0.01)


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


def test_wanted_times_cover_their_range_evenly_on_a_log_scale():
    rng = random.Random(0)
    drawn = [wanted_seconds(rng) for _ in range(4000)]
    assert FASTEST <= min(drawn) < max(drawn) <= SLOWEST
    middle = (FASTEST * SLOWEST) ** 0.5
    assert sum(seconds < middle for seconds in drawn) == pytest.approx(2000, abs=150)


def test_profile_follows_the_device_unless_named():
    assert profile_for("auto", "cuda:0") is H200
    assert profile_for("auto", "cpu") is CPU
    assert profile_for("h200", "cpu") is H200
