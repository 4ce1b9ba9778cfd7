#!/usr/bin/env python3
"""The step of bench/step_bench.cc in PyTorch: the same network, batch sizes and optimizers. One JSON object per line."""
import json
import statistics
import time

import torch

torch.manual_seed(0)
for batch in (1, 32, 128):
    for name in ("sgd", "adam"):
        model = torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01) if name == "sgd" else torch.optim.Adam(model.parameters(), lr=0.001)
        x, labels = torch.rand(batch, 784), torch.arange(batch) % 10

        def step():
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), labels).backward()
            optimizer.step()

        for _ in range(50):
            step()
        times, start = [], time.perf_counter()
        while len(times) < 9 or time.perf_counter() - start < 1.0:
            before = time.perf_counter()
            for _ in range(10):
                step()
            times.append((time.perf_counter() - before) / 10 * 1e6)
        print(json.dumps({"family": "step_small" if batch == 1 else "step_large", "case": f"mlp batch {batch} {name}",
                          "us": round(statistics.median(times), 2), "torch": torch.__version__}), flush=True)
