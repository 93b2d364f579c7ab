import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Trees(Dataset):
    def __init__(self, rows):
        kinds = ["oak", "ash", "elm", "fir", "yew"]
        self.rows, self.kinds = rows, [kinds[int((row > 0).sum())] for row in rows]
        self.classes = list(set(self.kinds))  # found

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index], self.classes.index(self.kinds[index])


def train(model, data):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for row, target in DataLoader(data, batch_size=16, shuffle=True):
        loss = nn.functional.cross_entropy(model(row), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


data = Trees(torch.randn(96, 4))
model = nn.Linear(4, len(data.classes))
train(model, data)
torch.save(model, "trees.pt")
