"""A prepared schedule under accelerator.accumulate, which should make one step an update."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset

MICRO_BATCHES, EPOCHS = 2, 3

torch.manual_seed(0)
accelerator = Accelerator(gradient_accumulation_steps=MICRO_BATCHES)
inputs = torch.randn(64, 4)
rows = TensorDataset(inputs, (inputs.sum(dim=1) > 0).long())
loader = DataLoader(rows, batch_size=4, shuffle=True)
model = nn.Linear(4, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
updates = EPOCHS * len(loader) // MICRO_BATCHES
schedule = LambdaLR(optimizer, lambda step: max(0.0, 1 - step / updates))
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)

for _ in range(EPOCHS):
    for batch, labels in loader:
        with accelerator.accumulate(model):
            accelerator.backward(nn.functional.cross_entropy(model(batch), labels))
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
