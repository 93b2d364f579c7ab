import torch
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(320, 6)
labels = (inputs[:, 0] > 0).long()
train_loader = DataLoader(TensorDataset(inputs[:240], labels[:240]), batch_size=16, shuffle=True)
val_loader = DataLoader(TensorDataset(inputs[240:], labels[240:]), batch_size=40)
net = torch.nn.Linear(6, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
scheduler = ReduceLROnPlateau(optimizer, patience=1)  # found

for _ in range(6):
    net.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        cross_entropy(net(x), y).backward()
        optimizer.step()
    net.eval()
    correct = 0
    with torch.no_grad():
        for x, y in val_loader:
            correct += (net(x).argmax(dim=1) == y).sum().item()
    scheduler.step(correct / 80)
