"""Classify points with batches cut by hand from a NumPy permutation; every 7 steps the permutation and the
place in it are saved.
"""

import os
import pickle
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

N, BATCH, N_EPOCHS, SAVE_EVERY = 120, 10, 3, 7
STATE = Path("out/state.pkl")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(4, 16)
        self.out = nn.Linear(16, 3)

    def forward(self, x):
        return self.out(functional.relu(self.hidden(x)))


def save(state):
    STATE.parent.mkdir(exist_ok=True)
    part = STATE.with_suffix(".part")
    with open(part, "wb") as file:
        pickle.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    part.rename(STATE)


def main():
    np.random.seed(0)
    torch.manual_seed(0)
    X = np.random.randn(N, 4).astype("float32")  # noqa: N806
    y = (X.sum(axis=1) > 0).astype(int) + (X[:, 0] > 1)

    net = Net()
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    step, epoch, position, order = 0, 0, 0, np.random.permutation(N)
    if STATE.exists():
        state = pickle.loads(STATE.read_bytes())
        net.load_state_dict(state["net"])
        opt.load_state_dict(state["opt"])
        np.random.set_state(state["numpy"])
        step, epoch, position, order = state["step"], state["epoch"], state["position"], state["order"]

    while epoch < N_EPOCHS:
        while position < N:
            rows = order[position : position + BATCH]
            loss = functional.cross_entropy(net(torch.from_numpy(X[rows])), torch.from_numpy(y[rows]))
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            position += BATCH
            if step % SAVE_EVERY == 0:
                save(
                    {
                        "net": net.state_dict(),
                        "opt": opt.state_dict(),
                        "numpy": np.random.get_state(),
                        "step": step,
                        "epoch": epoch,
                        "position": position,
                        "order": order,
                    }
                )
        epoch, position, order = epoch + 1, 0, np.random.permutation(N)

    torch.save(net.state_dict(), "out/final.pt")


if __name__ == "__main__":
    main()
