"""Optimizers in PyTorch's spelling, clipping and schedules. Each step is one call of the library over all parameters.

    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    loss, grads = step(x, y)      # nn.value_and_grad
    optimizer.step()
"""

from __future__ import annotations

import math
from typing import Any, Callable, Iterable, Sequence

import numpy as np

from . import _core
from ._errors import Error
from .nn.module import Module, Parameter

_NONE, _L2 = 0, 2
_NO_CLIP = (0, 0.0, 0.0, 0.0, 0.0)


class Optimizer:
    """What all have: parameters, a learning rate that a schedule may change, and a state that can be kept."""

    _slots = 0  # accumulators of each parameter

    def __init__(self, parameters: Iterable[Parameter] | Module, lr: float) -> None:
        self.parameters = parameters.parameters() if isinstance(parameters, Module) else list(parameters)
        if not self.parameters:
            raise Error("optimizer: parameters is empty, expected at least one")
        if not all(isinstance(p, Parameter) for p in self.parameters):
            raise Error("optimizer: parameters has other things, expected what model.parameters() returns")
        if not isinstance(lr, (int, float, np.number)) or not (math.isfinite(lr) and lr >= 0):
            raise Error(f"optimizer: lr is {lr!r}, expected a number of 0 or more")
        self.lr = lr
        self.count = 0  # steps so far
        self.accumulators = [np.zeros_like(p.data) for _ in range(self._slots) for p in self.parameters]
        self._stepper: _core.Stepper | None = None
        self._trained: list[int] = []

    def step(self, gradients: dict[str, Any] | None = None) -> None:
        """One step with the gradients that value_and_grad left in the parameters. (What it returned may be given: the same.)"""
        trained = [i for i, p in enumerate(self.parameters) if p.requires_grad]
        if self._stepper is None or trained != self._trained:
            n = len(self.parameters)
            self._trained = trained
            self._stepper = _core.Stepper([self.parameters[i].array for i in trained],
                                          [self.parameters[i].gradient.array for i in trained],
                                          [self.accumulators[s * n + i] for s in range(self._slots) for i in trained])
        if trained:
            self._apply(self._stepper, self.count + 1)
        self.count += 1

    def _apply(self, stepper: _core.Stepper, t: int) -> None:
        raise NotImplementedError

    def zero_grad(self) -> None:
        """Zeroes the gradients. value_and_grad overwrites them, so that training needs no call of it."""
        for p in self.parameters:
            p.gradient.data.fill(0)

    def __repr__(self) -> str:
        hidden = ("parameters", "accumulators", "count")
        numbers = ", ".join(f"{k}={v}" for k, v in vars(self).items() if k not in hidden and not k.startswith("_"))
        return f"{type(self).__name__}({numbers}; {len(self.parameters)} parameters)"

    def state_dict(self) -> dict[str, np.ndarray]:
        state = {f"accumulator.{i}": a.copy() for i, a in enumerate(self.accumulators)}
        state["count"], state["lr"] = np.array(self.count, np.int64), np.array(self.lr, np.float64)
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        wanted = {f"accumulator.{i}" for i in range(len(self.accumulators))} | {"count", "lr"}
        if set(state) != wanted:
            raise Error(f"optimizer: state has {len(state)} entries, expected {len(wanted)}: that of the same optimizer")
        for i, a in enumerate(self.accumulators):
            if np.shape(state[f"accumulator.{i}"]) != a.shape:
                raise Error(f"optimizer: accumulator.{i} has shape {np.shape(state[f'accumulator.{i}'])}, expected {a.shape}")
        for i, a in enumerate(self.accumulators):
            np.copyto(a, state[f"accumulator.{i}"])
        self.count, self.lr = int(state["count"]), float(state["lr"])


class SGD(Optimizer):
    """v = momentum v + g; w -= lr v (nesterov: lr (g + momentum v)), g = gradient + weight_decay w."""

    def __init__(self, parameters: Iterable[Parameter] | Module, lr: float, momentum: float = 0.0, weight_decay: float = 0.0,
                 nesterov: bool = False) -> None:
        self._slots = 1 if momentum != 0 else 0
        super().__init__(parameters, lr)
        self.momentum, self.weight_decay, self.nesterov = momentum, weight_decay, nesterov

    def _apply(self, stepper: _core.Stepper, t: int) -> None:
        kind = _L2 if self.weight_decay else _NONE
        stepper.sgd(self.lr, self.momentum, self.nesterov, 1, 1.0, self.weight_decay, kind, *_NO_CLIP)


class RMSprop(Optimizer):
    """n = alpha n + (1 - alpha) g^2; w -= lr g / (sqrt(n) + eps); centered: n - mean(g)^2 under the root; momentum on the step."""

    def __init__(self, parameters: Iterable[Parameter] | Module, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
                 weight_decay: float = 0.0, momentum: float = 0.0, centered: bool = False) -> None:
        self._slots = 1 + int(centered) + int(momentum != 0)
        super().__init__(parameters, lr)
        self.alpha, self.eps, self.weight_decay, self.momentum, self.centered = alpha, eps, weight_decay, momentum, centered

    def _apply(self, stepper: _core.Stepper, t: int) -> None:
        kind = _L2 if self.weight_decay else _NONE
        stepper.rmsprop(self.lr, self.alpha, self.eps, self.centered, self.momentum, 1.0, self.weight_decay, kind, *_NO_CLIP)


class Adam(Optimizer):
    """m = b1 m + (1 - b1) g; u = b2 u + (1 - b2) g^2; w -= lr m^ / (sqrt(u^) + eps), m^ and u^ corrected for their start."""

    _decoupled = False

    def __init__(self, parameters: Iterable[Parameter] | Module, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0.0, amsgrad: bool = False) -> None:
        self._slots = 3 if amsgrad else 2
        super().__init__(parameters, lr)
        self.betas, self.eps, self.weight_decay, self.amsgrad = betas, eps, weight_decay, amsgrad

    def _apply(self, stepper: _core.Stepper, t: int) -> None:
        # The library adds epsilon before the correction of u, PyTorch behind it.
        eps = self.eps * math.sqrt(1 - self.betas[1] ** t)
        kind = _L2 if self.weight_decay and not self._decoupled else _NONE
        stepper.adam(self._decoupled, self.amsgrad, self.lr, self.betas[0], self.betas[1], float(t), eps, 1.0,
                     self.weight_decay, kind, *_NO_CLIP)


class AdamW(Adam):
    """Adam with weight decay beside the gradient: w -= lr weight_decay w."""

    _decoupled = True

    def __init__(self, parameters: Iterable[Parameter] | Module, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 1e-2, amsgrad: bool = False) -> None:
        super().__init__(parameters, lr, betas, eps, weight_decay, amsgrad)


def clip_grad_norm(parameters: Iterable[Parameter] | Module, max_norm: float) -> float:
    """Scales all gradients so that their common L2 norm is at most max_norm; returns the norm they had."""
    if not max_norm >= 0:
        raise Error(f"clip_grad_norm: max_norm is {max_norm!r}, expected a number of 0 or more")
    chosen = parameters.parameters() if isinstance(parameters, Module) else list(parameters)
    gradients = [p.gradient for p in chosen if p.requires_grad]
    norm = math.sqrt(sum(float(np.dot(g.data.ravel(), g.data.ravel())) for g in gradients))
    if not math.isfinite(norm):
        raise Error(f"clip_grad_norm: norm is {norm}, expected a finite one")
    if norm > max_norm:
        arrays = [g.data for g in gradients]
        _core.clip_by_global_norm(max_norm, arrays, arrays, norm)
    return norm


class Schedule:
    """Sets an optimizer's learning rate: call `step()` behind each epoch (or each step, as you count)."""

    def __init__(self, optimizer: Optimizer, rate: Callable[[int], float]) -> None:
        self.optimizer, self.rate, self.base, self.count = optimizer, rate, optimizer.lr, 0
        optimizer.lr = self.base * rate(0)

    def step(self) -> None:
        self.count += 1
        self.optimizer.lr = self.base * self.rate(self.count)

    def state_dict(self) -> dict[str, float]:
        return {"count": self.count, "base": self.base}

    def load_state_dict(self, state: dict[str, float]) -> None:
        self.count, self.base = int(state["count"]), float(state["base"])


def step_schedule(optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> Schedule:
    """The rate times gamma behind every step_size steps."""
    return Schedule(optimizer, lambda t: gamma ** (t // step_size))


def cosine_schedule(optimizer: Optimizer, steps: int, minimum: float = 0.0, warmup: int = 0) -> Schedule:
    """Half a cosine from the rate down to `minimum` of it over `steps`, behind a linear start of `warmup` steps."""

    def rate(t: int) -> float:
        if t < warmup:
            return (t + 1) / (warmup + 1)
        part = min(1.0, (t - warmup) / max(1, steps - warmup))
        return minimum + (1 - minimum) * 0.5 * (1 + math.cos(math.pi * part))

    return Schedule(optimizer, rate)


__all__: Sequence[str] = ["SGD", "RMSprop", "Adam", "AdamW", "Optimizer", "Schedule", "clip_grad_norm", "cosine_schedule",
                          "step_schedule"]
