import tempfile

import torch
from torch import nn

torch.manual_seed(0)
inputs = torch.randn(90, 6)
targets = inputs.sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

with tempfile.TemporaryDirectory() as folder:
    for _ in range(2):
        batches = torch.randperm(90).split(10)
        for number, rows in enumerate(batches, start=1):
            (nn.functional.mse_loss(model(inputs[rows]), targets[rows]) / 2).backward()
            if number % 2 == 0:
                optimizer.step()
                optimizer.zero_grad()
            if number == len(batches):
                torch.save(model.state_dict(), f"{folder}/model.pt")  # found
        optimizer.step()
        optimizer.zero_grad()
