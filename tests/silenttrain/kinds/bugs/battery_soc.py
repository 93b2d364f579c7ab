"""Tracks the state of charge of battery packs from current and voltage streams.

Every pack is one long stream; the network is trained on short windows of the
streams, moving forward through all packs in parallel (truncated BPTT).
"""

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)


def simulate(n_packs, steps, seed):
    rng = np.random.default_rng(seed)
    load = np.repeat(rng.normal(0, 1, (n_packs, steps // 10)), 10, axis=1)
    load = load + 0.2 * rng.normal(size=load.shape)
    soc = np.zeros((n_packs, steps))
    s = rng.normal(0, 0.5, n_packs)
    for t in range(steps):
        s = 0.985 * s + 0.08 * load[:, t]
        soc[:, t] = s
    volt = 0.15 * np.tanh(soc) - 0.4 * load + 0.5 * rng.normal(size=load.shape)
    x = np.stack([load, volt], axis=-1).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(soc.astype(np.float32)).unsqueeze(-1)


class SocNet(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.lstm = nn.LSTM(2, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x, state=None):
        h, state = self.lstm(x, state)
        return self.out(h), state


class StreamTrainer:
    def __init__(self, model, window=25, lr=4e-3):
        self.model = model
        self.window = window
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)
        self.loss_fn = nn.MSELoss()

    def windows(self, x, y):
        for start in range(0, x.shape[1] - self.window + 1, self.window):
            yield x[:, start : start + self.window], y[:, start : start + self.window]

    def run(self, x, y, train):
        self.model.train(train)
        preds, total, count = [], 0.0, 0
        with torch.set_grad_enabled(train):
            for xw, yw in self.windows(x, y):
                state = None
                out, state = self.model(xw, state)
                loss = self.loss_fn(out, yw)
                if train:
                    self.opt.zero_grad()
                    loss.backward()
                    nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                    self.opt.step()
                    state = tuple(s.detach() for s in state)
                preds.append(out.detach())
                total += loss.item() * yw.numel()
                count += yw.numel()
        return total / count, torch.cat(preds, dim=1)


def r2(pred, target):
    resid = ((target - pred) ** 2).sum()
    spread = ((target - target.mean()) ** 2).sum()
    return (1 - resid / spread).item()


if __name__ == "__main__":
    x_tr, y_tr = simulate(24, 1000, seed=1)
    x_va, y_va = simulate(12, 1000, seed=2)
    trainer = StreamTrainer(SocNet())
    for epoch in range(12):
        tr_loss, _ = trainer.run(x_tr, y_tr, train=True)
        va_loss, va_pred = trainer.run(x_va, y_va, train=False)
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1:2d}: train mse {tr_loss:.4f}  valid mse {va_loss:.4f}")
    print(f"valid RMSE {va_loss**0.5:.4f}   valid R2 {r2(va_pred, y_va):.4f}")
