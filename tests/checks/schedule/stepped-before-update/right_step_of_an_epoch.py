import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
model = torch.nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
inputs, labels = torch.randn(96, 8), torch.randint(3, (96,))

for epoch in range(6):
    scheduler.step(epoch)  # to where epoch 0 has it: the first learning rate is used
    for rows in torch.randperm(96).split(16):
        optimizer.zero_grad()
        cross_entropy(model(inputs[rows]), labels[rows]).backward()
        optimizer.step()
