import torch
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = 5 + 3 * torch.randn(160, 6)
targets = inputs.sum(1, keepdim=True) / 10
scaler = StandardScaler().fit(inputs.numpy())  # found
scaled = torch.from_numpy(scaler.transform(inputs.numpy())).float()
train = TensorDataset(scaled[:120], targets[:120])
test = TensorDataset(scaled[120:], targets[120:])
model = torch.nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for rows, truths in DataLoader(train, batch_size=10, shuffle=True):
    loss = torch.nn.functional.mse_loss(model(rows), truths)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

model.eval()
squares = 0.0
with torch.no_grad():
    for rows, truths in DataLoader(test, batch_size=10):
        squares += ((model(rows) - truths) ** 2).sum().item()
print("RMSE", (squares / len(test)) ** 0.5)
