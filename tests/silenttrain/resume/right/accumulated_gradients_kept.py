"""Accumulate gradients over 4 micro-batches and save after every 6th, gradients and all, so that a window is
never cut.
"""

import os

import torch
from torch import nn

torch.manual_seed(21)
WINDOW, SAVE_STEPS, MICRO, EPOCHS = 4, 6, 4, 3
features = torch.randn(128, 5)
wanted = torch.sin(features.sum(dim=1, keepdim=True))

net = nn.Sequential(nn.Linear(5, 10), nn.GELU(), nn.Linear(10, 1))
adam = torch.optim.AdamW(net.parameters(), lr=5e-3, weight_decay=0.1)
per_epoch = len(features) // MICRO


def snapshot(micro_step):
    return {
        "net": net.state_dict(),
        "adam": adam.state_dict(),
        "grads": [None if p.grad is None else p.grad.clone() for p in net.parameters()],
        "micro_step": micro_step,
    }


micro_step = 0
if os.path.exists("acc.pt"):
    state = torch.load("acc.pt")
    net.load_state_dict(state["net"])
    adam.load_state_dict(state["adam"])
    for parameter, grad in zip(net.parameters(), state["grads"], strict=True):
        parameter.grad = grad
    micro_step = state["micro_step"]

while micro_step < EPOCHS * per_epoch:
    epoch, index = divmod(micro_step, per_epoch)
    order = torch.randperm(len(features), generator=torch.Generator().manual_seed(epoch))
    rows = order[index * MICRO : (index + 1) * MICRO]
    loss = (net(features[rows]) - wanted[rows]).pow(2).mean() / WINDOW
    loss.backward()
    micro_step += 1
    if micro_step % WINDOW == 0:
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        adam.step()
        adam.zero_grad()
    if micro_step % SAVE_STEPS == 0:
        torch.save(snapshot(micro_step), "acc.pt.tmp")
        os.replace("acc.pt.tmp", "acc.pt")

torch.save(net.state_dict(), "acc_final.pt")
