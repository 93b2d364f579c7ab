import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
tokens = torch.randint(20, (128, 12))
tags = (tokens > 9).long() + (tokens > 16).long()
embedding, recurrent, head = nn.Embedding(20, 16), nn.GRU(16, 16), nn.Linear(16, 3)
parameters = [*embedding.parameters(), *recurrent.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-2)

for _ in range(3):
    for rows in torch.randperm(128).split(32):
        states, _ = recurrent(embedding(tokens[rows]).transpose(0, 1))
        logits = head(states)
        loss = cross_entropy(logits.transpose(0, 1).reshape(-1, 3), tags[rows].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
