"""The tape: which layers were called, on which arrays, and the gradients that flow back.

A pass is one forward run of a model. Inside it values are Tensors: NumPy arrays that the layers own and reuse from pass to
pass. A recording pass keeps its calls in order; `backward` walks them in reverse. There is no general differentiation: what
has a gradient is what the library has a backward pass for, and the few operations of Tensor below.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any, Callable, Sequence

import numpy as np

from .. import _core
from .._errors import Error

_ids = itertools.count(1)


class _Local(threading.local):
    current: "Pass | None" = None


_local = _Local()


def current() -> "Pass | None":
    """The pass of this thread, if one is under way."""
    return _local.current


class Gradient:
    """Memory of a gradient, and its descriptions for writing and for adding."""

    __slots__ = ("data", "array", "adding")

    def __init__(self, data: np.ndarray) -> None:
        self.data = data
        self.array = _core.Array(data)
        self.adding = self.array.accumulating()


class Tensor:
    """A value inside a pass. `data` is a NumPy array of the layer that made it, overwritten by its next pass: copy to keep."""

    __slots__ = ("data", "array", "needs", "gradient", "dirty", "uses", "alias")
    __array_priority__ = 1000

    def __init__(self, data: np.ndarray, needs: bool = False) -> None:
        self.data = data
        self.array = _core.Array(data)
        self.needs = needs
        self.gradient: Gradient | None = None
        self.dirty = False
        self.uses = 0
        self.alias: Tensor | None = None

    def fresh(self, needs: bool) -> "Tensor":
        """Begins a pass: no gradient yet."""
        self.needs = needs
        self.dirty = False
        self.uses = 0
        return self

    def _memory(self) -> Gradient:
        if self.alias is not None and self.alias.uses == 1:  # a view whose source nobody else reads: one memory for both
            source = self.alias._memory()
            if self.gradient is None or self.gradient.data.base is not source.data:
                self.gradient = Gradient(source.data.reshape(self.data.shape))
        elif self.gradient is None:
            self.gradient = Gradient(np.empty(self.data.shape, self.data.dtype))
        return self.gradient

    def target(self) -> Any:
        """Where a backward call writes the gradient: None, memory, or memory that is added to."""
        if not self.needs:
            return None
        gradient = self._memory()
        if self.dirty:
            return gradient.adding
        self.dirty = True
        return gradient.array

    def add_gradient(self, value: np.ndarray) -> None:
        """The same from an array."""
        if not self.needs:
            return
        gradient = self._memory()
        if self.dirty:
            gradient.data += value
        else:
            np.copyto(gradient.data, value)
            self.dirty = True

    @property
    def grad(self) -> Any:
        """The description of the gradient that was written."""
        assert self.gradient is not None
        return self.gradient.array

    shape = property(lambda self: self.data.shape)
    dtype = property(lambda self: self.data.dtype)
    ndim = property(lambda self: self.data.ndim)
    size = property(lambda self: self.data.size)

    def numpy(self) -> np.ndarray:
        """A copy of the values."""
        return self.data.copy()

    def item(self) -> float:
        return float(self.data.item())

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"Tensor(shape={self.data.shape}, dtype={self.data.dtype})"

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        running = _local.current
        if running is not None and running.record and self.needs:
            raise TypeError("a Tensor inside value_and_grad was given to NumPy, which has no gradient here; use layers and "
                            "functions of openbnns.nn, or .numpy() for a copy without a gradient")
        return self.data.astype(dtype) if dtype is not None else self.data.copy()

    # The operations that have a gradient; they are in operations.py.
    def __add__(self, other: Any) -> "Tensor":
        return _operations.add(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> "Tensor":
        return _operations.subtract(self, other)

    def __rsub__(self, other: Any) -> "Tensor":
        return _operations.add(_operations.scale(self, -1.0), other)

    def __mul__(self, other: Any) -> "Tensor":
        return _operations.multiply(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "Tensor":
        return _operations.divide(self, other)

    def __pow__(self, exponent: int) -> "Tensor":
        """Products of itself: whole exponents from 1 on."""
        if not isinstance(exponent, int) or exponent < 1:
            raise Error(f"power: exponent is {exponent!r}, expected a whole number of 1 or more")
        result = self
        for _ in range(exponent - 1):
            result = result * self
        return result

    def __neg__(self) -> "Tensor":
        return _operations.scale(self, -1.0)

    def __getitem__(self, index: Any) -> "Tensor":
        return _operations.index(self, index)

    def reshape(self, *shape: Any) -> "Tensor":
        return _operations.reshape(self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)

    def flatten(self, start: int = 0) -> "Tensor":
        return _operations.reshape(self, self.shape[:start] + (-1,))

    def transpose(self, *axes: int) -> "Tensor":
        return _operations.transpose(self, axes or tuple(range(self.ndim))[::-1])

    def mean(self, axis: Any = None) -> "Tensor":
        return _operations.mean(self, axis)

    def sum(self, axis: Any = None) -> "Tensor":
        return _operations.total(self, axis)


class Plan:
    """One call of a layer for one shape of input: its filter, its output, and how the gradient goes back."""

    out: Tensor
    run: Callable[..., Tensor]

    def backward(self) -> None:
        raise NotImplementedError


class Pass:
    """One forward run. With `record` it remembers its plans for backward."""

    __slots__ = ("record", "training", "id", "plans", "_before")

    def __init__(self, record: bool) -> None:
        self.record = record
        self.id = next(_ids)
        self.plans: list[Plan] = []

    def __enter__(self) -> "Pass":
        self._before = _local.current
        _local.current = self
        return self

    def __exit__(self, *_: object) -> None:
        _local.current = self._before

    def backward(self, loss: Tensor) -> None:
        """Gradients of everything that `loss`, one number, depends on."""
        if loss.data.size != 1:
            raise Error(f"value_and_grad: loss has shape {loss.data.shape}, expected one number")
        loss.add_gradient(np.ones(loss.data.shape, loss.data.dtype))
        for plan in reversed(self.plans):
            if plan.out.dirty:
                plan.backward()


class Plans:
    """Plans of a layer by key, kept from pass to pass. A key that is met twice in one pass has a plan for each time."""

    LIMIT = 16  # keys that are kept: shapes that come and go do not pile up

    version = 0  # how often they were cleared

    def __init__(self) -> None:
        self._local = threading.local()  # passes of two threads must not share memory

    def get(self, key: Any, make: Callable[[], Plan]) -> Plan:
        running = _local.current
        assert running is not None
        try:
            table = self._local.table
        except AttributeError:
            table = self._local.table = {}
        entry = table.get(key)
        if entry is None:
            if len(table) >= self.LIMIT:
                del table[next(iter(table))]
            entry = table[key] = [0, 0, []]
        if entry[0] != running.id:
            entry[0], entry[1] = running.id, 0
        at = entry[1]
        plans = entry[2]
        if at == len(plans):
            plans.append(make())
        entry[1] = at + 1
        plan: Plan = plans[at]
        if running.record:
            running.plans.append(plan)
        return plan

    def clear(self) -> None:
        self._local = threading.local()
        self.version += 1

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._local = threading.local()

    def __deepcopy__(self, memo: Any) -> "Plans":
        return Plans()


def as_input(value: Any) -> Tensor:
    """A Tensor of a user's array, without a copy where it is packed float32, integers or half floats."""
    if isinstance(value, Tensor):
        return value
    array = as_array(value)
    if array.dtype.kind not in "biufV":  # V: bfloat16
        raise Error(f"nn: input is of dtype {array.dtype}, expected numbers")
    if array.dtype == np.float64:
        array = array.astype(np.float32)
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    return Tensor(array)


def as_array(value: Any) -> np.ndarray:
    """NumPy's view of an array of any library; of PyTorch's also those with a gradient, and bfloat16 as float32."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "detach"):
        value = value.detach()
        if str(value.dtype) == "torch.bfloat16":
            value = value.float()
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError) as error:
            where = getattr(value, "device", "another device")
            raise Error(f"nn: an array is on {where}, expected the CPU's memory ({error})") from None
    return np.asarray(value)


def wrap(values: Sequence[Any]) -> list[Any]:
    """Arrays, and lists of numbers, as Tensors; everything else as it is."""
    return [as_input(v) if not isinstance(v, Tensor) and (isinstance(v, np.ndarray) or hasattr(v, "__dlpack__") or _numbers(v)) else v
            for v in values]


def _numbers(value: Any) -> bool:
    while isinstance(value, list) and value:
        value = value[0]
    return isinstance(value, (int, float)) and not isinstance(value, bool)


from . import operations as _operations  # noqa: E402  (operations use what is defined above)
