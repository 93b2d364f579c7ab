import torch
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
epochs = 4
loader = DataLoader(TensorDataset(torch.randn(96, 5), torch.randint(2, (96,))), batch_size=12, shuffle=True)


def build():
    model = torch.nn.Linear(5, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    return model, optimizer, CosineAnnealingLR(optimizer, T_max=epochs * len(loader))


def train(model, optimizer, scheduler, epochs):
    for _ in range(epochs):
        for inputs, labels in loader:
            optimizer.zero_grad()
            cross_entropy(model(inputs), labels).backward()
            optimizer.step()  # found
            scheduler.step()


model, optimizer, scheduler = build()
train(model, optimizer, scheduler, epochs=1)
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "checkpoint.pt")

model, optimizer, scheduler = build()
checkpoint = torch.load("checkpoint.pt")
model.load_state_dict(checkpoint["model"])
optimizer.load_state_dict(checkpoint["optimizer"])
train(model, optimizer, scheduler, epochs=epochs - 1)
