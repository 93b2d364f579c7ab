import torch
from torch import nn

torch.manual_seed(0)
inputs = torch.randn(200, 6)
labels = (inputs[:, 2] > 0).long()
model = nn.Linear(6, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
after_an_epoch = [torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9).step]
for update in range(1, 31):  # a trial: an epoch has 400 updates
    drawn = torch.randint(200, (16,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs[drawn]), labels[drawn]).backward()
    optimizer.step()
    if update % 400 == 0:
        for call in after_an_epoch:
            call()
