"""Default configurations made small."""

from types import SimpleNamespace

from ops_crawler.lifting.scaling import FULL, WHOLE_DEPTH, Shrinking, shrink


def test_widths_share_one_divisor_and_counts_stay():
    config = SimpleNamespace(
        hidden_size=768, intermediate_size=3072, num_attention_heads=12, num_hidden_layers=12,
        vocab_size=30522, pad_token_id=50000, hidden_dropout_prob=0.1, layer_norm_eps=1e-12, use_cache=True,
    )  # fmt: skip
    shrink(config, Shrinking(8))
    assert (config.hidden_size, config.intermediate_size, config.num_attention_heads) == (96, 384, 12)
    assert config.num_hidden_layers == 2
    assert config.pad_token_id < config.vocab_size <= 512
    assert (config.hidden_dropout_prob, config.layer_norm_eps, config.use_cache) == (0.0, 1e-12, True)


def test_full_width_cuts_the_depth_alone():
    config = SimpleNamespace(hidden_size=4096, num_hidden_layers=32, vocab_size=128256)
    shrink(config, FULL)
    assert vars(config) == {"hidden_size": 4096, "num_hidden_layers": 2, "vocab_size": 128256}


def test_images_keep_whole_patches():
    config = SimpleNamespace(image_size=896, patch_size=14)
    shrink(config, Shrinking(8))
    assert config.image_size == 196


def test_heads_keep_their_width_where_there_are_fewer():
    config = SimpleNamespace(hidden_size=8192, num_attention_heads=64, num_key_value_heads=8)
    shrink(config, Shrinking(8, fewer_heads=True))
    assert vars(config) == {"hidden_size": 1024, "num_attention_heads": 8, "num_key_value_heads": 1}


def test_layers_that_are_named_by_number_all_stay():
    config = SimpleNamespace(hidden_size=768, num_hidden_layers=12)
    shrink(config, WHOLE_DEPTH)
    assert vars(config) == {"hidden_size": 96, "num_hidden_layers": 12}
