"""value_and_grad: the loss of a model and the gradients of its parameters."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from .._errors import Error
from .module import Module
from .tape import Pass, Tensor, wrap


class ValueAndGrad:
    """step(x, *targets) -> (loss, gradients by name). Gradients are the memory of `Parameter.grad`: the next call overwrites it."""

    def __init__(self, model: Module, loss: Callable[..., Any], with_model: bool = False) -> None:
        self.model, self.loss, self.with_model = model, loss, with_model
        self.prediction: np.ndarray | None = None  # of the last call, overwritten by the next
        self._named = list(model.named_parameters())

    def __call__(self, *args: Any) -> tuple[float, dict[str, np.ndarray]]:
        value = self.run(*args)
        return value, {name: p.gradient.data for name, p in self._named if p.requires_grad}

    def run(self, *args: Any) -> float:
        """The same without the dictionary: the loss alone."""
        with Pass(record=True) as running:
            if self.with_model:
                value = self.loss(self.model, *wrap(args))
            else:
                if not args:
                    raise Error("value_and_grad: called without inputs, expected what the model and the loss take")
                inputs = args[0] if isinstance(args[0], tuple) else (args[0],)
                out = self.model.forward(*wrap(inputs))
                self.prediction = out.data if isinstance(out, Tensor) else None
                value = self.loss(out, *args[1:])
            if not isinstance(value, Tensor):
                raise Error(f"value_and_grad: loss is {type(value).__name__}, expected what openbnns.nn.losses returns")
            running.backward(value)
            for _, p in self._named:
                if p.requires_grad and p._written != running.id:
                    p.gradient.data.fill(0)  # the loss does not depend on it
                    p._written = running.id
            return value.item()


def value_and_grad(model: Module, loss: Callable[..., Any], with_model: bool = False) -> ValueAndGrad:
    """step = value_and_grad(model, losses.cross_entropy); value, grads = step(x, labels).

    The loss is called as loss(model(x), *targets); with `with_model` as loss(model, *args), to do with the model as you like.
    A tape of layer calls is walked back: there is no general differentiation. What has a gradient: every layer of
    openbnns.nn, the losses, and + - * / [] reshape, flatten, transpose and mean of Tensors.
    """
    return ValueAndGrad(model, loss, with_model)
