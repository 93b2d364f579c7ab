import torch
from torch import nn
from torch.nn.functional import cross_entropy


class Adapted(nn.Module):
    def __init__(self, layer, rank=2):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down = nn.Linear(layer.in_features, rank, bias=False)
        self.up = nn.Linear(rank, layer.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, rows):
        return self.layer(rows) + self.up(self.down(rows))


torch.manual_seed(0)
rows, labels = torch.randn(96, 8), torch.randint(3, (96,))
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
model[0], model[2] = Adapted(model[0]), Adapted(model[2])
optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-2)
for picked in torch.randperm(96).split(12):
    optimizer.zero_grad()
    cross_entropy(model(rows[picked]), labels[picked]).backward()
    optimizer.step()
state = model.state_dict()
plain = {name.replace(".layer.", "."): each for name, each in state.items() if ".layer." in name}
torch.save(plain, "plain.pt")  # found
