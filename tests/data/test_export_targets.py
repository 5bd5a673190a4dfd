"""Every export is read by the library that it is meant for, with that library's own code.

None of the three is a dependency: these tests skip where it is missing (docs/loaders.md says how to have them
and with which versions they were run); `test_export.py` compares names, columns and types without them.
"""

import importlib.util
import sys
from pathlib import Path

import pytest

from data.export import export, read_tasks
from tests.data.test_dataset import row, write

MODEL_LENGTH = 4096
TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"


@pytest.fixture
def run(tmp_path):
    """The folder of a run with three tasks of two levels."""
    rows = [row(0, "torch.exp"), row(1), row(2, "torch.tanh")]
    write(tmp_path / "run" / "dataset", [{**each, "compile_ms": 0.5} for each in rows])
    return tmp_path / "run"


@pytest.fixture
def tokenizer():
    """A tokenizer that knows every byte and a chat template, made here: nothing is downloaded."""
    import tokenizers
    import transformers

    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate(["<pad>", "<eos>", *alphabet])}
    bytes_only = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    bytes_only.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_only.decoder = tokenizers.decoders.ByteLevel()
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bytes_only, pad_token="<pad>", eos_token="<eos>", padding_side="left"
    )
    made.chat_template = TEMPLATE
    return made


def exported(run, format, out) -> Path:
    return export(read_tasks(str(run)), format, out)


@pytest.fixture
def kernelbench(monkeypatch):
    """KernelBench's module `dataset`, which needs only Python; its package would import API clients."""
    package = importlib.util.find_spec("kernelbench")
    if package is None or not package.submodule_search_locations:
        pytest.skip("needs a checkout of KernelBench: put its folder src into PYTHONPATH")
    path = Path(package.submodule_search_locations[0]) / "dataset.py"
    spec = importlib.util.spec_from_file_location("kernelbench_dataset", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_kernelbench_reads_its_level_folders(run, tmp_path, kernelbench):
    out = exported(run, "kernelbench", tmp_path / "out")
    for level, wanted in {1: [row(0, "torch.exp"), row(2, "torch.tanh")], 2: [row(1)]}.items():
        problems = kernelbench.construct_kernelbench_dataset(level, base_path=str(out))
        assert problems.get_problem_ids() == list(range(1, len(wanted) + 1))
        assert [problem.code for problem in problems] == [each["code"] for each in wanted]
    _, name, code = kernelbench.fetch_ref_arch_from_dataset(problems, 1)
    assert (name, code) == ("1_Linear_exp.py", row(1)["code"])


def test_trl_trains_on_the_prompts(run, tmp_path, tokenizer):
    trl = pytest.importorskip("trl", reason="needs trl: pip install trl accelerate")
    import transformers
    from datasets import load_dataset

    file = exported(run, "trl", tmp_path / "out") / "train.parquet"
    prompts = load_dataset("parquet", data_files=str(file), split="train", cache_dir=str(tmp_path / "cache"))
    assert trl.data_utils.is_conversational(prompts[0])
    text = trl.data_utils.maybe_apply_chat_template(prompts[0], tokenizer)["prompt"]
    assert text == f"<user>{prompts[0]['prompt'][0]['content']}"
    seen = []

    def reward(completions, code, compile_ms, **columns):
        seen.append((completions[0][0]["role"], code[0], compile_ms[0], sorted(columns)))
        return [float(number) for number, _ in enumerate(completions)]

    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, max_position_embeddings=MODEL_LENGTH, pad_token_id=0, eos_token_id=1,
        bos_token_id=None,
    )  # fmt: skip
    trainer = trl.GRPOTrainer(
        model=transformers.LlamaForCausalLM(config),
        reward_funcs=reward,
        processing_class=tokenizer,
        train_dataset=prompts,
        args=trl.GRPOConfig(
            output_dir=str(tmp_path / "trained"), per_device_train_batch_size=2, num_generations=2,
            max_completion_length=4, max_steps=1, use_cpu=True, bf16=False, report_to="none",
            disable_tqdm=True, save_strategy="no",
        ),
    )  # fmt: skip
    assert trainer.train().global_step == 1
    (role, code, compile_ms, columns) = seen[0]
    assert (role, compile_ms) == ("assistant", 0.5)
    assert code in {each["code"] for each in prompts}
    assert {"task_id", "ops", "data_source", "difficulty", "eager_ms", "device_name"} <= set(columns)


def test_verl_reads_its_five_columns(run, tmp_path, tokenizer):
    pytest.importorskip("verl", reason="needs verl, ray, tensordict, hydra-core: see docs/loaders.md")
    from omegaconf import OmegaConf
    from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn

    file = exported(run, "verl", tmp_path / "out") / "train.parquet"
    settings = OmegaConf.create(
        {"prompt_key": "prompt", "max_prompt_length": MODEL_LENGTH, "cache_dir": str(tmp_path / "cache")}
    )
    rows = RLHFDataset(str(file), tokenizer, settings)
    assert len(rows) == 3, "no prompt was dropped as unreadable or too long"
    batch = collate_fn([rows[0], rows[1]])
    assert batch["raw_prompt"][0][0]["role"] == "user"
    assert list(batch["index"]) == [0, 1]
    assert [each["ground_truth"] for each in batch["reward_model"]] == [
        row(0, "torch.exp")["code"], row(1)["code"],
    ]  # fmt: skip
    assert list(batch["data_source"]) == ["opweaver"] * 2
    assert batch["extra_info"][0]["compile_ms"] == 0.5
