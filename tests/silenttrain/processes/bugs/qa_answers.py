import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

VOCAB, IGNORE = 40, -100


class QA(Dataset):
    """A question of four tokens; the answer is one word for most rows, a long passage for some."""

    def __init__(self, n=800):
        g = torch.Generator().manual_seed(19)
        self.rows = []
        for _ in range(n):
            q = torch.randint(3, VOCAB, (4,), generator=g).tolist()
            if torch.rand((), generator=g) < 0.75:
                ans = [(q[0] + q[1]) % (VOCAB - 3) + 3, 2]
            else:
                ans = [(q[2] + q[3] * (i + 1)) % (VOCAB - 3) + 3 for i in range(40)] + [2]
            self.rows.append((q, ans))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    n = max(len(q) + len(a) for q, a in rows)
    ids = torch.zeros(len(rows), n, dtype=torch.long)
    lab = torch.full((len(rows), n), IGNORE)
    for i, (q, a) in enumerate(rows):
        ids[i, : len(q) + len(a)] = torch.tensor(q + a)
        lab[i, len(q) : len(q) + len(a)] = torch.tensor(a)
    return ids, lab


class TinyLM(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, d), nn.Embedding(64, d)
        layer = nn.TransformerEncoderLayer(d, 4, 96, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(d, VOCAB)

    def forward(self, ids):
        n = ids.shape[1]
        mask = torch.triu(torch.full((n, n), float("-inf")), 1)
        h = self.tok(ids) + self.pos(torch.arange(n))
        return self.out(self.blocks(h, mask=mask))


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(TinyLM())
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    ds = QA()
    sampler = DistributedSampler(ds)
    loader = DataLoader(ds, batch_size=4, sampler=sampler, collate_fn=collate)
    for epoch in range(1):
        sampler.set_epoch(epoch)
        log = torch.zeros(2)
        for step, (ids, lab) in enumerate(loader, 1):
            logits = model(ids[:, :-1]).flatten(0, 1)
            target = lab[:, 1:].flatten()
            nll = F.cross_entropy(logits, target, ignore_index=IGNORE, reduction="sum")
            taught = (target != IGNORE).sum()
            loss = nll / taught
            opt.zero_grad()
            loss.backward()
            opt.step()
            log += torch.tensor([nll.item(), taught.item()])
            if step % 20 == 0:
                dist.all_reduce(log)
                if rank == 0:
                    print(f"step {step} loss/token {log[0] / log[1]:.4f}", flush=True)
                log.zero_()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
