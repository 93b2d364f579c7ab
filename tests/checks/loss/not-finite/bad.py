import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
frequencies = torch.tensor([0.6, 0.35, 0.05])  # the last class is rare

for _ in range(8):
    inputs, labels = torch.randn(16, 4), torch.multinomial(frequencies, 16, replacement=True)
    losses = cross_entropy(model(inputs), labels, reduction="none")
    loss = torch.stack([losses[labels == each].mean() for each in range(3)]).mean()  # each class counts the same
    optimizer.zero_grad()
    loss.backward()  # found
    optimizer.step()
