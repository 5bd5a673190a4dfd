"""Default configurations made small."""

from types import SimpleNamespace

from ops_crawler.lifting.scaling import shrink


def test_widths_share_one_divisor_and_counts_stay():
    config = SimpleNamespace(
        hidden_size=768, intermediate_size=3072, num_attention_heads=12, num_hidden_layers=12,
        vocab_size=30522, pad_token_id=50000, hidden_dropout_prob=0.1, layer_norm_eps=1e-12, use_cache=True,
    )  # fmt: skip
    shrink(config, 8)
    assert (config.hidden_size, config.intermediate_size, config.num_attention_heads) == (96, 384, 12)
    assert config.num_hidden_layers == 2
    assert config.pad_token_id < config.vocab_size <= 512
    assert (config.hidden_dropout_prob, config.layer_norm_eps, config.use_cache) == (0.0, 1e-12, True)


def test_a_divisor_of_zero_cuts_the_depth_alone():
    config = SimpleNamespace(hidden_size=4096, num_hidden_layers=32, vocab_size=128256)
    shrink(config, 0)
    assert vars(config) == {"hidden_size": 4096, "num_hidden_layers": 2, "vocab_size": 128256}


def test_images_keep_whole_patches():
    config = SimpleNamespace(image_size=896, patch_size=14)
    shrink(config, 8)
    assert config.image_size == 196
