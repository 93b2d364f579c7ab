import tempfile

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))


def train(inputs, lr):
    targets = inputs.sum(1, keepdim=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    for rows in torch.randperm(len(inputs)).split(8):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs[rows]), targets[rows]).backward()
        optimizer.step()


with tempfile.TemporaryDirectory() as folder:
    train(torch.randn(64, 6), lr=1e-2)
    torch.save(model.state_dict(), f"{folder}/model.pt")  # found
    train(3 * torch.randn(64, 6), lr=1e-3)
