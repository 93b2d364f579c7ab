"""Name Accelerate's states after the epoch just finished and take that number for the first epoch to train
after a restart.
"""

import pathlib
import re
import shutil

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed

STATES = pathlib.Path("states_by_epoch")


def last_state():
    found = {int(m[1]): p for p in STATES.glob("*") if (m := re.fullmatch(r"ep(\d+)", p.name))}
    return max(found.items()) if found else (0, None)


def train(accelerator, model, optimizer, scheduler, loader, first_epoch):
    for epoch in range(first_epoch, 3):
        loader.set_epoch(epoch)
        for text, length in loader:
            accelerator.backward(torch.nn.functional.mse_loss(model(text).mean(1).squeeze(-1), length))
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        shutil.rmtree(STATES / "part", ignore_errors=True)
        accelerator.save_state(str(STATES / "part"))
        shutil.rmtree(STATES / f"ep{epoch}", ignore_errors=True)
        (STATES / "part").rename(STATES / f"ep{epoch}")


set_seed(88)
accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True))
text = torch.randint(0, 50, (77, 6))
dataset = torch.utils.data.TensorDataset(text, (text > 25).float().mean(1))
model = torch.nn.Sequential(torch.nn.Embedding(50, 7), torch.nn.Linear(7, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-2)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10, gamma=0.5)
model, optimizer, scheduler, loader = accelerator.prepare(
    model, optimizer, scheduler, torch.utils.data.DataLoader(dataset, batch_size=7, shuffle=True)
)
epoch, folder = last_state()
if folder:
    accelerator.load_state(str(folder))
train(accelerator, model, optimizer, scheduler, loader, epoch)
accelerator.save(accelerator.unwrap_model(model).state_dict(), "lengths.pt")
