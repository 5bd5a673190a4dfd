"""One class of the library alone: constructed and called as a model did it, and put into words.

Runs only in the process of the originals.
"""

import contextlib
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from ops_crawler.lifting.arguments import Leaf, bound, inputs_of, leaves, literal, resized
from ops_crawler.lifting.binding import Recorded, text_of
from ops_crawler.lifting.bits import same_bits
from ops_crawler.lifting.closures import ACTIVATIONS, Closure, closure_of
from ops_crawler.lifting.library import library_version
from ops_crawler.lifting.lifted import LiftedLayer, Scale, layer_to_dict
from ops_crawler.lifting.reasons import NotLiftedError
from ops_crawler.lifting.recording import ConfigView, Occurrence, copied, is_plain

_TORCH_ACTIVATIONS = {
    "GELUActivation": "nn.GELU()",
    "GELUTanh": "nn.GELU(approximate='tanh')",
    "SiLUActivation": "nn.SiLU()",
    "LinearActivation": "nn.Identity()",
    "MishActivation": "nn.Mish()",
}


class Subject:
    """One class with what is known of it."""

    def __init__(self, module_name: str, cls: Any, seen: Occurrence, full: Occurrence | None) -> None:
        self.module_name, self.cls, self.seen, self.full = module_name, cls, seen, full
        self.reads: dict[str, Any] = {}
        self.absent: set[str] = set()
        self.idle: frozenset[str] = frozenset()
        """Arguments of the forward without effect."""

    def result(self) -> dict[str, Any]:
        """Return layer, weights, inputs and outputs. Raises `NotLiftedError`."""
        made = bound(self.cls.__init__, (None, *self.seen.made_with[0]), self.seen.made_with[1])
        made = dict(list(made.items())[1:])
        calls = [self._call(args, kwargs) for args, kwargs in self.seen.called_with]
        closure = closure_of(self.module_name, self.cls.__name__)
        with _watched_activations(self.module_name) as made_activations:
            layer = self._construct(made)
            outputs = self._run(layer, calls[0])
        self.idle = self._without_effect(layer, calls[0], outputs)
        calls = [call | dict.fromkeys(self.idle) for call in calls]
        activation, closure = _activation(made_activations, closure)
        recorded, values = self._recorded(made, calls[0], activation)
        inputs = inputs_of(_leaves(calls[0]), _leaves(calls[1]))
        scales = [Scale(name="small", arguments=tuple(map(literal, values)), inputs=tuple(inputs))]
        with contextlib.suppress(NotLiftedError, AttributeError, KeyError):
            scales += self._full_scale(recorded, inputs)
        text = text_of(closure, recorded)
        lifted = LiftedLayer(
            module=self.module_name,
            name=self.cls.__name__,
            digest=closure_of(self.module_name, self.cls.__name__).digest,
            library_version=library_version(),
            copyright=closure.copyright_of(text),
            text=text,
            parameters=recorded.parameters,
            scales=tuple(scales),
        )
        return {
            "name": self.cls.__name__,
            "layer": layer_to_dict(lifted),
            "state": dict(layer.state_dict()),
            "inputs": [leaf.value for leaf in _leaves(calls[0])],
            "outputs": outputs,
        }

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        arguments = bound(self.cls.forward, (None, *args), kwargs)
        return dict(list(arguments.items())[1:])

    def _construct(self, made: dict[str, Any]) -> nn.Module:
        given = {}
        for name, value in made.items():
            if hasattr(value, "to_dict"):
                given[name] = _View(value, name, self.reads, self.absent)
            elif is_plain(value):
                given[name] = copied(value)
            else:
                raise NotLiftedError("arguments", f"constructed with a {type(value).__name__}")
        torch.manual_seed(0)
        layer: nn.Module = self.cls(**given).eval()
        _give_weights(layer)
        return layer

    def _run(self, layer: nn.Module, call: dict[str, Any]) -> list[Tensor]:
        given = {name: copied(value) for name, value in call.items() if "Cache" not in type(value).__name__}
        with torch.no_grad():
            outputs = [leaf for leaf in pytree.tree_leaves(layer(**given)) if leaf is not None]
        if not outputs or not all(type(leaf) is Tensor for leaf in outputs):
            kinds = sorted({type(leaf).__name__ for leaf in outputs})
            raise NotLiftedError("output", f"returns {', '.join(kinds) or 'nothing'}")
        if not all(bool(torch.isfinite(leaf).all()) for leaf in outputs if leaf.dtype.is_floating_point):
            raise NotLiftedError("output", "not finite")
        return [leaf.clone() for leaf in outputs]

    def _without_effect(
        self, layer: nn.Module, call: dict[str, Any], outputs: list[Tensor]
    ) -> frozenset[str]:
        """Return whole numbers that a layer takes and never uses, such as positions that it hands on."""
        tensors = [name for name, value in call.items() if isinstance(value, Tensor)]
        whole = [name for name in tensors if not call[name].dtype.is_floating_point]
        return frozenset(
            name
            for name in whole
            if len(tensors) > len(whole)
            and all(
                self._gives(layer, call | {name: other}, outputs)
                for other in (None, torch.zeros_like(call[name]), torch.ones_like(call[name]))
            )
        )

    def _gives(self, layer: nn.Module, call: dict[str, Any], outputs: list[Tensor]) -> bool:
        try:
            return same_bits(outputs, self._run(layer, call))
        except Exception:  # whatever the library says to an argument that it needs
            return False

    def _recorded(
        self, made: dict[str, Any], call: dict[str, Any], activation: str | None
    ) -> tuple[Recorded, list[Any]]:
        configurations, parameters, values = self._configurations(made)
        written = {}
        for name, value in made.items():
            if name in configurations:
                continue
            if hasattr(value, "to_dict"):
                written[name] = "None"  # nothing is read of it
            elif name in parameters:
                raise NotLiftedError("configuration", f"two arguments are called {name}")
            else:
                parameters.append(name)
                values.append(value)
        written |= _defaults(self.cls.__init__, [*made])
        tensors, expressions = [], {}
        for name, value in call.items():
            found, expression = leaves(name, value)
            tensors += [leaf.name for leaf in found]
            if [leaf.name for leaf in found] != [name]:
                expressions[name] = expression
        if not tensors:
            raise NotLiftedError("arguments", "is called without tensors")
        recorded = Recorded(
            parameters=tuple(parameters),
            configurations=configurations,
            written=written,
            absent=frozenset(self.absent),
            activation=activation,
            forward_parameters=tuple(tensors),
            forward_written=expressions | _defaults(self.cls.forward, [*call]),
            forward_arguments=tuple(call),
        )
        return recorded, values

    def _configurations(
        self, made: dict[str, Any]
    ) -> tuple[dict[str, dict[str, str | None]], list[str], list[Any]]:
        """Return attributes by configuration, and the parameters that hold them with their values."""
        configurations: dict[str, dict[str, str | None]] = {}
        parameters: list[str] = []
        values: list[Any] = []
        for path, value in self.reads.items():
            if not is_plain(value):
                raise NotLiftedError("configuration", f"{path} is a {type(value).__name__}")
            owner, _, name = path.rpartition(".")
            parts = owner.split(".")
            for depth in range(1, len(parts)):
                outer = ".".join(parts[:depth])
                configurations.setdefault(outer, {})[parts[depth]] = None
            parameter = name if name not in parameters and name not in made else path.replace(".", "_")
            configurations.setdefault(owner, {})[name] = parameter
            parameters.append(parameter)
            values.append(value)
        return configurations, parameters, values

    def _full_scale(self, recorded: Recorded, inputs: Any) -> list[Scale]:
        if self.full is None or not self.full.called_with:
            return []
        made = bound(self.cls.__init__, (None, *self.full.made_with[0]), self.full.made_with[1])
        call = self._call(*self.full.called_with[0]) | dict.fromkeys(self.idle)
        values = {}
        for path, _ in self.reads.items():
            owner, *parts = path.split(".")
            value = made[owner]
            for part in parts:
                value = getattr(value, part)
            values[recorded.configurations[path.rpartition(".")[0]][parts[-1]]] = value
        arguments = tuple(literal(values.get(name, made.get(name))) for name in recorded.parameters)
        return [Scale(name="full", arguments=arguments, inputs=tuple(resized(inputs, _leaves(call))))]


class _View(ConfigView):
    """A configuration that also notes what it does not have."""

    def __init__(self, config: Any, path: str, reads: dict[str, Any], absent: set[str]) -> None:
        super().__init__(config, path, reads)
        object.__setattr__(self, "_absent", absent)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            object.__getattribute__(self, "_absent").add(name)
            raise


def _leaves(call: dict[str, Any]) -> list[Leaf]:
    return [leaf for name, value in call.items() for leaf in leaves(name, value)[0]]


def _defaults(function: Any, given: Sequence[str]) -> dict[str, str]:
    """Return the parameters that were not given, with their defaults as text."""
    parameters = inspect.signature(function).parameters
    return {
        name: literal(parameter.default)
        for name, parameter in parameters.items()
        if name not in given and parameter.default is not inspect.Parameter.empty
    }


def _give_weights(layer: nn.Module) -> None:
    """Draw weights where the constructor leaves constants or nothing at all."""
    generator = torch.Generator().manual_seed(0)
    for parameter in layer.parameters():
        values = parameter.detach()
        if not values.dtype.is_floating_point or not values.numel():
            continue
        if not bool(torch.isfinite(values).all()) or values.numel() == 1 or float(values.std()) == 0:
            parameter.data = 0.1 * torch.randn(values.shape, generator=generator, dtype=values.dtype)
        elif float(values.abs().max()) > 1e3:
            parameter.data = 0.02 * torch.randn(values.shape, generator=generator, dtype=values.dtype)


class _Classes(dict[str, Any]):
    """The table of activation classes as one module sees it: notes what is looked up."""

    def __init__(self, table: dict[str, Any], found: dict[str, Any]) -> None:
        super().__init__(table)
        self.found = found

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        cls = value[0] if isinstance(value, tuple) else value
        self.found[cls.__name__] = cls
        return value


@contextlib.contextmanager
def _watched_activations(module_name: str) -> Iterator[dict[str, Any]]:
    """Yield the classes of the activations that are looked up inside, by name."""
    from transformers.activations import ACT2FN

    table: Any = type(ACT2FN)
    plain, found = table.__getitem__, {}
    module = sys.modules[module_name]
    classes = getattr(module, "ACT2CLS", None)

    def look_up(self: Any, key: str) -> Any:
        one = plain(self, key)
        found[type(one).__name__] = type(one)
        return one

    table.__getitem__ = look_up
    if classes is not None:
        module.ACT2CLS = _Classes(classes, found)  # type: ignore[attr-defined]
    try:
        yield found
    finally:
        table.__getitem__ = plain
        if classes is not None:
            module.ACT2CLS = classes  # type: ignore[attr-defined]


def _activation(found: Mapping[str, Any], closure: Closure) -> tuple[str | None, Closure]:
    """Return the expression of the activation, and the closure with its class where torch has none."""
    if not found or not closure.tables & ACTIVATIONS:
        return None, closure
    if len(found) > 1:
        raise NotLiftedError("configuration", f"two activations: {', '.join(sorted(found))}")
    ((name, cls),) = found.items()
    if name in _TORCH_ACTIVATIONS:
        return _TORCH_ACTIVATIONS[name], closure
    if cls.__module__.startswith("torch.nn"):
        return f"nn.{name}()", closure
    return f"{name}()", closure.also(cls.__module__, name)
