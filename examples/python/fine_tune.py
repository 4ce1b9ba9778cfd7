"""Fine-tunes a network whose weights came from PyTorch: python fine_tune.py [weights.safetensors]

In PyTorch: safetensors.torch.save_file(model.state_dict(), "weights.safetensors"). Names and shapes are the same here. Without
a file the weights are drawn, saved and loaded, so that the program runs by itself.
"""

import pathlib
import sys
import tempfile

import numpy as np

from openbnns import evaluate, fit, nn, optim


def network(classes: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 5 * 5, classes))


def bars(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Lying and standing bars in noise."""
    rng = np.random.default_rng(seed)
    x, y = rng.random((n, 1, 12, 12), np.float32), rng.integers(0, 2, n)
    for image, label, at in zip(x, y, rng.integers(2, 10, n)):
        if label:
            image[0, at] += 1
        else:
            image[0, :, at] += 1
    return x, y


nn.seed(1)
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(folder) / "weights.safetensors"
    if len(sys.argv) < 2:
        network(10).save(path)
    model = network(10)
    model.load(path)

body, model = model, network(2)
for name, parameter in model.named_parameters():  # all but the last layer
    if not name.startswith("5."):
        parameter.data[...] = dict(body.named_parameters())[name].data
        parameter.requires_grad = False
fit(model, bars(600, 1), epochs=4, optimizer=optim.Adam(model, lr=1e-2), progress=False)
model.requires_grad_()
fit(model, bars(600, 1), epochs=4, optimizer=optim.Adam(model, lr=1e-3), progress=False)
result = evaluate(model, bars(300, 2))
print(f"accuracy {result['accuracy']:.3f}")
sys.exit(result["accuracy"] < 0.9)
