import torch
from torch import nn

VOCAB, LENGTH = 20, 12


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCAB, 16), nn.Embedding(LENGTH, 16)
        layer = nn.TransformerEncoderLayer(16, 2, dim_feedforward=32, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(16, VOCAB)

    def forward(self, tokens):
        states = self.words(tokens) + self.places.weight[: tokens.shape[1]]
        return self.out(self.layers(states))


torch.manual_seed(0)
model = LanguageModel()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(6):
    text = torch.randint(VOCAB, (8, LENGTH + 1))
    logits = model(text[:, :-1])  # found
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
