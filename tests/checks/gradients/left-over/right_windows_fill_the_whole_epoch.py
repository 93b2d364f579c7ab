import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Linear(6, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
loader = DataLoader(TensorDataset(torch.randn(336, 6), torch.randint(2, (336,))), batch_size=8, shuffle=True)


def told_of_the_last(batches):
    """Fetches one batch ahead, as Accelerate does."""
    batches = iter(batches)
    current = next(batches)
    for following in batches:
        yield current
        current = following
    yield current


for _ in range(3):
    for i, (inputs, labels) in enumerate(told_of_the_last(loader)):
        (cross_entropy(model(inputs), labels) / 3).backward()
        if (i + 1) % 3 == 0:
            optimizer.step()
            optimizer.zero_grad()
