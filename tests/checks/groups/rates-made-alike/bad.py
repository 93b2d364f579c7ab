import torch

torch.manual_seed(0)
body, head = torch.nn.Linear(8, 16), torch.nn.Linear(16, 3)
optimizer = torch.optim.AdamW(  # found
    [{"params": body.parameters(), "lr": 1e-4}, {"params": head.parameters(), "lr": 1e-2}]
)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=12)

for _ in range(12):
    inputs, labels = torch.randn(16, 8), torch.randint(3, (16,))
    loss = torch.nn.functional.cross_entropy(head(body(inputs).relu()), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
