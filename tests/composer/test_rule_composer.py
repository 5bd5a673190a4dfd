"""What every composed candidate must be, and that it depends on seed and index alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from composer.profiles import CPU, H200
from composer.rule_composer import RuleComposer
from ops_crawler.crawl import crawl
from ops_crawler.operator import Operator

ROOT = Path(__file__).parents[2]
COUNT = 40

COMPOSE = """
import json
from composer.profiles import CPU
from composer.rule_composer import RuleComposer
from ops_crawler.crawl import crawl
composer = RuleComposer(crawl(), CPU, seed=5)
print(json.dumps([composer.compose(index).code for index in {indices}]))
"""


@pytest.fixture(scope="module")
def operators() -> list[Operator]:
    return crawl()


def compose_elsewhere(indices: list[int], hash_seed: str) -> list[str]:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", COMPOSE.format(indices=indices)],
        env=environment, cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def test_same_seed_same_source_in_every_process_and_order():
    one = compose_elsewhere([0, 1, 2, 3, 4, 5], "1")
    other = compose_elsewhere([5, 4, 3, 2, 1, 0], "2")
    assert one == other[::-1]
    assert len(set(one)) == len(one)


def test_profiles_change_sizes_but_not_the_layer_asked_for(operators):
    on_cpu, on_gpu = (RuleComposer(operators, profile, seed=5).compose(1) for profile in (CPU, H200))
    assert on_cpu.code != on_gpu.code
