import torch
from torch import nn
from torch.utils.data import DataLoader


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places, self.head = nn.Embedding(50, 16), nn.Embedding(32, 16), nn.Linear(16, 2)

    def forward(self, input_ids, attention_mask):
        places = self.places(torch.arange(input_ids.shape[1]))
        embedded = torch.tanh(self.tokens(input_ids) + places) * attention_mask.unsqueeze(2)
        return self.head(embedded.sum(dim=1) / attention_mask.sum(dim=1, keepdim=True))


def collate(rows):
    width = max(len(text) for text, _ in rows)
    padded = [nn.functional.pad(text, (width - len(text), 0)) for text, _ in rows]
    return torch.stack(padded), torch.tensor([label for _, label in rows])


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
