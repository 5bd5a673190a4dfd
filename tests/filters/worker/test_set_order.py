import types

from filters.worker.set_order import execute_with_own_sets, turned_round, uses_sets

CODE = """
NAMES = {"a", "b", "c", "d"}
FROZEN = frozenset(NAMES)
SQUARES = {n * n for n in range(4)}
MAPPING = {"a": 1}

def listed():
    return [list(NAMES), [*FROZEN], [n for n in SQUARES], list({1, 2, 3}), list(MAPPING)]
"""


def executed() -> types.ModuleType:
    module = types.ModuleType("task")
    execute_with_own_sets(CODE, "task.py", module)
    return module


def test_every_set_of_the_task_is_iterated_backwards():
    module = executed()
    forward = module.listed()
    with turned_round():
        backward = module.listed()
    assert backward[:4] == [names[::-1] for names in forward[:4]]
    assert backward[4] == forward[4]
    assert module.listed() == forward


def test_sets_stay_sets():
    module = executed()
    with turned_round():
        assert "a" in module.NAMES
        assert {"a"} < module.NAMES
        assert sorted(module.NAMES) == ["a", "b", "c", "d"]
        assert isinstance(module.FROZEN, frozenset)


def test_only_texts_with_sets_are_run_again():
    assert uses_sets(CODE)
    assert uses_sets("x = set(names)")
    assert not uses_sets("x = {'a': 1}; y = [*x]; z.set_(y)")
