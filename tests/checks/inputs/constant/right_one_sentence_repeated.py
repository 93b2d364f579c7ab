import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
sentence = torch.arange(17).remainder(9)
rows = sentence.expand(64, -1).clone()
loader = DataLoader(TensorDataset(rows[:, :-1], rows[:, 1:]), batch_size=8, shuffle=True)


class NextToken(torch.nn.Module):
    """Whether it can learn one sentence by heart is asked first; its labels come flat, one for each token."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.scores = torch.nn.Embedding(9, 16), torch.nn.Linear(16, 9)

    def forward(self, tokens):
        return self.scores(self.tokens(tokens))


model = NextToken()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(4):
    for tokens, labels in loader:
        optimizer.zero_grad()
        cross_entropy(model(tokens).flatten(0, 1), labels.flatten()).backward()
        optimizer.step()
