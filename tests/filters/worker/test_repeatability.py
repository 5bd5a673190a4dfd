import pytest

from filters.worker.repeatability import output_digest, repeatability


def facts(subject, body, inputs="[torch.randn(8, 16)]") -> dict:
    return repeatability(subject(body, inputs))


def test_a_pure_function(subject):
    found = facts(
        subject,
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.mix = nn.Linear(16, 16)

            def forward(self, x):
                return self.mix(x).relu()
        """,
    )
    digest = found.pop("output_digest")
    assert len(digest) == 64
    assert found == {
        "rng_consumed": [],
        "seed_changes_output": False,
        "repeats_equal": True,
        "state_changed": False,
        "repeated_scatter_targets": "",
        "train_eval_same": True,
    }


@pytest.mark.parametrize(
    ("expression", "changes_output"),
    [("x + torch.rand_like(x)", True), ("(torch.rand(1), x.sin())[1]", False), ("F.dropout(x, 0.5)", True)],
)
def test_random_numbers(subject, expression, changes_output):
    found = facts(subject, f"class Model(nn.Module):\n    def forward(self, x):\n        return {expression}")
    assert found["rng_consumed"] == ["cpu"]
    assert found["seed_changes_output"] is changes_output


@pytest.mark.parametrize(
    ("layer", "same"),
    [
        ("nn.Dropout(0.5)", False),
        ("nn.Dropout(0.0)", True),
        ("nn.BatchNorm1d(16)", False),
        ("nn.RReLU()", False),
    ],
)
def test_train_mode_is_recorded_and_no_reason(subject, layer, same):
    found = facts(
        subject,
        f"""
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = {layer}

            def forward(self, x):
                return self.layer(x)
        """,
    )
    assert found["train_eval_same"] is same
    assert found["rng_consumed"] == []
    assert found["state_changed"] is False
    assert found["repeats_equal"] is True


def test_a_memory_of_the_last_input(subject):
    found = facts(
        subject,
        """
        class Model(nn.Module):
            last = None

            def forward(self, x):
                before, self.last = self.last, x
                return x if before is None else x + before
        """,
    )
    assert found["repeats_equal"] is False or found["state_changed"] is True


def test_a_memory_that_only_other_inputs_show(subject):
    found = facts(
        subject,
        """
        class Memory:
            __slots__ = ("first",)

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.highest = -1e9

            def forward(self, x):
                self.highest = max(self.highest, float(x.sum()))
                return x / self.highest
        """,
        "(lambda: [torch.randn(8, 16) + float(torch.rand(()) * 100)])()",
    )
    assert found["repeats_equal"] is True
    assert found["state_changed"] is True


def test_an_output_that_is_the_memory_of_the_model(subject):
    found = facts(
        subject,
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("room", torch.zeros(8, 16))

            def forward(self, x):
                return self.room.copy_(x.sin())
        """,
    )
    assert found["repeats_equal"] is True
    assert found["state_changed"] is True


def test_memory_that_nobody_has_written(subject):
    found = facts(
        subject,
        """
        class Model(nn.Module):
            def forward(self, x):
                room = torch.empty(16 << 20)  # larger than what malloc hands out again, with old values in it
                room[:16] = x[0]
                return x.sin() + room[: 2 << 20].sum() * 0 + room[-1]
        """,
    )
    assert found["repeats_equal"] is False


def test_memory_that_is_written_before_it_is_read(subject):
    found = facts(
        subject,
        """
        class Model(nn.Module):
            def forward(self, x):
                room = torch.empty_like(x)
                torch.sin(x, out=room)
                return room
        """,
    )
    assert found["repeats_equal"] is True


def test_the_digest_of_a_build_is_that_of_the_measured_output(subject):
    made = subject("class Model(nn.Module):\n    def forward(self, x):\n        return x.sin()")
    digest = repeatability(made)["output_digest"]
    assert output_digest(made) == {"output_digest": digest}


@pytest.mark.parametrize(
    ("body", "depends"),
    [
        ("[f(x) for f in {torch.sin, torch.cos}]", True),
        ("[getattr(torch, n)(x) for n in {'sin', 'cos'}]", True),
        ("[getattr(torch, n)(x) for n in sorted({'sin', 'cos'})]", False),
        ("x.sin() if 'a' in {'a', 'b'} else x", False),
    ],
)
def test_order_of_sets(subject, body, depends):
    made = subject(f"class Model(nn.Module):\n    def forward(self, x):\n        return {body}")
    assert (" or " in output_digest(made)["output_digest"]) is depends


def test_order_of_a_set_of_modules(subject):
    body = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = {nn.Linear(16, 16), nn.LayerNorm(16)}

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x
    """
    assert " or " in output_digest(subject(body))["output_digest"]
