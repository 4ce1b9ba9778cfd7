"""Sequences: LSTM and MultiheadAttention, with PyTorch's weights."""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np

from .. import _core
from .._errors import Error
from ..types import DataLayout, use_client_pointer
from . import operations, tape
from .layers import check_float
from .module import Module, Parameter, fan_bound, uniform
from .simple import Dropout
from .tape import Gradient, Plan, Tensor, as_input


class _Direction(Plan):
    """One layer in one direction: the library's LSTM on slices of PyTorch's weights. Gates lie as i, f, g, o."""

    def __init__(self, x: Tensor, weights: list[Parameter], hidden: int, batch_first: bool) -> None:
        wi, wh = weights[0], weights[1]
        self.weights, self.hidden = weights, hidden
        steps, batch = (x.shape[1], x.shape[0]) if batch_first else (x.shape[0], x.shape[1])
        self.layout = DataLayout.tensor_3d_nse if batch_first else DataLayout.tensor_3d_sne
        inputs = x.shape[2]
        self.out = Tensor(np.empty(x.shape[:2] + (hidden,), np.float32))
        self.h, self.c = Tensor(np.empty((batch, hidden), np.float32)), Tensor(np.empty((batch, hidden), np.float32))
        self.h0, self.c0 = np.zeros((batch, hidden), np.float32), np.zeros((batch, hidden), np.float32)
        self.x = np.empty(x.shape, np.float32)  # the library's layer keeps descriptors: its input stands at one place
        self.bias = np.zeros(4 * hidden, np.float32) if len(weights) > 2 else None
        self.dx = np.empty_like(self.x)
        self.dh0, self.dc0 = np.empty_like(self.h0), np.empty_like(self.c0)
        self.dwi, self.dwh = np.empty_like(wi.data), np.empty_like(wh.data)
        self.db = np.empty_like(self.bias) if self.bias is not None else None
        self.lstm = _core.LSTM(inputs, hidden, batch, 1, steps, 0.0, False, None, self._data(self.x, self.h0, self.c0),
                               self._data(self.out.data, self.h.data, self.c.data), self._gates(wi.data, wh.data, self.bias))
        self.cache = _core.Array(np.empty(self.lstm.training_cache_capacity(), np.uint8))
        self.zero_y = np.zeros_like(self.out.data)
        self.zero_s = np.zeros_like(self.h0)

    def _data(self, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[Any, Any, Any]:
        def states(a: np.ndarray) -> Any:
            return _core.Array(a.reshape(1, 1, *a.shape), layout=DataLayout.tensor_4d_first_major)

        return _core.Array(x, layout=self.layout), states(h), states(c)

    def _gates(self, wi: np.ndarray, wh: np.ndarray, b: np.ndarray | None) -> list[Any]:
        n = self.hidden
        return [(wi[g * n:(g + 1) * n], None, wh[g * n:(g + 1) * n], None, None if b is None else b[g * n:(g + 1) * n])
                for g in range(4)]

    def run(self, x: Tensor, h: Tensor | None, c: Tensor | None, backwards: bool, axis: int) -> Tensor:
        self.source, self.first, self.turn = x, (h, c), (slice(None),) * axis + (slice(None, None, -1),)
        self.backwards = backwards
        np.copyto(self.x, x.data[self.turn] if backwards else x.data)
        for target, state in ((self.h0, h), (self.c0, c)):
            if state is None:
                target.fill(0)
            else:
                np.copyto(target, state.data)
        if self.bias is not None:  # PyTorch has two biases, the library one
            np.add(self.weights[2].data, self.weights[3].data, out=self.bias)
        running = tape.current()
        self.lstm.apply(self.cache if running is not None and running.record else None)
        if backwards:
            self.out.data[...] = np.ascontiguousarray(self.out.data[self.turn])
        needs = x.needs or any(p.requires_grad for p in self.weights) or any(s is not None and s.needs for s in (h, c))
        x.uses += 1
        for t in (self.out, self.h, self.c):
            t.fresh(needs)
        return self.out

    def backward(self) -> None:
        def given(t: Tensor, zero: np.ndarray) -> np.ndarray:
            return t.gradient.data if t.dirty and t.gradient is not None else zero

        dy = given(self.out, self.zero_y)
        if self.backwards:
            dy = np.ascontiguousarray(dy[self.turn])
        self.lstm.apply_backward(self._data(self.dx, self.dh0, self.dc0),
                                 self._data(dy, given(self.h, self.zero_s), given(self.c, self.zero_s)),
                                 self._gates(self.dwi, self.dwh, self.db), self.cache)
        self.source.add_gradient(self.dx[self.turn] if self.backwards else self.dx)
        for state, d in zip(self.first, (self.dh0, self.dc0)):
            if state is not None:
                state.add_gradient(d)
        for parameter, dw in zip(self.weights, (self.dwi, self.dwh, self.db, self.db)):
            assert dw is not None
            parameter.add_gradient(dw)


class _Last(Plan):
    """Makes the plan of a direction run backward also where only its last states are used."""

    def __init__(self, direction: _Direction) -> None:
        self.direction = direction
        self.out = direction.h

    def backward(self) -> None:
        if not self.direction.out.dirty:
            self.direction.out.add_gradient(self.direction.zero_y)


class LSTM(Module):
    """y, (h, c) = lstm(x) or lstm(x, (h0, c0)). x (T, N, input_size), or (N, T, input_size) with batch_first.

    weight_ih_l0 (4 hidden, input), weight_hh_l0 (4 hidden, hidden), bias_ih_l0 and bias_hh_l0 (4 hidden), gates in the order
    i, f, g, o; further layers _l1, ..., the other direction _reverse. States are (layers * directions, N, hidden).
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.batch_first, self.bidirectional = batch_first, bidirectional
        self._names: list[list[str]] = []
        bound = fan_bound(hidden_size)
        directions = 2 if bidirectional else 1
        for layer in range(num_layers):
            width = input_size if layer == 0 else hidden_size * directions
            for suffix in ("", "_reverse")[:directions]:
                end = f"_l{layer}{suffix}"
                names = ["weight_ih" + end, "weight_hh" + end] + (["bias_ih" + end, "bias_hh" + end] if bias else [])
                shapes = [(4 * hidden_size, width), (4 * hidden_size, hidden_size), (4 * hidden_size,), (4 * hidden_size,)]
                for name, shape in zip(names, shapes):
                    setattr(self, name, uniform(shape, bound))
                self._names.append(names)
        self._dropout = Dropout(dropout) if dropout else None

    def forward(self, x: Tensor, states: Any = None) -> Any:
        if len(x.shape) != 3 or x.shape[2] != self.input_size or x.data.dtype != np.float32:
            raise Error(f"LSTM: input has shape {x.shape} and dtype {x.data.dtype}, expected float32 of "
                        f"({'N, T' if self.batch_first else 'T, N'}, {self.input_size})")
        directions = 2 if self.bidirectional else 1
        batch = x.shape[0 if self.batch_first else 1]
        first = None
        if states is not None:
            first = [as_input(s) for s in states]
            wanted = (self.num_layers * directions, batch, self.hidden_size)
            for name, state in zip("hc", first):
                if state.shape != wanted:
                    raise Error(f"LSTM: {name}0 has shape {state.shape}, expected {wanted}")
        hs, cs = [], []
        for layer in range(self.num_layers):
            outs = []
            for d in range(directions):
                at = layer * directions + d
                weights = [getattr(self, n) for n in self._names[at]]
                plan = self._plans.get((at, x.shape), lambda: _Direction(x, weights, self.hidden_size, self.batch_first))
                assert isinstance(plan, _Direction)
                h, c = (None, None) if first is None else (first[0][at], first[1][at])
                running = tape.current()
                assert running is not None
                if running.record and first is not None:  # indexing the states recorded plans behind ours: put it last
                    running.plans.remove(plan)
                    running.plans.append(plan)
                plan.run(x, h, c, d == 1, 1 if self.batch_first else 0)
                if running.record:
                    running.plans.append(_Last(plan))
                outs.append(plan.out)
                hs.append(plan.h)
                cs.append(plan.c)
            x = outs[0] if directions == 1 else operations.concatenate(outs, axis=2)
            if self._dropout is not None and layer + 1 < self.num_layers and self.training:
                self._dropout.training = True
                x = self._dropout.forward(x)
        def stacked(parts: list[Tensor]) -> Tensor:
            return operations.concatenate([p.reshape(1, *p.shape) for p in parts], axis=0)

        return x, (stacked(hs), stacked(cs))

    def children(self) -> Any:
        if self._dropout is not None:
            yield "_dropout", self._dropout

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}"


class _Attention(Plan):
    def __init__(self, owner: "MultiheadAttention", n: int, length: int, keys: int) -> None:
        e, heads = owner.embed_dim, owner.num_heads
        d = e // heads
        self.owner, self.n = owner, n
        self.filter = _core.AttentionFilter()

        def weights(a: np.ndarray) -> Any:  # (heads * d, e), as (model, d, heads) with the first index fastest
            return _core.Array(a.reshape(heads, d, e), layout=DataLayout.tensor_3d_last_major)

        def output(a: np.ndarray) -> Any:
            return _core.Array(a, layout=DataLayout.matrix_column_major)

        self.weights, self.output = weights, output
        w, b = owner.in_proj_weight.data, owner.in_proj_bias
        out_bias = owner.out_proj.bias
        triples: list[tuple[Any, Any, Any]] = []
        for i, rows in enumerate((length, keys, keys)):
            triples.append((_core.Array((rows, e)), weights(w[i * e:(i + 1) * e]),
                            None if b is None else _core.Array(b.data[i * e:(i + 1) * e])))
        triples.append((_core.Array((length, e)), output(owner.out_proj.weight.data),
                        None if out_bias is None else out_bias.array))
        rate = owner.dropout.p if owner.training else 0.0
        self.make: Callable[[], None] = lambda: _core.make_attention(self.filter, triples, False, None, None, rate,
                                                 owner.dropout.draw() if rate > 0 else 0, use_client_pointer)
        self.random = rate > 0
        self.make()
        self.cache = _core.Array(np.empty(self.filter.backprop_cache_size(n), np.uint8))
        self.out = Tensor(np.empty((n, length, e), np.float32))
        self.scratch = [Gradient(np.empty((n, rows, e), np.float32)) for rows in (length, keys, keys)]

    def run(self, q: Tensor, k: Tensor, v: Tensor, mask: Any, add: Any) -> Tensor:
        if self.random:  # a filter for each call: its mask follows from the number of the call
            self.filter = _core.AttentionFilter()
            self.make()
        self.inputs, self.mask, self.add = (q, k, v), mask, add
        running = tape.current()
        for t in self.inputs:
            t.uses += 1
        self.filter.apply(self.n, q.array, k.array, v.array, self.out.array, mask, add,
                          self.cache if running is not None and running.record else None)
        o = self.owner
        trained = any(p is not None and p.requires_grad for p in o.parameters())
        return self.out.fresh(trained or any(t.needs for t in self.inputs))

    def backward(self) -> None:
        o, e = self.owner, self.owner.embed_dim
        q, k, v = self.inputs
        weight, bias = o.in_proj_weight, o.in_proj_bias

        def slices(p: Parameter | None, shape: Any) -> list[Any]:
            target = None if p is None else p.target()
            if p is None or target is None:
                return [None, None, None]
            parts = [shape(p.gradient.data[i * e:(i + 1) * e]) for i in range(3)]
            return [a.accumulating() for a in parts] if target is p.gradient.adding else parts

        dw, db = slices(weight, self.weights), slices(bias, _core.Array)
        triples: list[tuple[Any, Any, Any]] = [
            (self.scratch[i].array if t.needs else None, dw[i], db[i]) for i, t in enumerate(self.inputs)]
        ow, ob = o.out_proj.weight, o.out_proj.bias
        target = ow.target()
        if target is not None:
            turned = self.output(ow.gradient.data)
            target = turned.accumulating() if target is ow.gradient.adding else turned
        triples.append((None, target, None if ob is None else ob.target()))
        self.filter.apply_backward_all(self.n, q.array, k.array, v.array, self.out.array, self.out.grad, triples, None, None,
                                       self.mask, self.add, self.cache)
        for t, part in zip(self.inputs, self.scratch):
            t.add_gradient(part.data)


class _Projection(Module):
    """Holds out_proj.weight and out_proj.bias under PyTorch's names."""

    def __init__(self, size: int, bias: bool) -> None:
        super().__init__()
        self.weight = uniform((size, size), fan_bound(size))
        self.bias = Parameter(np.zeros(size, np.float32)) if bias else None


class MultiheadAttention(Module):
    """y = mha(query, key, value): softmax(Q K^T / sqrt(d)) V for each head, batch first: (N, L, E), (N, S, E), (N, S, E).

    in_proj_weight (3 E, E), in_proj_bias (3 E), out_proj.weight (E, E), out_proj.bias (E). key_padding_mask: bool (N, S), true
    hides a key. attn_mask: bool or float (L, S), or (N, heads, L, S). PyTorch's class needs batch_first=True to match.
    """

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise Error(f"MultiheadAttention: num_heads is {num_heads}, expected a divisor of {embed_dim}")
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.dropout = Dropout(dropout)
        self.in_proj_weight = uniform((3 * embed_dim, embed_dim), math.sqrt(6 / (4 * embed_dim)))
        self.in_proj_bias = Parameter(np.zeros(3 * embed_dim, np.float32)) if bias else None
        self.out_proj = _Projection(embed_dim, bias)

    def forward(self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None, key_padding_mask: Any = None,
                attn_mask: Any = None) -> Tensor:
        key = query if key is None else key
        value = key if value is None else value
        for name, t in (("query", query), ("key", key), ("value", value)):
            if len(t.shape) != 3 or t.shape[2] != self.embed_dim or t.data.dtype != np.float32 or t.shape[0] != query.shape[0]:
                raise Error(f"MultiheadAttention: {name} has shape {t.shape} and dtype {t.data.dtype}, expected float32 of "
                            f"({query.shape[0]}, S, {self.embed_dim})")
        n, length, keys = query.shape[0], query.shape[1], key.shape[1]
        plan = self._plans.get((n, length, keys, self.training), lambda: _Attention(self, n, length, keys))
        masks = [m.data if isinstance(m, Tensor) else m for m in (key_padding_mask, attn_mask)]
        return plan.run(query, key, value, *masks)

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, {self.num_heads}"
