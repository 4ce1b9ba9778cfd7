"""A character-level LSTM that learns a text and writes on: python lstm_text.py [FILE] [STEPS]"""

import pathlib
import sys
from typing import Any

import numpy as np

from openbnns import nn, optim


class Writer(nn.Module):
    def __init__(self, letters: int, width: int = 96) -> None:
        super().__init__()
        self.embed = nn.Embedding(letters, 32)
        self.lstm = nn.LSTM(32, width, batch_first=True)
        self.last = nn.Linear(width, letters)

    def forward(self, ids: Any, states: Any = None) -> Any:
        y, states = self.lstm(self.embed(ids), states)
        return self.last(y), states


path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__)
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 300
text = path.read_text(errors="replace")
letters = sorted(set(text))
ids = np.array([letters.index(c) for c in text])
rng = np.random.default_rng(1)
nn.seed(1)
model = Writer(len(letters))
optimizer = optim.Adam(model, lr=5e-3)


def loss(model: Any, x: Any, targets: Any) -> Any:
    logits, _ = model(x)
    return nn.losses.cross_entropy(logits.reshape(-1, len(letters)), targets)


step = nn.value_and_grad(model, loss, with_model=True)
for i in range(1, steps + 1):
    starts = rng.integers(0, len(ids) - 33, 16)
    window = np.stack([ids[s:s + 33] for s in starts])
    value, gradients = step(window[:, :-1], window[:, 1:].ravel())
    optim.clip_grad_norm(model, 5.0)
    optimizer.step()
    if i % 100 == 0 or i == steps:
        print(f"step {i}: loss {value:.3f}")

model.eval()
states, last, written = None, ids[:1], ""
for _ in range(80):
    logits, states = model(last[None], states)
    p = np.exp(logits[0, -1] * 1.5 - np.max(logits[0, -1] * 1.5))
    last = np.array([rng.choice(len(letters), p=p / p.sum())])
    written += letters[last[0]]
print(written)
