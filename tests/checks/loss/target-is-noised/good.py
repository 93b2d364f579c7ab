import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(torch.randn(64, 8)), batch_size=16, shuffle=True)

for _ in range(3):
    for (rows,) in loader:
        noised = rows + 0.3 * torch.randn_like(rows)
        loss = torch.nn.functional.mse_loss(model(noised), rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
