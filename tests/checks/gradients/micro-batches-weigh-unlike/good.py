import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
PAD, STEPS = 0, 4
rows = torch.randint(1, 20, (128, 12))
lengths = torch.randint(2, 13, (128, 1))
rows[torch.arange(12) >= lengths] = PAD
model = nn.Sequential(nn.Embedding(20, 16), nn.Linear(16, 20))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

for epoch in range(2):
    for window in torch.randperm(128).split(4 * STEPS):
        targets = (rows[window, 1:] != PAD).sum()
        for picked in window.split(4):
            ids = rows[picked]
            logits = model(ids[:, :-1])
            loss = cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=PAD, reduction="sum")
            (loss / targets).backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"epoch {epoch}: {loss.item():.3f}")
