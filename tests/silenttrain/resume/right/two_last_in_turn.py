"""Write checkpoints to two files in turn and start from the newest one that can be read: a save cut short costs
one interval.
"""

import hashlib
import io
import os

import numpy as np
import torch
from torch import nn

SLOTS = ("slot_a.bin", "slot_b.bin")


def read(slot):
    """The content of a slot, or None where it is missing or was cut short."""
    if not os.path.exists(slot):
        return None
    with open(slot, "rb") as file:
        checksum, content = file.read(32), file.read()
    if hashlib.sha256(content).digest() != checksum:
        return None
    return torch.load(io.BytesIO(content), weights_only=False)


def write(slot, state):
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = buffer.getvalue()
    with open(slot, "wb") as file:
        file.write(hashlib.sha256(content).digest())
        file.write(content)


def newest():
    states = [state for state in map(read, SLOTS) if state is not None]
    return max(states, key=lambda state: state["iteration"], default=None)


rng = np.random.default_rng(4)
data = torch.from_numpy(rng.normal(size=(200, 7)).astype(np.float32))
torch.manual_seed(4)
autoencoder = nn.Sequential(nn.Linear(7, 3), nn.Tanh(), nn.Linear(3, 7))
optim = torch.optim.RMSprop(autoencoder.parameters(), lr=2e-3)

iteration, saves = 0, 0
state = newest()
if state is not None:
    autoencoder.load_state_dict(state["autoencoder"])
    optim.load_state_dict(state["optim"])
    rng.bit_generator.state = state["rng"]
    iteration, saves = state["iteration"], state["saves"]

while iteration < 50:
    batch = data[rng.integers(0, 200, size=16)]
    noisy = batch + torch.from_numpy(rng.normal(scale=0.1, size=(16, 7)).astype(np.float32))
    loss = (autoencoder(noisy) - batch).square().mean()
    optim.zero_grad()
    loss.backward()
    optim.step()
    iteration += 1
    if iteration % 6 == 0:
        saves += 1
        contents = {
            "autoencoder": autoencoder.state_dict(),
            "optim": optim.state_dict(),
            "rng": rng.bit_generator.state,
            "iteration": iteration,
            "saves": saves,
        }
        write(SLOTS[saves % 2], contents)

torch.save(autoencoder.state_dict(), "autoencoder.pt")
