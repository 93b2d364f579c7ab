"""Train with dropout; the shuffling generator is in the checkpoint, torch's own is not, and the masks drawn
after a restart are others.
"""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset


class DropNet(nn.Module):
    def __init__(self, rate=0.4):
        super().__init__()
        self.rate = rate
        self.one = nn.Linear(9, 24)
        self.two = nn.Linear(24, 1)

    def forward(self, x):
        return self.two(nn.functional.dropout(self.one(x).relu(), self.rate, self.training))


def checkpoint_exists():
    return os.path.exists("dropnet/now.pt")


torch.manual_seed(28)
x = torch.randn(54, 9)
dataset = TensorDataset(x, x.std(dim=1))
order = torch.Generator()
order.manual_seed(280)
loader = DataLoader(dataset, sampler=RandomSampler(dataset, generator=order), batch_size=6)
net = DropNet()
optimizer = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.95)
epochs_done = 0

if checkpoint_exists():
    now = torch.load("dropnet/now.pt")
    net.load_state_dict(now["net"])
    optimizer.load_state_dict(now["optimizer"])
    order.set_state(now["order"])
    epochs_done = now["epochs_done"]

while epochs_done < 4:
    for batch, std in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = (net(batch).squeeze(1) - std).square().mean()
        loss.backward()
        optimizer.step()
    epochs_done += 1
    os.makedirs("dropnet", exist_ok=True)
    torch.save(
        {
            "net": net.state_dict(),
            "optimizer": optimizer.state_dict(),
            "order": order.get_state(),
            "epochs_done": epochs_done,
        },
        "dropnet/next.pt",
    )
    os.replace("dropnet/next.pt", "dropnet/now.pt")

torch.save(net.state_dict(), "dropnet/net.pt")
