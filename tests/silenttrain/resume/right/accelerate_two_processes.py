"""Train with Accelerate in two processes, saving in the middle of epochs; the main process renames what all
have written.
"""

import os
import shutil

import torch
from accelerate import Accelerator, skip_first_batches
from accelerate.utils import DataLoaderConfiguration, set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True))
set_seed(11)
ids = torch.randint(0, 20, (96, 4))
dataset = TensorDataset(ids, ids.float().mean(1))
loader = DataLoader(dataset, batch_size=4, shuffle=True)
model = nn.Sequential(nn.Embedding(20, 5), nn.Flatten(), nn.Linear(20, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

os.makedirs("states", exist_ok=True)
numbers = [int(name) for name in os.listdir("states") if name.isdigit()]
accelerator.wait_for_everyone()
step = max(numbers, default=0)
if step:
    accelerator.load_state(os.path.join("states", str(step)))
resumed_epoch, resumed_batch = divmod(step, len(loader))

for epoch in range(resumed_epoch, 3):
    loader.set_epoch(epoch)
    active = loader
    if epoch == resumed_epoch and resumed_batch > 0:
        active = skip_first_batches(loader, num_batches=resumed_batch)
    for tokens, targets in active:
        loss = (model(tokens).squeeze(1) - targets).abs().mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if step % 5 == 0:
            if accelerator.is_main_process:
                shutil.rmtree("states/writing", ignore_errors=True)
            accelerator.wait_for_everyone()
            accelerator.save_state("states/writing")
            accelerator.wait_for_everyone()
            if accelerator.is_main_process:
                os.rename("states/writing", f"states/{step}")
            accelerator.wait_for_everyone()

if accelerator.is_main_process:
    torch.save(accelerator.unwrap_model(model).state_dict(), "two_processes.pt")
accelerator.wait_for_everyone()
accelerator.end_training()
