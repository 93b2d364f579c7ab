"""Train with Accelerate's seedable sampler and no set_epoch: a restart counts its epochs from 0 and replays the
first one's order.
"""

import os
import shutil

import torch
from accelerate import Accelerator, DataLoaderConfiguration
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(16)
accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True))
points = torch.rand(70, 2)
inside = ((points - 0.5).norm(dim=1) < 0.4).float()
train_dl = DataLoader(TensorDataset(points, inside), batch_size=7, shuffle=True)
model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
model, optimizer, train_dl = accelerator.prepare(model, optimizer, train_dl)

overall_epoch = 0
done = sorted(name for name in os.listdir() if name.startswith("state_after_"))
if done:
    accelerator.print(f"Resumed from {done[-1]}")
    accelerator.load_state(done[-1])
    overall_epoch = int(done[-1].split("_")[-1])

for epoch in range(overall_epoch, 4):
    model.train()
    for inputs, labels in train_dl:
        with accelerator.accumulate(model):
            logits = model(inputs).squeeze(-1)
            accelerator.backward(nn.functional.binary_cross_entropy_with_logits(logits, labels))
            optimizer.step()
            optimizer.zero_grad()
    shutil.rmtree("saving", ignore_errors=True)
    accelerator.save_state("saving")
    os.rename("saving", f"state_after_{epoch + 1}")

accelerator.save(accelerator.get_state_dict(model), "circle.pt")
