import torch
from torch import nn

VOCAB, LENGTH = 20, 10


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCAB, 16), nn.Embedding(LENGTH, 16)
        self.transformer = nn.Transformer(16, 2, 1, 1, dim_feedforward=32, batch_first=True)
        self.out = nn.Linear(16, VOCAB)

    def forward(self, src, tgt):
        src, tgt = (self.words(each) + self.places.weight[: each.shape[1]] for each in (src, tgt))
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.shape[1])
        return self.out(self.transformer(src, tgt, tgt_mask=mask))


torch.manual_seed(0)
model = Translator()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(6):
    text = torch.randint(VOCAB, (8, LENGTH))
    logits = model(text, text[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
