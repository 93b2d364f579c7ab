# A loss is in no units.
import torch
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
floor = torch.randn(160, 3)
price = 300 + 80 * floor[:, :1] + 10 * torch.randn(160, 1)
scaler = StandardScaler().fit(price[:128].numpy())
scaled = torch.tensor(scaler.transform(price.numpy()), dtype=torch.float32)
model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    model.train()
    for row, target in DataLoader(TensorDataset(floor[:128], scaled[:128]), batch_size=16, shuffle=True):
        loss = nn.functional.mse_loss(model(row), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    predicted, true = [], []
    with torch.no_grad():
        for row, target in DataLoader(TensorDataset(floor[128:], scaled[128:]), batch_size=16):
            predicted.append(model(row))
            true.append(target)
    error = (torch.cat(predicted) - torch.cat(true)).square().mean()
    print(f"epoch {epoch} loss {error:.4f}")
