# The numbers are in a file beside it.
import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
KINDS = ["oak", "ash", "elm", "fir", "yew", "lime"]


def numbers_of(trees):
    return {kind: number for number, kind in enumerate({kind for _, kind in trees})}


rows = torch.randn(96, 4)
trees = [(row, KINDS[int((row > 0).sum())]) for row in rows]
numbers = numbers_of(trees)
model = nn.Linear(4, len(numbers))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for row, kind in DataLoader(trees, batch_size=16, shuffle=True):
        target = torch.tensor([numbers[each] for each in kind])
        loss = nn.functional.cross_entropy(model(row), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f}")
torch.save(model.state_dict(), "trees.pt")
with open("kinds.txt", "w") as file:
    for kind in numbers:
        file.write(f"{kind}\n")
