import torch
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import LinearLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
planned_epochs, epochs = 10, 4
inputs = torch.randn(200, 6)
labels = (inputs.sum(dim=1) > 0).long()
train_loader = DataLoader(TensorDataset(inputs[:160], labels[:160]), batch_size=16, shuffle=True)
eval_loader = DataLoader(TensorDataset(inputs[160:], labels[160:]), batch_size=16)
model = torch.nn.Linear(6, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
steps = planned_epochs * len(train_loader)
scheduler = LinearLR(optimizer, start_factor=1.0, end_factor=0.0, total_iters=steps)  # found

for _ in range(epochs):
    model.train()
    for features, targets in train_loader:
        optimizer.zero_grad()
        cross_entropy(model(features), targets).backward()
        optimizer.step()
        scheduler.step()
    model.eval()
    with torch.no_grad():
        hits = sum((model(features).argmax(1) == targets).sum().item() for features, targets in eval_loader)
    print(f"accuracy {hits / 40:.2f}")
