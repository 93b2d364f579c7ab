import torch
from torch import nn

torch.manual_seed(0)
measured = torch.randn(400, 6) * 2 + torch.tensor([5.0, -4.0, 6.0, 3.0, -5.0, 4.0])
labels = (measured[:, 0] > measured[:, 2] - 1).long()
train, test = measured[:320], measured[320:]
scaled = (train - train.mean(0)) / train.std(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(2):
    for rows in torch.randperm(320).split(32):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(scaled[rows]), labels[rows]).backward()
        optimizer.step()

model.eval()
with torch.no_grad():
    correct = (model(test).argmax(1) == labels[320:]).float().mean()  # found
print(f"accuracy {correct:.3f}")
