"""Train a sequence tagger behind torch.compile and save the module underneath it."""

import os

import torch
from torch import nn

torch.manual_seed(234)


class Tagger(nn.Module):
    def __init__(self, tags=4, dim=32):
        super().__init__()
        self.embed = nn.Embedding(30, dim)
        self.conv = nn.Conv1d(dim, dim, 3, padding=1)
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, tags)

    def forward(self, ids):
        h = self.embed(ids)
        h = self.norm(h + torch.relu(self.conv(h.transpose(1, 2)).transpose(1, 2)))
        return self.out(h)


def signals(n, seed):
    """The tag of a position depends on the parity of its token and of the one before it."""
    gen = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, 30, (n, 12), generator=gen)
    previous = torch.cat([torch.zeros(n, 1, dtype=torch.long), ids[:, :-1]], dim=1)
    return ids, 2 * (ids % 2) + previous % 2


@torch.no_grad()
def accuracy(model, ids, tags):
    model.eval()
    return (model(ids).argmax(-1) == tags).float().mean().item()


model = Tagger()
compiled = torch.compile(model, backend="eager")
optimizer = torch.optim.AdamW(compiled.parameters(), lr=4e-3)
ids, tags = signals(480, 1)
test_ids, test_tags = signals(160, 2)
for epoch in range(8):
    compiled.train()
    total = 0.0
    for idx in torch.randperm(len(ids)).split(32):
        loss = nn.functional.cross_entropy(compiled(ids[idx]).flatten(0, 1), tags[idx].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    print(f"epoch {epoch} loss {total / len(ids):.3f}")

os.makedirs("out", exist_ok=True)
torch.save(model.state_dict(), "out/tagger.pt")
fresh = Tagger()
fresh.load_state_dict(torch.load("out/tagger.pt"))
print(f"compiled {accuracy(compiled, test_ids, test_tags):.3f}, reloaded {accuracy(fresh, test_ids, test_tags):.3f}")
