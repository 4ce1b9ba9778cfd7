"""Weights of bnns in PyTorch and the other way round: the same probabilities. Skipped where PyTorch or safetensors is missing."""
import json
import pathlib
import sys
import tempfile

try:
    import torch
    from safetensors.torch import load_file, save_file
except ImportError as reason:
    print(f"skipped: PyTorch and safetensors are not installed ({reason})")
    sys.exit(77)

from tool_files import SIDE, run, write_digits


class Cnn(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(16)
        self.conv2 = torch.nn.Conv2d(16, 32, 3, padding=1, bias=False)
        self.bn2 = torch.nn.BatchNorm2d(32)
        self.fc = torch.nn.Linear(32 * (SIDE // 4) ** 2, 10)

    def forward(self, x):
        x = torch.nn.functional.max_pool2d(self.bn1(self.conv1(x)).relu(), 2)
        x = torch.nn.functional.max_pool2d(self.bn2(self.conv2(x)).relu(), 2)
        return self.fc(x.flatten(1))


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(SIDE * SIDE, 128)
        self.fc2 = torch.nn.Linear(128, 10)

    def forward(self, x):
        return self.fc2(self.fc1(x.flatten(1)).relu())


def compare(weights, images, model):
    pixels = torch.frombuffer(bytearray(images.read_bytes()[16:]), dtype=torch.uint8).reshape(-1, 1, SIDE, SIDE).float() / 255
    with torch.no_grad():
        expected = model.eval()(pixels).softmax(1)
    worst = 0
    for each, row in zip(json.loads(run("predict", weights, images, "--json").stdout)["pictures"], expected):
        for top in each["top"]:
            worst = max(worst, abs(top["probability"] - row[top["class"]].item()))
    print(f"{type(model).__name__}: largest difference of a probability {worst:.1e}")
    assert worst < 1e-5


torch.manual_seed(1)
with tempfile.TemporaryDirectory() as temporary:
    root = pathlib.Path(temporary)
    data = write_digits(root / "digits")
    images = data / "t10k-images-idx3-ubyte"
    for name, kind in (("cnn", Cnn), ("mlp", Mlp)):
        weights = root / f"{name}.safetensors"
        run("train", "--model", name, "--data", data, "--epochs", "2", "--no-report", "--quiet", "--save", weights)
        model = kind()
        model.load_state_dict(load_file(weights))  # strict: every name, and no other
        compare(weights, images, model)
        fresh = kind()
        save_file(fresh.state_dict(), root / "torch.safetensors")
        compare(root / "torch.safetensors", images, fresh)
        run("train", "--load", root / "torch.safetensors", "--data", data, "--epochs", "1", "--no-report", "--quiet")
