"""Device profiles: the ones that come along, files of others, and what is wrong with a file in one line."""

import dataclasses
import tomllib

import pytest

from composer.profiles import CPU, H200, ProfileError, profile_for, profile_from, profile_text, read_profile


def test_profile_follows_the_device_unless_named():
    assert profile_for("auto", "cuda:0") is H200
    assert profile_for("auto", "cpu") is CPU
    assert profile_for("h200", "cpu") is H200
    own = dataclasses.replace(CPU, name="own")
    assert profile_for(own, "cuda") is own


@pytest.mark.parametrize("profile", [CPU, H200], ids=["cpu", "h200"])
def test_a_profile_comes_back_from_its_file(profile, tmp_path):
    path = tmp_path / "profile.toml"
    path.write_text(profile_text(profile))
    assert read_profile(path) == profile


def test_the_digest_changes_with_any_figure():
    assert CPU.digest == profile_from(tomllib.loads(profile_text(CPU))).digest
    assert CPU.digest != dataclasses.replace(CPU, slowdowns={**CPU.slowdowns, "erf": 9.0}).digest
    assert CPU.digest.startswith(CPU.name)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"speed": 1}, "unknown key `speed`; known here: name, copy_bytes_per_second"),
        ({"launch_seconds": None}, "lacks `launch_seconds`; write the file again"),
        ({"launch_seconds": "fast"}, "`launch_seconds` is 'fast'; give a number > 0"),
        ({"slowdowns": {"erf": -1}}, "give a table of numbers > 0"),
        ({"matmul_flops_per_second": {"bfloat16": 1.0}}, "lacks `float32`"),
    ],
)
def test_a_wrong_figure_is_named(change, complaint):
    table = tomllib.loads(profile_text(CPU)) | change
    with pytest.raises(ProfileError, match=complaint) as error:
        profile_from({name: value for name, value in table.items() if value is not None})
    assert "\n" not in str(error.value)


def test_a_missing_or_broken_file_is_named(tmp_path):
    with pytest.raises(ProfileError, match=r"nowhere\.toml: cannot be read \(No such file"):
        read_profile(tmp_path / "nowhere.toml")
    (tmp_path / "broken.toml").write_text("name =")
    with pytest.raises(ProfileError, match=r"broken\.toml: no valid TOML"):
        read_profile(tmp_path / "broken.toml")
