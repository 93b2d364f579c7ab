import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs, labels = torch.randn(128, 4), torch.arange(128) % 3
source = DataLoader(TensorDataset(inputs, labels), batch_size=16, shuffle=True)
target = DataLoader(torch.randn(128, 4) + 1, batch_size=16, shuffle=True)  # without labels, another domain
body, head, domain = nn.Linear(4, 16), nn.Linear(16, 3), nn.Linear(16, 1)
optimizer = torch.optim.Adam([*body.parameters(), *head.parameters(), *domain.parameters()], lr=1e-2)

for _ in range(4):
    for (known, answers), other in zip(source, target, strict=True):
        features = torch.relu(body(torch.cat([known, other])))
        which = torch.arange(32).div(16, rounding_mode="floor").float().unsqueeze(1)
        loss = cross_entropy(head(features[:16]), answers)
        loss = loss + binary_cross_entropy_with_logits(domain(features), which)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
