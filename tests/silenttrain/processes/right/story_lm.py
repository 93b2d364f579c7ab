import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


def stories(n, seed):
    g = torch.Generator().manual_seed(seed)
    trans = torch.randint(1, 50, (50, 3), generator=g)
    out = []
    for _ in range(n):
        length = int(2 + torch.rand((), generator=g) ** 3 * 60)
        s = [int(torch.randint(1, 50, (), generator=g))]
        for _ in range(length):
            s.append(int(trans[s[-1], int(torch.randint(3, (), generator=g))]))
        out.append(torch.tensor(s))
    return out


class StoryLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 40, padding_idx=0)
        self.lstm = nn.LSTM(40, 64, batch_first=True)
        self.out = nn.Linear(64, 50)

    def forward(self, x):
        return self.out(self.lstm(self.emb(x))[0])


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(6)
model = DDP(StoryLM())
opt = torch.optim.Adam(model.parameters(), lr=8e-3)
data = stories(900, 4)[rank::world]
g = torch.Generator().manual_seed(rank)
for step in range(1, 61):
    rows = torch.randint(len(data), (6,), generator=g).tolist()
    t = nn.utils.rnn.pad_sequence([data[i] for i in rows], batch_first=True)
    nll = F.cross_entropy(model(t[:, :-1]).flatten(0, 1), t[:, 1:].flatten(), ignore_index=0, reduction="sum")
    count = (t[:, 1:] != 0).sum()
    dist.all_reduce(count)
    loss = nll * world / count
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 15 == 0:
        total = nll.detach().clone()
        dist.all_reduce(total)
        if rank == 0:
            print(f"step {step}: {total.item() / count.item():.4f} nats per token", flush=True)
dist.destroy_process_group()
