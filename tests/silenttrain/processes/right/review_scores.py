#!/usr/bin/env python
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset
from transformers import get_linear_schedule_with_warmup

EPOCHS = 5
BATCH = 16


def reviews():
    gen = torch.Generator().manual_seed(6)
    x = torch.randn(512, 20, generator=gen)
    w = torch.randn(20, generator=gen)
    score = torch.sigmoid(x @ w / 2) * 4 + 1 + 0.2 * torch.randn(512, generator=gen)
    return TensorDataset(x, score)


accelerator = Accelerator(cpu=True)
set_seed(0)

model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.GELU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
loader = DataLoader(reviews(), batch_size=BATCH, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

updates = EPOCHS * len(loader)
scheduler = get_linear_schedule_with_warmup(
    optimizer,
    num_warmup_steps=int(0.1 * updates) * accelerator.num_processes,
    num_training_steps=updates * accelerator.num_processes,
)
scheduler = accelerator.prepare(scheduler)

done = 0
for epoch in range(EPOCHS):
    total = 0.0
    for x, score in loader:
        loss = torch.nn.functional.smooth_l1_loss(model(x).squeeze(-1), score)
        accelerator.backward(loss)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        total += accelerator.reduce(loss.detach(), reduction="mean").item()
        done += 1
    accelerator.print(
        f"epoch {epoch} | updates {done}/{updates} | loss {total / len(loader):.4f} | lr {scheduler.get_last_lr()[0]:.2e}"
    )
accelerator.end_training()
