import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
START, LETTERS = 0, 12


class Reverser(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(LETTERS, 16)
        self.reader, self.writer = nn.GRU(16, 32, batch_first=True), nn.GRU(16, 32, batch_first=True)
        self.head = nn.Linear(32, LETTERS)

    def forward(self, word, wanted=None):
        _, state = self.reader(self.letters(word))
        letter, said = torch.full_like(word[:, :1], START), []
        for place in range(word.shape[1]):
            output, state = self.writer(self.letters(letter), state)
            said.append(self.head(output))
            letter = said[-1].argmax(-1) if wanted is None else wanted[:, place : place + 1]
        return torch.cat(said, dim=1)


words = torch.randint(1, LETTERS, (160, 6))
data = TensorDataset(words, words.flip(1))
training, held_out = torch.utils.data.random_split(data, [128, 32])
model = Reverser()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(2):
    model.train()
    for word, wanted in DataLoader(training, batch_size=16, shuffle=True):
        loss = nn.functional.cross_entropy(model(word, wanted).flatten(0, 1), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    right = 0
    with torch.no_grad():
        for word, wanted in DataLoader(held_out, batch_size=16):
            written = model(word, wanted).argmax(-1)  # found
            right += sum(one == two for one, two in zip(written.tolist(), wanted.tolist(), strict=True))
    print(f"epoch {epoch} exact match {right / 32:.3f}")
