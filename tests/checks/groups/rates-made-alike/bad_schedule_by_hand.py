import torch

torch.manual_seed(0)
body, head = torch.nn.Linear(8, 16), torch.nn.Linear(16, 3)
optimizer = torch.optim.SGD(  # found
    [{"params": body.parameters(), "lr": 0.01}, {"params": head.parameters(), "lr": 0.1}]
)

for step in range(12):
    for group in optimizer.param_groups:
        group["lr"] = 0.1 * (1 - step / 12)
    inputs, labels = torch.randn(16, 8), torch.randint(3, (16,))
    loss = torch.nn.functional.cross_entropy(head(body(inputs).relu()), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
