"""Trees of tensors: leaves, bits and structure. Used on inputs, outputs and module state."""

import copy
import hashlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

_INTEGER_OF_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_SPREAD = 0x9E3779B97F4A7C15 - (1 << 64)
_ROUNDS = ((30, 0xBF58476D1CE4E5B9 - (1 << 64)), (27, 0x94D049BB133111EB - (1 << 64)))
"""Constants of SplitMix64, as signed integers."""
_CHUNK = 1 << 24
"""Elements, or words, that are compared or hashed at once; bounds the extra memory to 0.8 GB."""


def leaves(tree: Any) -> list[Any]:
    """Return everything in the tree that is no list, tuple or dict, in order."""
    return list(_walk(tree))


def _walk(tree: Any) -> Iterator[Any]:
    if isinstance(tree, list | tuple):
        for item in tree:
            yield from _walk(item)
    elif isinstance(tree, dict):
        for item in tree.values():
            yield from _walk(item)
    else:
        yield tree


def is_plain(leaf: Any) -> bool:
    """True for tensors whose bits can be read: not sparse, nested, quantized, without storage or wrapped."""
    if not isinstance(leaf, torch.Tensor) or leaf.layout is not torch.strided:
        return False
    if type(leaf).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return False
    return not (leaf.is_nested or leaf.is_quantized or leaf.is_meta)


def tensors(tree: Any) -> list[torch.Tensor]:
    """Return the plain tensors among the leaves."""
    return [leaf for leaf in _walk(tree) if is_plain(leaf)]


def stored_bytes(tree: Any) -> int:
    """Return the memory that the plain tensors hold; storage that several share counts once."""
    return sum(_storages(tree).values())


def share_memory(one: Any, other: Any) -> bool:
    """True where a plain tensor of one tree lies in the storage of one of the other."""
    return not _storages(one).keys().isdisjoint(_storages(other))


def _storages(tree: Any) -> dict[int, int]:
    """Map the place of every storage to its size in bytes."""
    return {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors(tree)}


def map_tensors(tree: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Return the tree with every tensor replaced; kinds of tuples and dicts stay what they are."""
    if isinstance(tree, torch.Tensor):
        return change(tree)
    if isinstance(tree, list):
        return [map_tensors(item, change) for item in tree]
    if isinstance(tree, tuple):
        items = [map_tensors(item, change) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    if isinstance(tree, dict):
        changed = copy.copy(tree)
        changed.update({key: map_tensors(item, change) for key, item in tree.items()})
        return changed
    return tree


def structure(tree: Any) -> str:
    """Describe containers and leaves; lists, tuples and named tuples count as one kind of container."""
    if isinstance(tree, list | tuple):
        return "[" + ", ".join(structure(item) for item in tree) + "]"
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key!r}: {structure(item)}" for key, item in tree.items()) + "}"
    if is_plain(tree):
        return f"{dtype_name(tree)}{list(tree.shape)}"
    return type(tree).__name__


def pieces(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """Yield matching parts of tensors of one shape, small enough that results as large do not matter."""
    first = tensors[0]
    if first.numel() <= _CHUNK:
        yield tensors
        return
    longest = max(range(first.dim()), key=lambda dim: first.shape[dim])
    length = max(1, _CHUNK * first.shape[longest] // first.numel())
    yield from zip(*(tensor.split(length, longest) for tensor in tensors), strict=True)


def norm(tensor: torch.Tensor) -> float:
    """Return the Euclidean norm, added up in double precision; nan or inf where a value is."""
    wide = torch.complex128 if tensor.is_complex() else torch.float64
    return float(torch.linalg.vector_norm(tensor, dtype=wide))


def rms(tensor: torch.Tensor) -> float:
    """Return the root of the mean square; 0 of an empty tensor."""
    return norm(tensor) / math.sqrt(max(tensor.numel(), 1))


def dtype_name(tensor: torch.Tensor) -> str:
    """Return `float32` for `torch.float32`."""
    return str(tensor.dtype).removeprefix("torch.")


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor's bit patterns as a flat integer tensor (a copy only where it is not contiguous)."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    flat = tensor.detach().resolve_neg().contiguous().reshape(-1)
    return flat.view(_INTEGER_OF_SIZE[flat.element_size()])


def same_bits(left: Any, right: Any) -> bool:
    """Compare two trees: same structure, tensors equal bit for bit, other leaves equal."""
    if structure(left) != structure(right):
        return False
    for one, other in zip(_walk(left), _walk(right), strict=True):
        if is_plain(one):
            if not torch.equal(bits(one), bits(other)):
                return False
        elif one is not other and repr(one) != repr(other):
            return False
    return True


def digest(tree: Any) -> str:
    """Return a sha256 over structure and bits, summed on the tensor's own device in exact integers."""
    total = hashlib.sha256(structure(tree).encode())
    for tensor in tensors(tree):
        for part in _words(bits(tensor)):
            for chunk in part.split(_CHUNK):
                total.update(str(int(_mixed(chunk).sum())).encode())
    return total.hexdigest()


def _words(flat: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the same bits as 64-bit words, which are fewer to hash, and the few values that are left."""
    width = 8 // flat.element_size()
    whole = len(flat) // width * width
    if flat.storage_offset() % width:
        flat = flat.clone()
    return flat[:whole].view(torch.int64), flat[whole:]


def _mixed(words: torch.Tensor) -> torch.Tensor:
    """Return a 64-bit hash of each word with its place, by the steps of SplitMix64 (Steele et al., 2014).

    A plain weighted sum would not do: signs that flip in pairs cancel in it.
    """
    mixed = torch.arange(len(words), device=words.device).mul_(_SPREAD).add_(words)
    for shift, factor in _ROUNDS:
        mixed.bitwise_xor_(mixed >> shift).mul_(factor)
    return mixed.bitwise_xor_(mixed >> 31)
