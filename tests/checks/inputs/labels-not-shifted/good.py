import torch
from torch import nn

WORDS, LENGTH = 24, 10


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, 16)
        self.memory = nn.GRU(16, 24, batch_first=True)
        self.says = nn.Linear(24, WORDS)

    def forward(self, text):
        return self.says(self.memory(self.words(text))[0])


torch.manual_seed(0)
model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(6):
    text = torch.randint(WORDS, (6, LENGTH + 1))
    logits = model(text[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
