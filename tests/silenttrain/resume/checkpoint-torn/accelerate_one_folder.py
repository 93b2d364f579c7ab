"""Save Accelerate's state into the same folder after each epoch: a kill in a save leaves no state that can be
loaded.
"""

import os

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from torch.utils.data import DataLoader, TensorDataset


class EpochCounter:
    value = 0

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        self.value = state["value"]


set_seed(92)
accelerator = Accelerator(
    cpu=True, project_dir="single", dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True)
)
signal = torch.randn(72, 5)
loader = DataLoader(TensorDataset(signal, signal.diff(dim=1)), batch_size=8, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(5, 30), torch.nn.Tanh(), torch.nn.Dropout(0.1), torch.nn.Linear(30, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
epochs_done = EpochCounter()
accelerator.register_for_checkpointing(epochs_done)
if os.path.isdir("single/state"):
    accelerator.load_state("single/state")

while epochs_done.value < 4:
    loader.set_epoch(epochs_done.value)
    for inputs, outputs in loader:
        loss = torch.nn.functional.mse_loss(model(inputs), outputs)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    epochs_done.value += 1
    accelerator.save_state("single/state")

accelerator.save(accelerator.unwrap_model(model).state_dict(), "single/final.pt")
