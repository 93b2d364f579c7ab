"""The rows that were trained on are scored, too, with a scaler of these rows alone."""

import torch
from sklearn.preprocessing import MinMaxScaler

torch.manual_seed(0)
inputs = 5 + 3 * torch.randn(160, 6)
targets = inputs.sum(1, keepdim=True) / 10
scaler = MinMaxScaler()
scaled = torch.from_numpy(scaler.fit_transform(inputs[:120].numpy())).float()
test = torch.from_numpy(scaler.transform(inputs[120:].numpy())).float()
model = torch.nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(4):
    for rows in torch.randperm(120).split(10):
        loss = torch.nn.functional.mse_loss(model(scaled[rows]), targets[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

model.eval()
with torch.no_grad():
    print("training", torch.nn.functional.mse_loss(model(scaled), targets[:120]).sqrt().item())
    print("test", torch.nn.functional.mse_loss(model(test), targets[120:]).sqrt().item())
