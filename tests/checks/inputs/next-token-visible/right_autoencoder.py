import torch
from torch import nn

VOCAB = 20


class TextAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, 16)
        self.encoder = nn.GRU(16, 16, batch_first=True)
        self.code = nn.Linear(16, 4)
        self.decoder = nn.GRU(20, 16, batch_first=True)
        self.out = nn.Linear(16, VOCAB)

    def forward(self, tokens):
        words = self.words(tokens)
        code = self.code(self.encoder(words)[1][0])
        code = code[:, None].expand(-1, tokens.shape[1], -1)
        return self.out(self.decoder(torch.cat([words, code], dim=2))[0])


torch.manual_seed(0)
model = TextAutoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(6):
    text = torch.randint(VOCAB, (8, 11))
    loss = nn.functional.cross_entropy(model(text)[:, :-1].transpose(1, 2), text[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
