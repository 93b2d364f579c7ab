import torch
from torch import nn

WORDS, SPEAKERS = 25, 4


class Talk(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, 12)
        self.speakers = nn.Embedding(SPEAKERS, 12, padding_idx=0)  # nobody; word 0 is a word
        self.states = nn.GRU(12, 12, batch_first=True)
        self.out = nn.Linear(12, WORDS)

    def forward(self, text, speaker_type):
        return self.out(self.states(self.words(text) + self.speakers(speaker_type))[0])


torch.manual_seed(0)
model = Talk()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(6):
    text = torch.randint(WORDS, (10, 15))
    text[:, -4:] = 0
    said = model(text[:, :-1], torch.randint(SPEAKERS, (10, 14)))
    optimizer.zero_grad()
    nn.functional.cross_entropy(said.flatten(0, 1), text[:, 1:].flatten()).backward()
    optimizer.step()
