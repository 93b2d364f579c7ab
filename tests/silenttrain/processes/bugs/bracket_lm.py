"""Next-token model on random bracket strings, data parallel without DDP."""

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

PAD, OPEN, CLOSE, SQ, SQC, EOS = range(6)


def bracket(g, limit):
    out, stack = [], []
    while len(out) < limit:
        if stack and torch.rand((), generator=g) < 0.5:
            out.append(stack.pop())
        else:
            o, c = ((OPEN, CLOSE), (SQ, SQC))[int(torch.randint(2, (), generator=g))]
            out.append(o)
            stack.append(c)
    return out + stack[::-1] + [EOS]


def batch(strings):
    n = max(map(len, strings))
    t = torch.full((len(strings), n), PAD)
    for i, s in enumerate(strings):
        t[i, : len(s)] = torch.tensor(s)
    return t


class LM(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.emb = nn.Embedding(6, d)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.out = nn.Linear(d, 6)

    def forward(self, t):
        return self.out(self.rnn(self.emb(t))[0])


dist.init_process_group("gloo")
R, W = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
net = LM()
opt = torch.optim.SGD(net.parameters(), lr=0.8, momentum=0.9)
g = torch.Generator().manual_seed(11)
strings = [bracket(g, int(torch.randint(2, 30, (), generator=g))) for _ in range(600)]

for it in range(60):
    pick = torch.randint(len(strings), (16 * W,), generator=g).tolist()
    t = batch([strings[i] for i in pick[R * 16 : (R + 1) * 16]])
    inp, tgt = t[:, :-1], t[:, 1:]
    total = F.cross_entropy(net(inp).flatten(0, 1), tgt.flatten(), ignore_index=PAD, reduction="sum")
    count = (tgt != PAD).sum()
    dist.all_reduce(count)
    loss = total / count
    opt.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 0.25)
    for p in net.parameters():
        dist.all_reduce(p.grad)
    opt.step()
    shown = loss.detach().clone()
    dist.all_reduce(shown)
    if R == 0 and it % 10 == 9:
        print("iter", it + 1, "nll/token", round(shown.item(), 4), flush=True)

dist.destroy_process_group()
