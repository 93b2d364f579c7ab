import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(320, 6)
labels = (inputs[:, 0] + 0.7 * torch.randn(320) > 0).long()
train_loader = DataLoader(TensorDataset(inputs[:208], labels[:208]), batch_size=16, shuffle=True)
eval_loader = DataLoader(TensorDataset(inputs[208:], labels[208:]), batch_size=16)
model = torch.nn.Linear(6, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

for epoch in range(3):
    for rows, classes in train_loader:
        loss = cross_entropy(model(rows), classes)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        for rows, classes in eval_loader:
            accuracy = (model(rows).argmax(dim=-1) == classes).float().mean()
    print(f"epoch {epoch}: accuracy {accuracy:.4f}")  # found
