import torch
from torch import nn

CLASSES, PLACES = 5, 9


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(30, 16)
        self.recurrent = nn.GRU(16, 16, batch_first=True)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, tokens):
        return self.head(self.recurrent(self.words(tokens))[0])


torch.manual_seed(0)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(12):
    tokens = torch.randint(30, (8, PLACES))
    logits = model(tokens)
    loss = nn.functional.cross_entropy(logits.view(8, CLASSES, PLACES), tokens % CLASSES)  # found
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
