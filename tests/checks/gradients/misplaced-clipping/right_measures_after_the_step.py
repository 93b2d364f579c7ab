import torch
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(0)
model = torch.nn.Linear(20, 3)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
norms = []

for _ in range(10):
    inputs, labels = torch.randn(16, 20), torch.randint(3, (16,))
    optimizer.zero_grad()
    cross_entropy(model(inputs), labels).backward()
    clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    norms.append(clip_grad_norm_(model.parameters(), float("inf")))
