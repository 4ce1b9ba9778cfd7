"""The same with the loop in your hands: python digits_value_and_grad.py FOLDER [file.safetensors]"""

import sys
from typing import Any

from openbnns import accuracy, nn, optim, predict
from openbnns.data import Loader, mnist


class Net(nn.Module):
    """A small residual network."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 16, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.act = nn.ReLU()
        self.second = nn.Conv2d(16, 16, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.last = nn.Linear(16 * 7 * 7, 10)

    def forward(self, x: Any) -> Any:
        x = self.act(self.norm(self.first(x)))
        x = x + self.act(self.second(x))
        return self.last(self.pool(x).flatten(1))


x, y = mnist(sys.argv[1], "t10k")
nn.seed(1)
model = Net()
optimizer = optim.AdamW(model, lr=2e-3)
step = nn.value_and_grad(model, nn.losses.cross_entropy)
loader = Loader((x[:9000], y[:9000]), batch_size=64, shuffle=True, seed=1)
for epoch in range(3):
    total = 0.0
    for images, labels in loader:
        loss, grads = step(images, labels)
        optim.clip_grad_norm(model, 5.0)
        optimizer.step()
        total += loss * len(labels)
    print(f"epoch {epoch + 1}: loss {total / 9000:.4f}, accuracy {accuracy(predict(model, x[9000:]), y[9000:]):.4f}")
if len(sys.argv) > 2:
    model.save(sys.argv[2])
