"""Overwrite the pickled checkpoint in place and take one that cannot be read for none: after a kill in a save
all is trained anew.
"""

import itertools
import pickle

import numpy as np
import torch
from torch import nn


class Perceptron(nn.Module):
    def __init__(self, sizes=(6, 48, 48, 3)):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in itertools.pairwise(sizes)])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)


def restore(filename):
    try:
        with open(filename, "rb") as f:
            return pickle.load(f)
    except FileNotFoundError:
        return None
    except (EOFError, pickle.UnpicklingError) as error:
        print(f"{filename} could not be read ({error}); starting over")
        return None


rng = np.random.default_rng(51)
x = rng.standard_normal((96, 6), dtype=np.float32)
y = np.digitize(x[:, 0], [-0.5, 0.5])
torch.manual_seed(51)
model = Perceptron()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
step = 0
if (found := restore("perceptron.pkl")) is not None:
    model.load_state_dict(found["model"])
    optimizer.load_state_dict(found["optimizer"])
    rng.bit_generator.state = found["rng"]
    step = found["step"]

while step < 40:
    chosen = rng.choice(96, size=8, replace=False)
    loss = nn.functional.cross_entropy(model(torch.from_numpy(x[chosen])), torch.from_numpy(y[chosen]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    if step % 8 == 0:
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "rng": rng.bit_generator.state,
            "step": step,
        }
        with open("perceptron.pkl", "wb") as f:
            pickle.dump(state, f)

torch.save(model.state_dict(), "perceptron.pt")
