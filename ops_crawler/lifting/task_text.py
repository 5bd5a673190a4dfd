"""A lifted layer as the text of a task."""

from ops_crawler.lifting.lifted import Input, LiftedLayer, Scale

_NOTICE = """\
# {name} of Hugging Face transformers {version}, {path}
{copyright}
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in
# compliance with the License. You may obtain a copy at http://www.apache.org/licenses/LICENSE-2.0
# Distributed on an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# Changed: lifted out of the library with what it needs, the class renamed, configuration as arguments.
"""
_TASK = """\
{notice}
{text}


{constants}


def get_inputs():
    return [
        {inputs},
    ]


def get_init_inputs():
    return [{arguments}]
"""


_LIBRARY_COPYRIGHT = "Copyright 2018- The Hugging Face team. All rights reserved."
"""Of the library as a whole, as its file LICENSE has it; for files without a line of their own."""


def render(layer: LiftedLayer, scale: Scale, batch: int) -> str:
    """Return the task: `Model`, `get_inputs` and `get_init_inputs`, with the licence notice on top."""
    names = [parameter.upper().strip("_") for parameter in layer.parameters]
    constants = [f"BATCH_SIZE = {batch}"] if any(one.batch_axes for one in scale.inputs) else []
    constants += [f"{name} = {value}" for name, value in zip(names, scale.arguments, strict=True)]
    return _TASK.format(
        notice=notice(layer),
        text=layer.text.strip(),
        constants="\n".join(constants),
        inputs=",\n        ".join(_drawn(one) for one in scale.inputs),
        arguments=", ".join(names),
    )


def notice(layer: LiftedLayer) -> str:
    """Return the comment that names source, copyright and licence, and says what was changed."""
    lines = layer.copyright or (_LIBRARY_COPYRIGHT,)
    return _NOTICE.format(
        name=layer.name,
        version=layer.library_version,
        path=layer.path,
        copyright="\n".join(f"# {line}" for line in lines),
    )


def _drawn(one: Input) -> str:
    """Return the expression that draws one input."""
    sizes = [_size(length, axis in one.batch_axes) for axis, length in enumerate(one.shape)]
    shape = ", ".join(sizes)
    dtype = "" if one.dtype == "float32" else f", dtype=torch.{one.dtype}"
    if one.kind == "constant":
        return f"torch.tensor({one.values}{dtype})"
    if one.kind == "rows":
        return f"torch.tensor({one.values} * BATCH_SIZE{dtype})"
    if one.kind == "int":
        wide = "" if one.dtype == "int64" else dtype
        return f"torch.randint(0, {one.high}, ({shape}{',' if len(sizes) == 1 else ''}){wide})"
    shape = shape or "()"
    if one.kind == "bool":
        return f"torch.rand({shape}) < 0.9"
    if one.kind == "mask":
        return f"torch.where(torch.rand({shape}) < 0.9, 0.0, torch.finfo(torch.float32).min)"
    if one.kind == "unit":
        return f"torch.rand({shape}{dtype})"
    if one.kind == "signed":
        return f"2 * torch.rand({shape}{dtype}) - 1"
    return f"torch.randn({shape}{dtype})"


def _size(length: int, with_batch: bool) -> str:
    if not with_batch:
        return str(length)
    return "BATCH_SIZE" if length == 1 else f"{length} * BATCH_SIZE"
