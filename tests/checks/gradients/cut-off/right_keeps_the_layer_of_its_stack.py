# nn.TransformerEncoder copies the layer that it is given, which stays where it is and is never called.
import torch
from torch import nn

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.TransformerEncoderLayer(8, 1, 16, batch_first=True)
        self.stack = nn.TransformerEncoder(self.block, num_layers=2, enable_nested_tensor=False)
        self.out = nn.Linear(8, 2)

    def forward(self, rows):
        return self.out(self.stack(rows))


model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(10):
    rows = torch.randn(16, 5, 8)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(rows).flatten(0, 1), (rows.sum(2) > 0).long().flatten()).backward()
    optimizer.step()
