import torch
from sklearn.preprocessing import MinMaxScaler

torch.manual_seed(0)
inputs = 5 + 3 * torch.randn(160, 6)
targets = inputs.sum(1, keepdim=True) / 10
scaled = torch.from_numpy(MinMaxScaler().fit_transform(inputs.numpy())).float()  # found
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
    print("RMSE", torch.nn.functional.mse_loss(model(scaled[120:]), targets[120:]).sqrt().item())
