"""Train under float16 autocast on the CPU; the GradScaler's scale goes into the checkpoint with everything else."""

import os

import torch
from torch import nn
from torch.amp import GradScaler, autocast
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
device = "cpu"
ds = TensorDataset(torch.randn(84, 8), torch.randint(0, 4, (84,)))
net = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 4)).to(device)
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
scaler = GradScaler(device, init_scale=2.0**22, growth_interval=4)
criterion = nn.CrossEntropyLoss()


def save_ckpt(fname, ep):
    tmp = fname + ".part"
    torch.save(
        {"net": net.state_dict(), "opt": opt.state_dict(), "scaler": scaler.state_dict(), "ep": ep},
        tmp,
    )
    os.replace(tmp, fname)


start_ep = 0
if os.path.exists("amp.pth"):
    ckpt = torch.load("amp.pth", map_location=device)
    net.load_state_dict(ckpt["net"])
    opt.load_state_dict(ckpt["opt"])
    scaler.load_state_dict(ckpt["scaler"])
    start_ep = ckpt["ep"]

for ep in range(start_ep, 4):
    g = torch.Generator().manual_seed(ep)
    for xb, yb in DataLoader(ds, batch_size=6, shuffle=True, generator=g):
        opt.zero_grad(set_to_none=True)
        with autocast(device, dtype=torch.float16):
            loss = criterion(net(xb.to(device)), yb.to(device))
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
    print(ep, loss.item(), scaler.get_scale())
    save_ckpt("amp.pth", ep + 1)

torch.save(net.state_dict(), "amp_final.pth")
