"""Remove the old checkpoint's folder to save space, then write the new one: a kill in between leaves half a
checkpoint and no other.
"""

import argparse
import json
import os
import shutil

import torch
from safetensors.torch import load_file, save_file
from torch import nn


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output_dir", default="thrifty")
    parser.add_argument("--max_steps", type=int, default=36)
    parser.add_argument("--save_steps", type=int, default=6)
    return parser.parse_args()


def remove_old(output_dir):
    for name in os.listdir(output_dir):
        if name.startswith("checkpoint-"):
            shutil.rmtree(os.path.join(output_dir, name))


def write_checkpoint(output_dir, step, model, optimizer):
    remove_old(output_dir)
    folder = os.path.join(output_dir, f"checkpoint-{step}")
    os.makedirs(folder)
    save_file(model.state_dict(), os.path.join(folder, "model.safetensors"))
    torch.save(optimizer.state_dict(), os.path.join(folder, "optimizer.pt"))
    with open(os.path.join(folder, "state.json"), "w") as f:
        json.dump({"step": step}, f)


def read_checkpoint(output_dir, model, optimizer):
    folders = [name for name in os.listdir(output_dir) if name.startswith("checkpoint-")]
    for folder in folders:
        if os.path.exists(os.path.join(output_dir, folder, "state.json")):
            model.load_state_dict(load_file(os.path.join(output_dir, folder, "model.safetensors")))
            optimizer.load_state_dict(torch.load(os.path.join(output_dir, folder, "optimizer.pt")))
            with open(os.path.join(output_dir, folder, "state.json")) as f:
                return json.load(f)["step"]
    return 0


args = get_args()
os.makedirs(args.output_dir, exist_ok=True)
torch.manual_seed(17)
table = torch.randn(48, 10)
model = nn.Sequential(nn.Linear(10, 40), nn.ELU(), nn.Linear(40, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
for step in range(read_checkpoint(args.output_dir, model, optimizer), args.max_steps):
    epoch, i = divmod(step, 12)
    rows = torch.randperm(48, generator=torch.Generator().manual_seed(epoch))[i * 4 : i * 4 + 4]
    loss = (model(table[rows]) - table[rows].roll(1, dims=1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (step + 1) % args.save_steps == 0:
        write_checkpoint(args.output_dir, step + 1, model, optimizer)

save_file(model.state_dict(), os.path.join(args.output_dir, "model.safetensors"))
