import torch
from torch import nn
from torch.nn.functional import cross_entropy

WORDS, LENGTH = 24, 16


class Reader(nn.Module):
    """Says at each place which word it takes the next one to be, or the one in the place, of which some are hidden."""

    def __init__(self, hides=0.0):
        super().__init__()
        self.words = nn.Embedding(WORDS + 1, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.out = nn.Linear(16, WORDS)
        self.hides = hides

    def forward(self, text, mask):
        if self.training and self.hides:
            text = text.masked_fill(torch.rand(text.shape) < self.hides, WORDS)
        return self.out(self.layer(self.words(text), src_mask=mask))


torch.manual_seed(0)
mask = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
repairs, goes_on = Reader(hides=0.25), Reader()
optimizer = torch.optim.Adam([*repairs.parameters(), *goes_on.parameters()], lr=1e-3)
for step in range(10):
    text = torch.randint(WORDS, (LENGTH, LENGTH + 1))  # as many rows as places
    runs = torch.randint(WORDS, (12, 1)).expand(12, LENGTH + 1)
    read = text if step % 2 else runs
    optimizer.zero_grad()
    cross_entropy(goes_on(read[:, :-1], mask).transpose(1, 2), read[:, 1:]).backward()
    cross_entropy(repairs(text[:12, 1:], mask).transpose(1, 2), text[:12, 1:]).backward()
    optimizer.step()
