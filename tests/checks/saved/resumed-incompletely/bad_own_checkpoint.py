import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
rows, labels = torch.randn(96, 5), torch.randint(2, (96,))


def begun_before():
    """What an earlier start of this script has left."""
    model = torch.nn.Linear(5, 2)
    tensors = {place: {"step": torch.tensor(8.0)} for place in range(2)}
    states = {place: each | {"exp_avg": torch.ones(1)} for place, each in tensors.items()}
    optimizer = {"state": states, "param_groups": [{"lr": 1e-2, "params": [0, 1]}]}
    torch.save({"model": model.state_dict(), "optimizer": optimizer, "epoch": 0}, "epoch_0.pt")


begun_before()
model = torch.nn.Linear(5, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
checkpoint = torch.load("epoch_0.pt")
model.load_state_dict(checkpoint["model"])
for epoch in range(checkpoint["epoch"] + 1, 4):
    for picked in torch.randperm(96).split(12):
        optimizer.zero_grad()
        cross_entropy(model(rows[picked]), labels[picked]).backward()
        optimizer.step()  # found
    states = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
    torch.save(states, f"epoch_{epoch}.pt")
