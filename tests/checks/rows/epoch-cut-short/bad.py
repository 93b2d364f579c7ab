import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
images, digits = torch.rand(200, 1, 8, 8), torch.randint(10, (200,))
loader = DataLoader(TensorDataset(images, digits), batch_size=10, shuffle=True)
model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 10))
criterion = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(4):
    total = 0.0
    for number, (batch, labels) in enumerate(loader):  # found
        if number == 5:
            break
        loss = criterion(model(batch), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: {total:.3f}")
