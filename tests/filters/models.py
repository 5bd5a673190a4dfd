"""Texts of small models, around which the fixture `task` writes a task."""


def passing_on(expression: str, constructor: str = "pass", arguments: str = "x") -> str:
    """Return a class `Model` whose forward is one expression."""
    return f"""
class Model(nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        {constructor}

    def forward(self, {arguments}):
        return {expression}
"""


MIX = "self.mix = nn.Linear(16, 16)"
IMAGE = "[torch.randn(4, 8, 12, 12)]"
SEQUENCE = "[torch.randn(2, 10, 16)]"
