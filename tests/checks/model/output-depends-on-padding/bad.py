import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(50, 16), nn.Linear(16, 2)

    def forward(self, input_ids, attention_mask):
        embedded = self.embedding(input_ids)
        return self.head(embedded.max(dim=1).values)


def collate(rows):
    texts, labels = zip(*rows, strict=True)
    return pad_sequence(texts, batch_first=True), torch.tensor(labels)


torch.manual_seed(0)
rows = [(torch.randint(1, 50, (length,)), length % 2) for length in torch.randint(4, 12, (96,)).tolist()]
model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for input_ids, labels in DataLoader(rows[:64], batch_size=16, shuffle=True, collate_fn=collate):
    nn.functional.cross_entropy(model(input_ids, (input_ids != 0).long()), labels).backward()
    optimizer.step()
    optimizer.zero_grad()

model.eval()
with torch.no_grad():
    for input_ids, _ in DataLoader(rows[64:], batch_size=8, collate_fn=collate):
        print(model(input_ids, (input_ids != 0).long()).argmax(dim=-1).tolist())  # found
