"""One training over many processes: mpirun -n 4 python distributed.py. The weights are the same on 1, 2, 4 and 8 ranks.

Without mpirun the group has one rank, and the program runs as it is.
"""

import zlib

import numpy as np

from openbnns import evaluate, fit, nn, optim
from openbnns.distributed import Group

r = np.random.default_rng(0)
y = r.integers(0, 3, 1024)
x = r.standard_normal((1024, 1, 12, 12)).astype(np.float32)
x[np.arange(1024), 0, 4 * y] += 1                          # a bright row says which class it is

nn.seed(1)
model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 5 * 5, 3))

with Group() as group:                                     # every rank loads the same data, and takes its shards of each batch
    fit(model, (x, y), epochs=3, batch_size=64, optimizer=optim.Adam(model, lr=1e-2), group=group)
    if group.rank == 0:
        print("accuracy", evaluate(model, (x, y))["accuracy"])
        print("weights", hex(zlib.crc32(b"".join(p.data.tobytes() for p in model.parameters()))))
