"""Rows that are all padded to one width, whatever batch they are in."""

import torch
from torch.utils.data import DataLoader

torch.manual_seed(0)
texts = [torch.randint(1, 30, (int(length),)) for length in torch.randint(3, 12, (96,))]
rows = [(text, int(text[0] > 15)) for text in texts]


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(30, 8, padding_idx=0)
        self.rnn = torch.nn.LSTM(8, 16, batch_first=True)
        self.head = torch.nn.Linear(16, 2)

    def forward(self, text, lengths):
        _, (hidden, _) = self.rnn(self.embedding(text))
        return self.head(hidden[-1])


def collate(rows):
    texts, labels = zip(*rows, strict=True)
    texts = [torch.nn.functional.pad(each, (0, 12 - len(each))) for each in texts]
    return torch.stack(texts), torch.tensor([len(each) for each in texts]), torch.tensor(labels)


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for text, lengths, labels in DataLoader(rows[:64], batch_size=8, shuffle=True, collate_fn=collate):
    loss = torch.nn.functional.cross_entropy(model(text, lengths), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

model.eval()
right = 0
with torch.no_grad():
    for text, lengths, labels in DataLoader(rows[64:], batch_size=8, collate_fn=collate):
        right += (model(text, lengths).argmax(1) == labels).sum().item()
print(right / 32)
