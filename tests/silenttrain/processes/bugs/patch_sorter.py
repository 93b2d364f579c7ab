import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Patches(Dataset):
    """8x8 patches holding a horizontal, vertical or diagonal stripe."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(3, (n,), generator=g)
        self.x = 0.8 * torch.randn(n, 1, 8, 8, generator=g)
        pos = torch.randint(1, 7, (n,), generator=g)
        for i in range(n):
            if self.y[i] == 0:
                self.x[i, 0, pos[i]] += 1
            elif self.y[i] == 1:
                self.x[i, 0, :, pos[i]] += 1
            else:
                self.x[i, 0] += torch.eye(8).roll(int(pos[i]), 1)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


@torch.no_grad()
def accuracy(model, ds):
    model.eval()
    hits = (model(ds.x).argmax(1) == ds.y).float().mean().item()
    model.train()
    return hits


dist.init_process_group("gloo")
torch.manual_seed(7)
net = nn.Sequential(nn.Conv2d(1, 12, 3), nn.ReLU(), nn.Conv2d(12, 12, 3), nn.ReLU(), nn.Flatten(), nn.Linear(192, 3))
model = DistributedDataParallel(net)
opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
train, test = Patches(640, 1), Patches(400, 2)
sampler = DistributedSampler(train, shuffle=True)
loader = DataLoader(train, batch_size=32, sampler=sampler, drop_last=True)

for epoch in range(8):
    losses = []
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.detach())
    m = torch.stack(losses).mean()
    dist.all_reduce(m)
    if dist.get_rank() == 0:
        print(
            f"epoch {epoch + 1}/8 loss {m.item() / dist.get_world_size():.4f} acc {accuracy(net, test):.3f}", flush=True
        )
dist.destroy_process_group()
