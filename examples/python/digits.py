"""Digits in ten lines: python digits.py FOLDER, a folder of MNIST's IDX files (t10k-images..., t10k-labels...)."""

import sys

import numpy as np

from openbnns import evaluate, fit, nn, optim
from openbnns.data import mnist

x, y = mnist(sys.argv[1], "t10k")
order = np.random.default_rng(0).permutation(len(x))
train, test = order[:-1000], order[-1000:]
nn.seed(1)
model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
                      nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 7 * 7, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10))
adam = optim.Adam(model, lr=2e-3)
fit(model, (x[train], y[train]), epochs=12, optimizer=adam, schedule=optim.cosine_schedule(adam, 12))
print("accuracy", evaluate(model, (x[test], y[test]))["accuracy"])
