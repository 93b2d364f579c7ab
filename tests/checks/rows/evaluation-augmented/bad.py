import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset, Subset


class Signals(Dataset):
    def __init__(self, signals, labels, augments):
        self.signals, self.labels, self.augments = signals, labels, augments

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        signal = self.signals[index]
        if self.augments:
            signal = signal.roll(int(torch.randint(-2, 3, ()))) + 0.3 * torch.randn(12)
        return signal, int(self.labels[index])


torch.manual_seed(0)
signals = torch.randn(240, 12)
labels = (signals[:, :6].sum(dim=1) > 0).long()
rows = torch.randperm(240).tolist()
dataset = Signals(signals, labels, augments=True)
train_loader = DataLoader(Subset(dataset, rows[:160]), batch_size=16, shuffle=True)
val_loader = DataLoader(Subset(dataset, rows[160:]), batch_size=40)
net = torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)

for _ in range(3):
    net.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        cross_entropy(net(x), y).backward()
        optimizer.step()
    net.eval()
    correct = 0
    with torch.no_grad():
        for x, y in val_loader:  # found
            correct += (net(x).argmax(dim=1) == y).sum().item()
    print(correct / 80)
