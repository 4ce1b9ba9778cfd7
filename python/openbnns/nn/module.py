"""Modules: layers with parameters, and models made of them. Names, shapes and state_dict are PyTorch's."""

from __future__ import annotations

import math
from typing import Any, Iterator

import numpy as np

from .. import _core
from .._errors import Error
from . import tape
from .tape import Gradient, Pass, Plan, Plans, Tensor, as_array

_generator: "np.random.Generator | None" = None  # made at first use: numpy.random takes a third of the time to import us


def seed(value: int) -> None:
    """Seeds the first weights of modules made from now on, and the dropout of these."""
    global _generator
    _generator = np.random.default_rng(value)


def generator() -> np.random.Generator:
    global _generator
    if _generator is None:
        _generator = np.random.default_rng()
    return _generator


class Parameter:
    """Trained numbers: `data` stays where it is in memory, and `grad` is filled by value_and_grad."""

    def __init__(self, data: np.ndarray, requires_grad: bool = True) -> None:
        self._data = np.ascontiguousarray(data, np.float32)
        self.requires_grad = requires_grad
        self.array = _core.Array(self._data)
        self._gradient: Gradient | None = None
        self._written = 0

    @property
    def data(self) -> np.ndarray:
        """The numbers. Assigning copies into them: layers and optimizers know their place in memory."""
        return self._data

    @data.setter
    def data(self, value: Any) -> None:
        given = as_array(value)
        if given.shape != self._data.shape:
            raise Error(f"Parameter: data has shape {given.shape}, expected {self._data.shape}")
        np.copyto(self._data, given, casting="unsafe")

    @property
    def grad(self) -> np.ndarray | None:
        """The gradient of the last pass, overwritten by the next; None before the first."""
        return self._gradient.data if self._gradient is not None else None

    @property
    def gradient(self) -> Gradient:
        """The memory of the gradient, zero before the first pass."""
        if self._gradient is None:
            self._gradient = Gradient(np.zeros_like(self.data))
        return self._gradient

    def target(self) -> Any:
        """Where a backward call writes: set by the first of a pass, added to by the others."""
        if not self.requires_grad:
            return None
        running = tape.current()
        assert running is not None
        if self._written == running.id:
            return self.gradient.adding
        self._written = running.id
        return self.gradient.array

    def add_gradient(self, value: np.ndarray) -> None:
        target = self.target()
        if target is None:
            return
        if target is self.gradient.adding:
            self.gradient.data += value
        else:
            np.copyto(self.gradient.data, value)

    shape = property(lambda self: self.data.shape)
    size = property(lambda self: self.data.size)

    def numpy(self) -> np.ndarray:
        return self.data.copy()

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.data if dtype is None else self.data.astype(dtype)

    def __repr__(self) -> str:
        return f"Parameter(shape={self.data.shape})"

    def __getstate__(self) -> dict[str, Any]:
        return {"data": self.data, "requires_grad": self.requires_grad}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(np.array(state["data"]), state["requires_grad"])  # type: ignore[misc]

    def __deepcopy__(self, memo: Any) -> "Parameter":
        made: Parameter = memo.setdefault(id(self), Parameter(self.data.copy(), self.requires_grad))
        return made


def positive(layer: str, **sizes: int) -> None:
    """Refuses sizes below 1."""
    for name, value in sizes.items():
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise Error(f"{layer}: {name} is {value!r}, expected a whole number of 1 or more")


def uniform(shape: tuple[int, ...], bound: float) -> Parameter:
    """Numbers of [-bound, bound): the first weights that PyTorch draws for most layers."""
    return Parameter(generator().uniform(-bound, bound, shape).astype(np.float32))


def fan_bound(fan_in: int) -> float:
    return 1.0 / math.sqrt(fan_in) if fan_in > 0 else 0.0


class Module:
    """A layer or a model. Assign modules and parameters as attributes and write `forward`."""

    training = True

    def __init__(self) -> None:
        self._plans = Plans()

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name != "training":  # plans hold what a module was when they were made
            known = self.__dict__.get(name)
            if isinstance(known, Parameter) and not (value is None or isinstance(value, Parameter)):
                raise Error(f"{type(self).__name__}: {name} is {type(value).__name__}, expected a Parameter; numbers go to {name}.data")
            if "_plans" in self.__dict__:
                self._plans.clear()
        object.__setattr__(self, name, value)

    def forward(self, *args: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *args: Any) -> Any:
        running = tape.current()
        if running is not None:
            return self.forward(*self._checked(tape.wrap(args)))
        with Pass(record=False):
            return _copy_out(self.forward(*self._checked(tape.wrap(args))))

    def _checked(self, args: list[Any]) -> list[Any]:
        """The arguments. Layers of this package take arrays; modules of modules, and those of users, what they like."""
        if args and not isinstance(args[0], Tensor) and type(self).__module__.startswith("openbnns.") and not list(self.children()):
            raise Error(f"{type(self).__name__}: input is {type(args[0]).__name__}, expected an array")
        return args

    # -- what a module holds

    def children(self) -> Iterator[tuple[str, "Module"]]:
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield name, value
            elif isinstance(value, (list, tuple)) and not name.startswith("_"):
                for i, item in enumerate(value):
                    if isinstance(item, Module):
                        yield f"{name}.{i}", item

    def modules(self) -> Iterator["Module"]:
        yield self
        for _, child in self.children():
            yield from child.modules()

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, "Module"]]:
        """All modules by name, this one first as ""."""
        yield prefix, self
        for name, child in self.children():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name)

    def zero_grad(self) -> None:
        """Zeroes the gradients. value_and_grad overwrites them, so that training needs no call of it."""
        for p in self.parameters():
            p.gradient.data.fill(0)

    def _items(self, kind: type, prefix: str) -> Iterator[tuple[str, Any]]:
        for name, value in vars(self).items():
            if isinstance(value, kind):
                yield prefix + name, value
        for name, child in self.children():
            yield from child._items(kind, f"{prefix}{name}.")

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Names as PyTorch has them, such as "0.weight". A parameter that two modules share comes once."""
        seen: set[int] = set()
        for name, value in self._items(Parameter, ""):
            if id(value) not in seen:
                seen.add(id(value))
                yield name, value

    def parameters(self) -> list[Parameter]:
        return [p for _, p in self.named_parameters()]

    def named_buffers(self) -> Iterator[tuple[str, np.ndarray]]:
        """Numbers that are kept but not trained: running statistics."""
        yield from self._buffers("")

    def _buffers(self, prefix: str) -> Iterator[tuple[str, np.ndarray]]:
        for name in getattr(self, "_buffer_names", ()):
            if getattr(self, name) is not None:
                yield prefix + name, getattr(self, name)
        for name, child in self.children():
            yield from child._buffers(f"{prefix}{name}.")

    def state_dict(self) -> dict[str, np.ndarray]:
        """Copies of all parameters and buffers by name."""
        state = {name: p.data.copy() for name, p in self._items(Parameter, "")}
        state.update((name, np.array(b)) for name, b in self.named_buffers())
        return state

    def load_state_dict(self, state: dict[str, Any], strict: bool = True) -> None:
        """Takes over numbers in place. Everything is checked before anything is written."""
        mine: dict[str, np.ndarray] = {name: p.data for name, p in self._items(Parameter, "")}
        mine.update(self.named_buffers())
        missing, unknown = sorted(mine.keys() - state.keys()), sorted(state.keys() - mine.keys())
        if strict and (missing or unknown):
            raise Error(f"load_state_dict: state is without {_some(missing)} and has unknown {_some(unknown)}, expected the names of the "
                        "model" + (" (this is a checkpoint of fit: openbnns.load_checkpoint)" if "optimizer.count" in unknown else ""))
        ready = []
        for name in mine.keys() & state.keys():
            value = as_array(state[name])
            if value.shape != mine[name].shape:
                raise Error(f"load_state_dict: {name} has shape {value.shape}, expected {mine[name].shape}")
            ready.append((mine[name], value))
        for target, value in ready:
            np.copyto(target, value, casting="unsafe")

    def save(self, path: Any) -> None:
        """Writes the state to a .safetensors or .npz file."""
        from .. import io

        io.save(path, self.state_dict())

    def load(self, path: Any, strict: bool = True) -> "Module":
        """Reads it back; a file that PyTorch's safetensors wrote will do."""
        from .. import io

        self.load_state_dict(io.load(path), strict)
        return self

    # -- modes

    def train(self, mode: bool = True) -> "Module":
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> "Module":
        return self.train(False)

    def requires_grad_(self, value: bool = True) -> "Module":
        """Freezes parameters (False), or trains them again."""
        for p in self.parameters():
            p.requires_grad = value
        return self

    def counters(self) -> dict[str, int]:
        """What random layers have drawn so far; with it a resumed run draws the same."""
        return {f"{name}{key}": value for name, key, value in self._counters("")}

    def _counters(self, prefix: str) -> Iterator[tuple[str, str, int]]:
        for key in getattr(self, "_counter_names", ()):
            yield prefix, key, int(getattr(self, key))
        for name, child in self.children():
            yield from child._counters(f"{prefix}{name}.")

    def set_counters(self, values: dict[str, int]) -> None:
        def visit(module: Module, prefix: str) -> None:
            for key in getattr(module, "_counter_names", ()):
                if prefix + key in values:
                    setattr(module, key, int(values[prefix + key]))
            for name, child in module.children():
                visit(child, f"{prefix}{name}.")

        visit(self, "")

    def extra_repr(self) -> str:
        return ""

    def __repr__(self) -> str:
        inner = [f"  ({n}): " + repr(c).replace("\n", "\n  ") for n, c in self.children()]
        head = type(self).__name__
        return f"{head}({self.extra_repr()})" if not inner else head + "(\n" + "\n".join(inner) + "\n)"


def _some(names: list[str]) -> str:
    return str(names[:4])[:-1] + f", and {len(names) - 4} more]" if len(names) > 5 else str(names)


def _copy_out(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.data.copy()
    if isinstance(value, (tuple, list)):
        return type(value)(_copy_out(v) for v in value)
    return value


class UnaryPlan(Plan):
    """A call of a filter with one input. What a layer adds: its filter, and the gradients of its parameters."""

    def __init__(self, n: int, out: np.ndarray, weights: Parameter | None = None, bias: Parameter | None = None) -> None:
        self.n = n
        self.weights, self.bias = weights, bias
        self.out = Tensor(out)

    def use(self, filter: Any) -> "UnaryPlan":
        self.filter, self.apply = filter, filter.apply
        return self

    def run(self, x: Tensor) -> Tensor:
        self.x = x
        x.uses += 1
        out = self.out
        self.apply(self.n, x.array, out.array)
        weights, bias = self.weights, self.bias
        out.needs = x.needs or (weights is not None and weights.requires_grad) or (bias is not None and bias.requires_grad)
        out.dirty = False
        out.uses = 0
        return out

    def backward(self) -> None:
        x, out, weights, bias = self.x, self.out, self.weights, self.bias
        self.filter.apply_backward(self.n, x.array, out.array, out.grad, x.target(),
                                   None if weights is None else weights.target(), None if bias is None else bias.target())
