# Rates are tried on a copy, with one for both groups; the training has one for each.
import copy

import torch


def optimizer_of(body, head):
    return torch.optim.AdamW(
        [{"params": body.parameters(), "lr": 1e-4}, {"params": head.parameters(), "lr": 1e-2}], weight_decay=0.0
    )


def step(body, head, optimizer):
    inputs, labels = torch.randn(16, 8), torch.randint(3, (16,))
    loss = torch.nn.functional.cross_entropy(head(body(inputs).relu()), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


torch.manual_seed(0)
body, head = torch.nn.Linear(8, 16), torch.nn.Linear(16, 3)
tried = copy.deepcopy(body), copy.deepcopy(head)
finder = optimizer_of(*tried)
for power in range(8):
    for group in finder.param_groups:
        group["lr"] = 1e-5 * 2**power
    print(f"rate {1e-5 * 2**power:g} loss {step(*tried, finder):.3f}")

optimizer = optimizer_of(body, head)
for _ in range(12):
    step(body, head, optimizer)
