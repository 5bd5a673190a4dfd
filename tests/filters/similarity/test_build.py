import gzip

import pytest

from filters.similarity import load
from filters.similarity.build import main

BODIES = {
    "level1/1_Exp": "x.exp()",
    "level1/10_Huge": "torch.zeros(10 ** 12) + x",
    "level2/1_Gemm_Tanh": "torch.tanh(self.gemm(x))",
    "level3/1_Decides": "x.exp() if x.sum() > 0 else x.log()",
    "level4/1_Hub": "x.sin()",
}


@pytest.fixture
def checkout(tmp_path, task):
    for name, forward in BODIES.items():
        path = tmp_path / "checkout" / "KernelBench" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        body = f"""
            class Model(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.gemm = nn.Linear(8, 8)

                def forward(self, x):
                    secret_name = x
                    return {forward}
        """
        path.write_text(task(body), encoding="utf-8")
    return tmp_path / "checkout"


def test_builds_the_fingerprints_of_a_checkout(checkout, tmp_path):
    out = tmp_path / "prints.json.gz"
    assert main([str(checkout), "--out", str(out), "--commit", "c" * 40]) == 0
    reference = load(out)
    assert [task.name for task in reference.tasks] == list(BODIES)
    assert reference.about["commit"] == "c" * 40
    signatures = {task.name: task.signature for task in reference.tasks}
    assert signatures["level1/1_Exp"] == ("exp",)
    assert signatures["level1/10_Huge"] == ("zeros", "add")  # runs, but on fake tensors
    assert signatures["level2/1_Gemm_Tanh"] == ("linear", "tanh")
    assert signatures["level3/1_Decides"] == ("sum", "gt", "exp", "log")  # cannot run so: read
    assert "secret_name" not in gzip.decompress(out.read_bytes()).decode()


@pytest.mark.parametrize("extra", [[], ["--commit", "c" * 40]])
def test_a_folder_that_is_no_checkout_is_one_clear_line(tmp_path, capsys, extra):
    (tmp_path / "KernelBench" / "level1").mkdir(parents=True)
    folder = tmp_path if not extra else tmp_path / "KernelBench"
    assert main([str(folder), "--out", str(tmp_path / "prints"), *extra]) == 2
    message = capsys.readouterr().err
    assert message.startswith("opweaver: ")
    assert message.count("\n") == 1
    assert ("--commit" if not extra else "no checkout") in message
