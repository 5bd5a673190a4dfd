import dataclasses
import tomllib
from pathlib import Path

import pytest

from composer.profiles import CPU, profile_text
from flows.errors import UsageError
from flows.settings import Settings, load_settings, published_text, settings_text


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """No settings file and no variable of the machine that runs the tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPWEAVER_FILTERS__DEVICE", raising=False)


def written(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


def complaint(*arguments):
    with pytest.raises(UsageError) as error:
        load_settings(*arguments)
    (line,) = str(error.value).splitlines()
    return line


def test_without_anything_the_defaults_hold():
    assert load_settings() == Settings()
    assert load_settings().run.count == 24


def test_the_settings_of_the_release_are_read():
    release = load_settings(Path(__file__).resolve().parents[2] / "examples/opweaver-6k.toml")
    assert (release.run.count, release.policy.eager_ms_min, release.policy.eager_ms_max) == (6000, 1.15, 87.0)


def test_the_file_in_the_current_folder_is_found(tmp_path):
    (tmp_path / "opweaver.toml").write_text("[run]\ncount = 7\n")
    assert load_settings().run.count == 7


def test_options_win_over_the_environment_and_that_over_the_file(tmp_path, monkeypatch):
    config = written(tmp_path, "[run]\ncount = 1\nseed = 1\n[filters]\nworkers = 1\n")
    monkeypatch.setenv("OPWEAVER_RUN__SEED", "2")
    monkeypatch.setenv("OPWEAVER_FILTERS__WORKERS", "2")
    settings = load_settings(config, {"filters": {"workers": 3}})
    assert (settings.run.count, settings.run.seed, settings.filters.workers) == (1, 2, 3)


def test_settings_as_used_can_be_given_again(tmp_path):
    settings = load_settings(options={"run": {"count": 5, "timings": tmp_path / "v.parquet"}})
    assert load_settings(written(tmp_path, settings_text(settings))) == settings


def test_a_profile_from_a_file_stands_in_the_settings_as_used(tmp_path):
    own = dataclasses.replace(CPU, name="own", launch_seconds=1e-3)
    file = tmp_path / "profile.toml"
    file.write_text(profile_text(own))
    settings = load_settings(written(tmp_path, f'[composer]\nprofile = "{file}"\n'))
    assert settings.composer.profile == own
    file.unlink()
    assert load_settings(written(tmp_path, settings_text(settings))) == settings
    assert str(tmp_path) not in published_text(settings)


def test_a_profile_may_be_named_by_a_variable(tmp_path, monkeypatch):
    (tmp_path / "own.toml").write_text(profile_text(CPU))
    monkeypatch.setenv("OPWEAVER_COMPOSER__PROFILE", "own.toml")
    assert load_settings().composer.profile == CPU


def test_a_wrong_profile_is_told_in_one_line(tmp_path):
    line = complaint(written(tmp_path, '[composer]\nprofile = "h100"\n'))
    assert "`composer.profile`: h100: cannot be read (No such file or directory)" in line
    line = complaint(written(tmp_path, "[composer.profile]\nspeed = 1\n"))
    assert "`composer.profile`: unknown key `speed`; known here: name," in line
    assert "`composer.profile`: 3 is no profile; give auto, cpu, h200 or" in complaint(
        written(tmp_path, "[composer]\nprofile = 3\n")
    )


def test_published_settings_tell_no_path_of_the_user(tmp_path):
    settings = load_settings(options={"run": {"run_dir": tmp_path, "count": 5}})
    published = tomllib.loads(published_text(settings))
    assert published["run"]["count"] == 5
    assert str(tmp_path) not in published_text(settings)


def test_broken_toml_names_file_and_line(tmp_path):
    line = complaint(written(tmp_path, "[run]\ncount = \n"))
    assert "mine.toml: no valid TOML" in line
    assert "line 2" in line


def test_a_file_that_is_no_text_is_no_toml(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe\x00")
    assert "mine.toml: no valid TOML" in complaint(path)


def test_a_missing_file_is_named(tmp_path):
    assert "nowhere.toml: cannot be read (No such file or directory)" in complaint(tmp_path / "nowhere.toml")


def test_an_unknown_key_names_the_known_ones(tmp_path):
    line = complaint(written(tmp_path, "[run]\ncont = 3\n"))
    assert "mine.toml: unknown key `run.cont`; known here: run_dir, count, dataset, seed" in line


def test_an_unknown_section_names_the_known_ones(tmp_path):
    line = complaint(written(tmp_path, "[filter]\nworkers = 3\n"))
    assert "unknown key `filter`; known here: sources, run, composer, llm, filters, policy" in line


def test_a_wrong_type_says_what_is_allowed(tmp_path):
    assert complaint(written(tmp_path, '[run]\ncount = "many"\n')).endswith(
        "mine.toml: `run.count` is 'many'; input should be a valid integer, "
        "unable to parse string as an integer"
    )
    assert "`filters.device` is 'tpu'; input should be 'auto', 'cpu' or 'cuda'" in complaint(
        written(tmp_path, '[filters]\ndevice = "tpu"\n')
    )
    assert "`run` is 3;" in complaint(written(tmp_path, "run = 3\n"))


def test_the_place_of_a_wrong_value_is_named(monkeypatch):
    assert complaint(None, {"run": {"count": 0}}).startswith("an option: `run.count` is 0;")
    monkeypatch.setenv("OPWEAVER_RUN__COUNT", "some")
    assert complaint().startswith("the environment: `run.count` is 'some';")


def test_an_unknown_variable_is_no_wish_ignored(monkeypatch):
    monkeypatch.setenv("OPWEAVER_FILTER__DEVICE", "cpu")
    assert complaint().startswith("OPWEAVER_FILTER__DEVICE: unknown variable;")


def test_a_list_in_the_environment_is_json(monkeypatch):
    monkeypatch.setenv("OPWEAVER_SOURCES", '["torch"]')
    assert load_settings().sources == ("torch",)
    monkeypatch.setenv("OPWEAVER_SOURCES", "torch")
    assert 'give lists as JSON, such as ["torch"]' in complaint()


def test_no_sources_is_an_error():
    assert "`sources` is ()" in complaint(None, {"sources": ()})


def test_lifted_layers_go_with_rules_alone(tmp_path):
    text = '[composer]\ncomposer = "llm"\nlayers_share = 0.5\n'
    assert "`composer.layers_share`: 0.5 goes with the composer rules" in complaint(written(tmp_path, text))
