"""Where a run measures, as far as that needs no Ray."""

import pytest


def test_without_ray_the_command_says_how_to_install_it(opweaver_run, tmp_path):
    (tmp_path / "ray.py").write_text('raise ModuleNotFoundError("No module named \'ray\'", name="ray")\n')
    opweaver_run.environment["PYTHONPATH"] = f"{tmp_path}:{opweaver_run.environment['PYTHONPATH']}"
    done = opweaver_run("run", "--engine", "ray")
    assert done.returncode == 2
    assert done.stderr == (
        "opweaver: this command needs the package ray, which is not installed; "
        "`pip install 'opweaver[ray]'`\n"
    )


@pytest.mark.parametrize("option", [("--address", "auto"), ("--mixed-devices",)])
def test_options_of_a_cluster_need_one(opweaver_run, option):
    done = opweaver_run("run", *option)
    assert done.returncode == 2
    assert done.stderr == "opweaver: --address, --mixed-devices: belong to --engine ray; add it\n"
