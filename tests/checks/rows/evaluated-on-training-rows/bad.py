import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
data = TensorDataset(torch.randn(100, 5), torch.randint(2, (100,)))
train_rows, _ = random_split(data, [80, 20])
_, validation_rows = random_split(data, [80, 20])

model = torch.nn.Sequential(torch.nn.Linear(5, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(3):
    model.train()
    for inputs, labels in DataLoader(train_rows, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        validation = DataLoader(validation_rows, batch_size=16)
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in validation)  # found
    print(right / len(validation_rows))
