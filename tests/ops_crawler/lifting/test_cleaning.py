"""What a definition loses when it is lifted. The texts are written for this test."""

import ast
import textwrap

from ops_crawler.lifting.cleaning import cleaned


def clean(source: str) -> str:
    return ast.unparse(cleaned(ast.parse(textwrap.dedent(source)).body[0]))


def test_decorators_annotations_and_docstrings_go():
    text = clean(
        '''
        @use_kernel_forward_from_hub("Scale")
        class Scale(GradientCheckpointingLayer):
            """Scales."""
            factor: float

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                """Scale."""
                twice: int = 2
                return x * twice
        '''
    )
    assert text == (
        "class Scale(nn.Module):\n\n    def forward(self, x):\n        twice = 2\n        return x * twice"
    )


def test_the_attention_table_is_bound_to_the_eager_function():
    text = clean(
        """
        def forward(self, x):
            kind = self.config._attn_implementation
            attend = ALL_ATTENTION_FUNCTIONS.get_interface(kind, eager_attention_forward)
            return attend(x)
        """
    )
    assert "attend = eager_attention_forward" in text


def test_only_the_default_rope_is_kept():
    text = clean(
        """
        def make(self):
            init = self.plain
            if self.kind != "default":
                init = ROPE_INIT_FUNCTIONS[self.kind]
            return init
        """
    )
    assert text == "def make(self):\n    init = self.plain\n    return init"


def test_logging_and_autocast_leave_their_surroundings():
    text = clean(
        """
        def forward(self, x):
            if self.old:
                logger.warning_once("old")
            with maybe_autocast(device_type=x.device.type, enabled=False):
                x = x + 1
            return x
        """
    )
    assert text == "def forward(self, x):\n    x = x + 1\n    return x"


def test_questions_about_caches_and_tracing_are_answered():
    text = clean(
        """
        def forward(self, x, cache=None):
            if isinstance(cache, EncoderDecoderCache) or is_torchdynamo_compiling():
                return cache
            return x
        """
    )
    assert text == "def forward(self, x, cache=None):\n    return x"


def test_chunking_is_one_call():
    text = clean("def forward(self, x):\n    return apply_chunking_to_forward(self.part, 0, 1, x)")
    assert text.endswith("return self.part(x)")


def test_numbers_of_numpy_are_those_of_math():
    text = clean("def width(self, shape):\n    return np.prod(shape) * np.pi + np.zeros(2)")
    assert text.endswith("return math.prod(shape) * math.pi + np.zeros(2)")


def test_no_other_device_is_asked_for():
    text = clean(
        """
        def kind(self, device):
            if device.type == "mps":
                return torch.float32
            return torch.ones(2, device="cpu") if device.type != "meta" else None
        """
    )
    assert text == "def kind(self, device):\n    return torch.ones(2)"
