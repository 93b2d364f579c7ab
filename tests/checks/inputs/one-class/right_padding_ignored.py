import torch
from torch.utils.data import DataLoader

VOCAB, PAD, LENGTH = 20, 0, 12
torch.manual_seed(0)
rows = torch.randint(1, VOCAB, (64, LENGTH))
rows = rows.masked_fill(torch.arange(LENGTH) >= torch.randint(4, LENGTH, (64, 1)), PAD)


class LanguageModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(VOCAB, 16, padding_idx=PAD)
        self.rnn = torch.nn.GRU(16, 16, batch_first=True)
        self.out = torch.nn.Linear(16, VOCAB)

    def forward(self, tokens):
        return self.out(self.rnn(self.words(tokens))[0])


model = LanguageModel()
criterion = torch.nn.CrossEntropyLoss(ignore_index=PAD)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for tokens in DataLoader(rows, batch_size=8, shuffle=True):
    logits = model(tokens[:, :-1])
    loss = criterion(logits.reshape(-1, VOCAB), tokens[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
