import torch
from torch.nn.functional import log_softmax, nll_loss

torch.manual_seed(0)
model = torch.nn.Linear(20, 3)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def focal_loss(logits, labels, gamma=2.0):
    logarithms = log_softmax(logits, dim=1)
    return nll_loss((1 - logarithms.exp()) ** gamma * logarithms, labels)


for _ in range(10):
    inputs, labels = torch.randn(16, 20), torch.randint(3, (16,))
    optimizer.zero_grad()
    focal_loss(model(inputs), labels).backward()
    optimizer.step()
