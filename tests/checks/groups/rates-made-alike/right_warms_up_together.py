"""Both groups begin at a rate of 0, and the lower one joins the higher one's floor at the end."""

import torch

torch.manual_seed(0)
body, head = torch.nn.Linear(8, 16), torch.nn.Linear(16, 3)
optimizer = torch.optim.AdamW([{"params": body.parameters(), "lr": 1e-3}, {"params": head.parameters(), "lr": 1e-2}])
peaks = [group["lr"] for group in optimizer.param_groups]

for step in range(12):
    factor = min(step / 4, (12 - step) / 8)
    for group, peak in zip(optimizer.param_groups, peaks, strict=True):
        group["lr"] = max(factor * peak, 1e-4 if step > 10 else 0.0)
    inputs, labels = torch.randn(16, 8), torch.randint(3, (16,))
    loss = torch.nn.functional.cross_entropy(head(body(inputs).relu()), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
