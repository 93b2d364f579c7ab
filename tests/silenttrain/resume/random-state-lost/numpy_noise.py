"""Add NumPy noise to each batch and keep torch's generator in the checkpoint but not NumPy's: noise is replayed
from the start.
"""

from pathlib import Path

import numpy as np
import torch
from torch import nn

HERE = Path("numpy_noise")


def jitter(batch: np.ndarray) -> torch.Tensor:
    return torch.as_tensor(batch + np.random.uniform(-0.1, 0.1, size=batch.shape), dtype=torch.float32)


def epochs(model, optimizer, data, labels, start, stop):
    for epoch in range(start, stop):
        for rows in torch.randperm(len(data)).split(7):
            logits = model(jitter(data[rows.numpy()]))
            loss = nn.functional.cross_entropy(logits, labels[rows])
            model.zero_grad()
            loss.backward()
            optimizer.step()
        yield epoch


def main():
    np.random.seed(33)
    torch.manual_seed(33)
    HERE.mkdir(exist_ok=True)
    data = np.random.rand(63, 6)
    labels = torch.from_numpy(data.argmax(axis=1) % 3)
    model = nn.Sequential(nn.Linear(6, 18), nn.Hardswish(), nn.Linear(18, 3))
    optimizer = torch.optim.Adamax(model.parameters(), lr=0.02)
    start = 0
    if (HERE / "checkpoint.pth").exists():
        saved = torch.load(HERE / "checkpoint.pth")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["torch"])
        start = saved["epoch"] + 1
    for epoch in epochs(model, optimizer, data, labels, start, 4):
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "torch": torch.get_rng_state(),
            "epoch": epoch,
        }
        torch.save(saved, HERE / "checkpoint.tmp")
        (HERE / "checkpoint.tmp").replace(HERE / "checkpoint.pth")
    torch.save(model.state_dict(), HERE / "final.pth")


main()
