"""Keep checkpoints as folders of a safetensors file and JSON, renamed into place when complete; the newest two
are kept.
"""

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn

OUT = Path("outputs")
TOTAL, EVERY, BATCH = 45, 8, 5


def model_and_optimizer():
    torch.manual_seed(99)
    model = nn.ModuleDict({"encoder": nn.Linear(6, 9), "decoder": nn.Linear(9, 2)})
    return model, torch.optim.Adagrad(model.parameters(), lr=0.05)


def checkpoints():
    return sorted(OUT.glob("step-*"), key=lambda folder: int(folder.name.split("-")[1]))


def save(model, optimizer, step):
    partial = OUT / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    for index, slots in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{slot}": value for slot, value in slots.items()}
    save_file(tensors, str(partial / "tensors.safetensors"))
    (partial / "progress.json").write_text(json.dumps({"step": step}))
    partial.rename(OUT / f"step-{step}")
    for old in checkpoints()[:-2]:
        shutil.rmtree(old)


def load(model, optimizer):
    if not checkpoints():
        return 0
    folder = checkpoints()[-1]
    tensors = load_file(folder / "tensors.safetensors")
    model.load_state_dict({name[6:]: value for name, value in tensors.items() if name.startswith("model.")})
    slots: dict = {}
    for name, value in tensors.items():
        if name.startswith("optimizer."):
            _, index, slot = name.split(".")
            slots.setdefault(int(index), {})[slot] = value
    optimizer.load_state_dict({"state": slots, "param_groups": optimizer.state_dict()["param_groups"]})
    return json.loads((folder / "progress.json").read_text())["step"]


def batch_of(step, x, y):
    epoch, index = divmod(step, len(x) // BATCH)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
    rows = order[index * BATCH : index * BATCH + BATCH]
    return x[rows], y[rows]


model, optimizer = model_and_optimizer()
x = torch.randn(75, 6)
y = x[:, :2].abs()
for step in range(load(model, optimizer), TOTAL):
    inputs, wanted = batch_of(step, x, y)
    prediction = model["decoder"](model["encoder"](inputs).relu())
    loss = (prediction - wanted).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (step + 1) % EVERY == 0:
        save(model, optimizer, step + 1)

save_file(model.state_dict(), "final.safetensors")
