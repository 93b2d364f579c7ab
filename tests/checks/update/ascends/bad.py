import torch
from torch.nn.functional import log_softmax, nll_loss

torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(8):
    inputs, labels = torch.randn(16, 4), torch.randint(2, (16,))
    log_probabilities = log_softmax(model(inputs), dim=-1)
    loss = -nll_loss(log_probabilities, labels)
    optimizer.zero_grad()
    loss.backward()  # found
    optimizer.step()
