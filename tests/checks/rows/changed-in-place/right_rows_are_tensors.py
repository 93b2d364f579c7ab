import torch
from torch.utils.data import DataLoader

torch.manual_seed(0)
rows = list(torch.rand(64, 8))  # no labels: each row is one tensor
model = torch.nn.Sequential(torch.nn.Linear(8, 3), torch.nn.ReLU(), torch.nn.Linear(3, 8))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _epoch in range(3):
    for batch in DataLoader(rows, batch_size=16, shuffle=True):
        loss = torch.nn.functional.mse_loss(model(batch), batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
