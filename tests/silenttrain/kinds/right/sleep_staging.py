"""Stages sleep from overnight EEG recordings, streamed in windows of thirty epochs."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(4)
STAGES, BANDS, WINDOW = 4, 5, 30


def make_nights(n_nights, n_epochs, seed):
    rng = np.random.default_rng(seed)
    profile = np.random.default_rng(99).normal(0, 1.0, (STAGES, BANDS))
    stage = np.zeros((n_nights, n_epochs), dtype=np.int64)
    for i in range(n_nights):
        s = 0
        for t in range(n_epochs):
            if rng.random() < 0.06:
                s = int(rng.integers(STAGES))
            stage[i, t] = s
    offset = rng.normal(0, 0.4, (n_nights, 1, BANDS))
    x = profile[stage] + offset + 1.3 * rng.normal(size=(n_nights, n_epochs, BANDS))
    return torch.tensor(x, dtype=torch.float32), torch.from_numpy(stage)


class Stager(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.rnn = nn.LSTM(BANDS, hidden, batch_first=True)
        self.cls = nn.Linear(hidden, STAGES)

    def forward(self, x, carry):
        h, carry = self.rnn(x, carry)
        return self.cls(h), carry


def stream(x, y):
    for k in range(0, x.shape[1], WINDOW):
        yield x[:, k : k + WINDOW], y[:, k : k + WINDOW]


def train_pass(model, opt, x, y):
    model.train()
    carry, total = None, 0.0
    for xw, yw in stream(x, y):
        if carry is not None:
            carry = tuple(c.detach() for c in carry)
        logits, carry = model(xw, carry)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), yw.flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        total += loss.item() * yw.numel()
    return total / y.numel()


@torch.no_grad()
def eval_pass(model, x, y):
    model.eval()
    carry, correct = None, 0
    for xw, yw in stream(x, y):
        logits, carry = model(xw, carry)
        correct += (logits.argmax(-1) == yw).sum().item()
    return correct / y.numel()


def main():
    x_tr, y_tr = make_nights(32, 600, seed=1)
    x_va, y_va = make_nights(16, 590, seed=2)
    model = Stager()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for night_pass in range(12):
        loss = train_pass(model, opt, x_tr, y_tr)
        if night_pass % 4 == 3:
            print(f"pass {night_pass + 1:2d}  loss {loss:.3f}  valid acc {eval_pass(model, x_va, y_va):.3f}")
    print(f"validation epoch accuracy {eval_pass(model, x_va, y_va):.4f}")


if __name__ == "__main__":
    main()
