"""Train a click model on two processes with Accelerate: a shared tower and a bias layer per placement."""

import os

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES, PLACEMENTS = 12, 8


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())

    def forward(self, x):
        return self.net(x)


class PlacementHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.placement = nn.Embedding(PLACEMENTS, 16)
        self.out = nn.Linear(16, 1)

    def forward(self, h, placement):
        return self.out(torch.relu(h + self.placement(placement))).squeeze(-1)


def clicks(n, seed):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(n, FEATURES, generator=gen)
    placement = torch.randint(0, PLACEMENTS, (n,), generator=gen)
    logit = 1.5 * x[:, 0] - x[:, 1] + x[:, 2] * x[:, 3] + 0.9 * (placement - 3.5)
    return x, placement, (torch.rand(n, generator=gen) < torch.sigmoid(logit)).float()


def main():
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(150 + accelerator.process_index)
    x, placement, y = clicks(1536, 1)
    loader = DataLoader(TensorDataset(x, placement, y), batch_size=32, shuffle=True)

    tower, head = Tower(), PlacementHead()
    optimizer = torch.optim.AdamW([*tower.parameters(), *head.parameters()], lr=4e-3)
    tower, optimizer, loader = accelerator.prepare(tower, optimizer, loader)

    for epoch in range(5):
        total = 0.0
        for xb, pb, yb in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(head(tower(xb), pb), yb)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            total += loss.item()
        accelerator.print(f"epoch {epoch} loss {total / len(loader):.4f}")

    x_test, p_test, y_test = clicks(400, 2)
    with torch.no_grad():
        scores = head(accelerator.unwrap_model(tower)(x_test), p_test)
    accelerator.print(f"test accuracy {((scores > 0).float() == y_test).float().mean().item():.3f}")

    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        os.makedirs("out", exist_ok=True)
        bundle = {"tower": accelerator.unwrap_model(tower).state_dict(), "head": head.state_dict()}
        torch.save(bundle, "out/click_model.pt")
    accelerator.end_training()


if __name__ == "__main__":
    main()
