import torch
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
readings = torch.randn(400, 5)


class Readings(Dataset):
    def __init__(self, rows, stride):
        self.rows, self.stride = rows, stride

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index // self.stride]
        return row, row.norm(dim=0, keepdim=True)


model = torch.nn.Sequential(torch.nn.Linear(5, 20), torch.nn.Tanh(), torch.nn.Linear(20, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(2):
    for inputs, wanted in DataLoader(Readings(readings, stride=4), batch_size=20, shuffle=True):  # found
        optimizer.zero_grad()
        mse_loss(model(inputs), wanted).backward()
        optimizer.step()
