import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
scaler = torch.amp.GradScaler("cpu")

for batch in range(16):
    inputs, labels = torch.randn(16, 6), torch.randint(2, (16,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = cross_entropy(model(inputs), labels)
    (scaler.scale(loss) / 2).backward()
    if batch % 2:
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
