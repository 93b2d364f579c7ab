"""Train with Accelerate and a state saved after each epoch, in a folder that gets its name when it is complete."""

import os
import shutil

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

NUM_EPOCHS = 4
ROOT = "accelerate_states"


def get_dataloader():
    features = torch.randn(64, 12)
    return DataLoader(TensorDataset(features, features.norm(dim=1)), shuffle=True, batch_size=8)


def newest_state():
    names = [name for name in os.listdir(ROOT) if name.startswith("epoch_")] if os.path.isdir(ROOT) else []
    return max(names, key=lambda name: int(name.removeprefix("epoch_")), default=None)


def save(accelerator, epoch):
    scratch = os.path.join(ROOT, "incomplete")
    shutil.rmtree(scratch, ignore_errors=True)
    accelerator.save_state(scratch)
    os.rename(scratch, os.path.join(ROOT, f"epoch_{epoch}"))


def training_function():
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True))
    set_seed(42)
    train_dataloader = get_dataloader()
    model = nn.Sequential(nn.Linear(12, 20), nn.ReLU(), nn.Dropout(0.1), nn.Linear(20, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    lr_scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1.0, end_factor=0.0, total_iters=32)
    model, optimizer, train_dataloader, lr_scheduler = accelerator.prepare(
        model, optimizer, train_dataloader, lr_scheduler
    )
    starting_epoch = 0
    if (name := newest_state()) is not None:
        accelerator.load_state(os.path.join(ROOT, name))
        starting_epoch = int(name.removeprefix("epoch_")) + 1

    for epoch in range(starting_epoch, NUM_EPOCHS):
        model.train()
        train_dataloader.set_epoch(epoch)
        for features, norms in train_dataloader:
            loss = nn.functional.mse_loss(model(features).squeeze(-1), norms)
            accelerator.backward(loss)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
        save(accelerator, epoch)

    accelerator.wait_for_everyone()
    torch.save(accelerator.unwrap_model(model).state_dict(), "accelerate_model.pt")


if __name__ == "__main__":
    training_function()
