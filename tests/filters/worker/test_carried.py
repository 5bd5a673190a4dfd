import pytest

from filters.worker.carried import state_digest

HIDING_PLACES = {
    "attribute of the model": """
        class Model(nn.Module):
            calls = 0
            def forward(self, x):
                self.calls += 1
                return x
        """,
    "attribute of the class": """
        class Model(nn.Module):
            calls = 0
            def forward(self, x):
                type(self).calls += 1
                return x
        """,
    "attribute of a base class": """
        class Base(nn.Module):
            calls = 0
        class Model(Base):
            def forward(self, x):
                Base.calls += 1
                return x
        """,
    "default argument": """
        class Model(nn.Module):
            def forward(self, x, seen=[]):
                seen.append(1)
                return x
        """,
    "list of the module": """
        seen = []
        class Model(nn.Module):
            def forward(self, x):
                seen.append(1)
                return x
        """,
    "attribute of a function": """
        def step():
            step.calls += 1
        step.calls = 0
        class Model(nn.Module):
            def forward(self, x):
                step()
                return x
        """,
    "closure": """
        def counter():
            seen = [0]
            def step():
                seen[0] += 1
            return step
        step = counter()
        class Model(nn.Module):
            def forward(self, x):
                step()
                return x
        """,
    "closure behind a partial": """
        def step(seen):
            seen[0] += 1
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.step = functools.partial(step, [0])
            def forward(self, x):
                self.step()
                return x
        """,
    "default of a static method": """
        class Model(nn.Module):
            @staticmethod
            def step(seen=[0]):
                seen[0] += 1
            def forward(self, x):
                self.step()
                return x
        """,
    "property": """
        class Model(nn.Module):
            @property
            def width(self, seen=[0]):
                seen[0] += 1
                return seen[0]
            def forward(self, x):
                return x[:, : self.width]
        """,
    "object of an own class": """
        class Counter:
            def __init__(self):
                self.calls = 0
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.counter = Counter()
            def forward(self, x):
                self.counter.calls += 1
                return x
        """,
    "slot": """
        class Counter:
            __slots__ = "calls"
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.counter = Counter()
                self.counter.calls = 0
            def forward(self, x):
                self.counter.calls += 1
                return x
        """,
    "deque": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.recent = collections.deque(maxlen=99)
            def forward(self, x):
                self.recent.append(0)
                return x
        """,
    "set": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.seen = set()
            def forward(self, x):
                self.seen.add(len(self.seen))
                return x
        """,
    "key of a dictionary": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.cache = {}
            def forward(self, x):
                self.cache[id(object()), len(self.cache)] = None
                return x
        """,
    "iterator": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.numbers = iter(range(99))
            def forward(self, x):
                return x * next(self.numbers)
        """,
    "generator": """
        def numbers():
            n = 0
            while True:
                n += 1
                yield n
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.numbers = numbers()
            def forward(self, x):
                return x * next(self.numbers)
        """,
    "random generator": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.generator = torch.Generator()
            def forward(self, x):
                return x + torch.rand(1, generator=self.generator)
        """,
    "attribute of a parameter": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(1))
                self.scale.calls = 0
            def forward(self, x):
                self.scale.calls += 1
                return x * self.scale
        """,
    "gradient of a parameter": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(1))
            def forward(self, x):
                with torch.enable_grad():
                    (x * self.scale).sum().backward()
                return x * self.scale
        """,
    "buffer that is no buffer": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.Sequential(nn.Identity())
                self.inner[0].total = [{"sum": torch.zeros(16)}]
            def forward(self, x):
                self.inner[0].total[0]["sum"] += 1
                return x
        """,
    "mode of a submodule": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(16)
            def forward(self, x):
                self.norm.train()
                return self.norm(x)
        """,
}


@pytest.mark.parametrize("place", HIDING_PLACES)
def test_state_is_found(subject, place):
    made = subject(HIDING_PLACES[place])
    before = state_digest(made.model, made.task)
    made.forward(made.fresh_inputs())
    assert state_digest(made.model, made.task) != before


HARMLESS = {
    "cache filled by the first call": """
        class Model(nn.Module):
            table = None
            def forward(self, x):
                if self.table is None:
                    self.table = torch.arange(16).cos()
                return x * self.table
        """,
    "cache by shape": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.tables = {}
            def forward(self, x):
                if x.shape not in self.tables:
                    self.tables[x.shape] = torch.arange(16).cos()
                return x * self.tables[x.shape]
        """,
    "memoised table": """
        @functools.lru_cache
        def table(width):
            return torch.arange(width).cos()
        class Model(nn.Module):
            def forward(self, x):
                return x * table(16)
        """,
    "running statistics in eval mode": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(16)
                self.recurrent = nn.LSTM(16, 4)
            def forward(self, x):
                return self.recurrent(self.norm(x))[0]
        """,
    "objects that refer to each other": """
        class Node:
            def __init__(self, model):
                self.model, self.next = [model], self
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.node = Node(self)
                self.unset: int
                self.modules_by_name = {m: str(m) for m in (nn.ReLU(), nn.Tanh())}
            def forward(self, x):
                return x.sin()
        """,
}


@pytest.mark.parametrize("kind", HARMLESS)
def test_what_stays_the_same_is_no_state(subject, kind):
    made = subject(HARMLESS[kind])
    before = state_digest(made.model, made.task)
    for _ in range(3):
        made.forward(made.fresh_inputs())
        assert state_digest(made.model, made.task) == before
