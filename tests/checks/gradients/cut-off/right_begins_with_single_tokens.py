import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)


class Parity(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(2, 16), nn.Embedding(32, 16)
        self.queries, self.keys, self.values = (nn.Linear(16, 16, bias=False) for _ in range(3))
        self.out = nn.Linear(16, 2)

    def forward(self, tokens):
        states = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        weights = (self.queries(states) @ self.keys(states).transpose(1, 2)).softmax(dim=-1)
        return self.out(states + weights @ self.values(states))


model = Parity()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for update in range(48):
    length = 1 if update < 40 else 4  # a curriculum: the shortest first, where attention has nothing to choose from
    tokens = torch.randint(2, (16, length))
    loss = cross_entropy(model(tokens).flatten(0, 1), (tokens.cumsum(dim=1) % 2).flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
