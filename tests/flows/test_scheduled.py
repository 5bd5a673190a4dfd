"""The deployment in `prefect.yaml` is one that Prefect takes, and its flow makes a dataset."""

import os
import subprocess
from datetime import date
from pathlib import Path

import pytest
import yaml
from prefect.cli.deploy._models import PrefectYamlModel
from prefect.client.schemas.schedules import CronSchedule
from prefect.flows import load_flow_from_entrypoint

from flows.scheduled import make_dataset

ROOT = Path(__file__).resolve().parents[2]
DEPLOYMENTS = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]


def test_prefect_reads_the_file():
    assert PrefectYamlModel.model_validate(yaml.safe_load((ROOT / "prefect.yaml").read_text()))


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda deployment: deployment["name"])
def test_a_deployment_names_a_flow_that_takes_its_parameters(deployment, monkeypatch):
    monkeypatch.chdir(ROOT)
    flow = load_flow_from_entrypoint(deployment["entrypoint"])
    assert flow.name == "regenerate"
    assert flow.validate_parameters(deployment["parameters"])
    for schedule in deployment["schedules"]:
        assert CronSchedule(**schedule).cron == "0 2 * * 0"


@pytest.mark.slow
def test_each_day_has_a_folder_and_a_seed_of_its_own(small_run, prefect_url, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PREFECT_API_URL", prefect_url)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("OPWEAVER_FILTERS__COMPILE_BACKEND", "aot_eager")
    folder = make_dataset(date(2026, 2, 1), None, ["--count=1", "--device=cpu"])
    assert folder == Path("runs/scheduled-2026-02-01")
    assert "seed = 20260201" in (folder / "settings.toml").read_text()
    assert (folder / "dataset/README.md").exists()


def test_a_run_that_fails_fails_the_flow(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT)]))
    with pytest.raises(subprocess.CalledProcessError) as failed:
        make_dataset(date(2026, 2, 1), Path("nowhere.toml"), [])
    assert failed.value.returncode == 2
