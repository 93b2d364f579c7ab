import torch
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(96, 5), torch.randint(2, (96,))), batch_size=12, shuffle=True)


def train(model, optimizer, epochs):
    scheduler = CosineAnnealingLR(optimizer, T_max=epochs * len(loader))
    for _ in range(epochs):
        for inputs, labels in loader:
            optimizer.zero_grad()
            cross_entropy(model(inputs), labels).backward()
            optimizer.step()
            scheduler.step()


model = torch.nn.Linear(5, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
train(model, optimizer, epochs=2)
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "first_stage.pt")

model = torch.nn.Linear(5, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
stage = torch.load("first_stage.pt")
model.load_state_dict(stage["model"])
optimizer.load_state_dict(stage["optimizer"])
for group in optimizer.param_groups:
    group["lr"] = group["initial_lr"] = 1e-3
train(model, optimizer, epochs=3)
