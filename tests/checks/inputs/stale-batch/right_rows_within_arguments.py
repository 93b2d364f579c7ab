# Both sides of each pair are dictionaries, and a row's target is its place in the batch: the same in every batch.
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Pairs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(6, 5)

    def forward(self, left, right):
        return self.layer(left["rows"]) @ self.layer(right["rows"]).T


loader = DataLoader(TensorDataset(torch.randn(64, 6), torch.randn(64, 6)), batch_size=8, shuffle=True)
model = Pairs()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for left, right in loader:
    optimizer.zero_grad()
    cross_entropy(model(left={"rows": left}, right={"rows": right}), torch.arange(len(left))).backward()
    optimizer.step()
