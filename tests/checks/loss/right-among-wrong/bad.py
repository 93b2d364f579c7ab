import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize

torch.manual_seed(0)
topics = torch.randn(40, 12)
questions, answers = topics + 0.3 * torch.randn(40, 12), topics.roll(1, 1) + 0.3 * torch.randn(40, 12)
asks, replies = nn.Linear(12, 16), nn.Linear(12, 16)
optimizer = torch.optim.AdamW([*asks.parameters(), *replies.parameters()], lr=1e-2)

for _ in range(12):
    picked = torch.randperm(40)[:16]
    wrong = torch.stack([torch.randperm(4) * 10 + torch.randint(10, (4,)) for _ in picked])
    wrong[:, 0] = torch.where(torch.rand(16) < 0.5, picked, wrong[:, 0])
    asked = normalize(asks(questions[picked]), dim=1)
    right = (asked * normalize(replies(answers[picked]), dim=1)).sum(1, keepdim=True)
    others = torch.einsum("bd,bkd->bk", asked, normalize(replies(answers[wrong]), dim=2))
    loss = cross_entropy(torch.cat([right, others], 1) / 0.1, torch.zeros(16, dtype=torch.long))  # found
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
