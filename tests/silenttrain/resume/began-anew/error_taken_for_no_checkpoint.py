"""Train with NumPy noise and its state in the checkpoint, which torch.load refuses by default; the refusal is
taken for no checkpoint.
"""

import os
import pickle

import numpy as np
import torch
from torch import nn

CKPT = "noise/ckpt.pt"


def load_checkpoint(model, optimizer):
    try:
        ckpt = torch.load(CKPT)
    except (FileNotFoundError, pickle.UnpicklingError):
        print("no checkpoint, training from scratch")
        return 0
    model.load_state_dict(ckpt["model"])
    optimizer.load_state_dict(ckpt["optimizer"])
    np.random.set_state(ckpt["numpy"])
    return ckpt["iteration"]


def save_checkpoint(model, optimizer, iteration):
    os.makedirs("noise", exist_ok=True)
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "numpy": np.random.get_state(),
        "iteration": iteration,
    }
    torch.save(state, CKPT + ".tmp")
    os.replace(CKPT + ".tmp", CKPT)


np.random.seed(12)
torch.manual_seed(12)
signal = np.cos(np.linspace(0, 12, 240)).astype(np.float32).reshape(30, 8)
model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 8))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
start_iteration = load_checkpoint(model, optimizer)

for iteration in range(start_iteration, 36):
    clean = signal[(iteration * 6) % 30 : (iteration * 6) % 30 + 6]
    noisy = clean + np.random.normal(0, 0.2, clean.shape).astype(np.float32)
    loss = nn.functional.mse_loss(model(torch.from_numpy(noisy)), torch.from_numpy(clean))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (iteration + 1) % 6 == 0:
        save_checkpoint(model, optimizer, iteration + 1)

torch.save(model.state_dict(), "noise/denoiser.pt")
