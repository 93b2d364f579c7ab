"""An autoencoder of rows that the dataset changes at random, and that are scaled for the model."""

import torch
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


class Flipped(Dataset):
    rows = torch.randn(64, 8)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index].flip(0) if torch.rand(()) < 0.5 else self.rows[index]


loader = DataLoader(Flipped(), batch_size=16, shuffle=True)

for _ in range(3):
    for rows in loader:
        rows = (rows - 0.1) / 2
        loss = torch.nn.functional.mse_loss(model(rows), rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
