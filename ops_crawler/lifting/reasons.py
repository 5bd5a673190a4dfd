"""Why a layer class of transformers is not lifted."""

LIFTING_REASONS = {
    "same_closure": "the same text as a class that is listed, apart from names",
    "other_license": "its file is under another licence than the library, Apache-2.0",
    "base_model": "a whole model, or needs one: it derives from the library's PreTrainedModel",
    "library_part": "needs a part of the library that a task cannot carry",
    "foreign_import": "needs a package that a task may not import",
    "forbidden_python": "uses what a task may not: getattr, global names, fixed devices",
    "not_reached": "no model of the library, built from its default configuration and run, calls it",
    "configuration": "reads of its configuration what no plain constructor argument can say",
    "arguments": "is called with something that is neither tensor nor plain value",
    "original_fails": "the class alone, as the model calls it, does not run",
    "output": "returns something else than plain tensors, or values that are not finite",
    "extract_fails": "its text does not run without the library",
    "mismatch": "its text gives other bits than the class",
    "inputs": "does not run on freshly drawn inputs",
    "time_limit": "took too long, alone or with its family",
    "not_frozen": "new or changed in this version of the library, and not checked yet",
}
"""Every code that `Operator.set_aside` may hold for a class of transformers, with its meaning."""


class NotLiftedError(ValueError):
    """One class cannot be lifted. Becomes its reason; raised and caught within this package."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
