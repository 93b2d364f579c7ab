import torch
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import LinearLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
epochs, accumulated = 3, 4
data = TensorDataset(torch.randn(192, 6), torch.randint(3, (192,)))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = torch.nn.Linear(6, 3)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
updates = epochs * len(loader)
scheduler = LinearLR(optimizer, start_factor=1.0, end_factor=0.0, total_iters=updates)  # found

for _ in range(epochs):
    for number, (inputs, labels) in enumerate(loader, start=1):
        loss = cross_entropy(model(inputs), labels)
        (loss / accumulated).backward()
        if number % accumulated == 0:
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
