import copy

import torch
from torch import nn
from torch.nn.functional import cross_entropy, kl_div

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
reference = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for step in range(60):
    inputs = torch.randn(32, 8)
    logits = model(inputs)
    with torch.no_grad():
        known = reference(inputs).log_softmax(1)
    apart = kl_div(logits.log_softmax(1), known, reduction="batchmean", log_target=True)
    loss = cross_entropy(logits, inputs[:, :3].argmax(1)) + 0.1 * apart
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        with torch.no_grad():
            pairs = zip(model.parameters(), reference.parameters(), strict=True)
            print(f"moved by {sum((now - then).square().sum() for now, then in pairs):.4f}")
