"""Load a state that Accelerate saved in the middle of an epoch and go on without skip_first_batches: the epoch
begins again.
"""

import json
import os
import shutil

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed

CONFIG = {"seed": 36, "lr": 0.05, "epochs": 3, "batch": 6, "every": 8, "dir": "ckpt"}


class State:
    def __init__(self):
        self.epoch, self.step = 0, 0

    def state_dict(self):
        return {"epoch": self.epoch, "step": self.step}

    def load_state_dict(self, values):
        self.epoch, self.step = values["epoch"], values["step"]


def read_pointer():
    try:
        with open(os.path.join(CONFIG["dir"], "pointer.json")) as file:
            return json.load(file)["folder"]
    except FileNotFoundError:
        return None


def write_pointer(folder):
    pointer = os.path.join(CONFIG["dir"], "pointer.json")
    with open(pointer + "~", "w") as file:
        json.dump({"folder": folder}, file)
    os.replace(pointer + "~", pointer)


set_seed(CONFIG["seed"])
accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True))
x = torch.randn(78, 4)
dataset = torch.utils.data.TensorDataset(x, x.prod(1, keepdim=True).tanh())
loader = torch.utils.data.DataLoader(dataset, CONFIG["batch"], shuffle=True)
net = torch.nn.Sequential(torch.nn.Linear(4, 12), torch.nn.ReLU(), torch.nn.Linear(12, 1))
net, optimizer, loader = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=CONFIG["lr"]), loader)
state = State()
accelerator.register_for_checkpointing(state)
if folder := read_pointer():
    accelerator.load_state(folder)
while state.epoch < CONFIG["epochs"]:
    loader.set_epoch(state.epoch)
    for inputs, outputs in loader:
        accelerator.backward(torch.nn.functional.mse_loss(net(inputs), outputs))
        optimizer.step()
        optimizer.zero_grad()
        state.step += 1
        if state.step % CONFIG["every"] == 0:
            folder = os.path.join(CONFIG["dir"], f"step{state.step}")
            shutil.rmtree(folder, ignore_errors=True)
            accelerator.save_state(folder)
            write_pointer(folder)
    state.epoch += 1
torch.save(accelerator.unwrap_model(net).state_dict(), "net.pt")
