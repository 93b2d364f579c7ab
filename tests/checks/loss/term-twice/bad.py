import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize

torch.manual_seed(0)
pictures, captions = torch.randn(320, 12), torch.randn(320, 8)
captions[:, :4] = pictures[:, :4]
one, other = nn.Linear(12, 16), nn.Linear(8, 16)
optimizer = torch.optim.Adam([*one.parameters(), *other.parameters()], lr=1e-2)

for _ in range(3):
    for rows in torch.randperm(320).split(32):
        scores = 8 * normalize(one(pictures[rows])) @ normalize(other(captions[rows])).t()
        pairs = torch.arange(len(rows))
        forth = cross_entropy(scores, pairs)
        back = cross_entropy(scores, pairs)  # found
        optimizer.zero_grad()
        ((forth + back) / 2).backward()
        optimizer.step()
