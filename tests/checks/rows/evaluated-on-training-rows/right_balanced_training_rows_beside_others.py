import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Subset, TensorDataset, WeightedRandomSampler, random_split

torch.manual_seed(0)
train_rows, test_rows = random_split(TensorDataset(torch.randn(200, 5), torch.randint(2, (200,))), [160, 40])
train = DataLoader(train_rows, batch_size=16, sampler=WeightedRandomSampler(torch.rand(160).tolist(), 160))
model = torch.nn.Sequential(torch.nn.Linear(5, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(3):
    model.train()
    for inputs, labels in train:
        optimizer.zero_grad()
        cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    model.eval()
    for rows in (train_rows, Subset(train_rows, range(60)), test_rows):
        with torch.no_grad():
            right = sum((model(x).argmax(1) == y).sum().item() for x, y in DataLoader(rows, batch_size=16))
        print(right / len(rows))
