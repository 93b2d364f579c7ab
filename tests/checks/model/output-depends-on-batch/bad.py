import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(50, 16), nn.Linear(16, 2)
        self.attention = nn.MultiheadAttention(16, num_heads=2)

    def forward(self, tokens):
        embedded = self.embedding(tokens)
        attended, _ = self.attention(embedded, embedded, embedded)
        return self.head(attended.mean(dim=1))


torch.manual_seed(0)
model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
tokens, labels = torch.randint(50, (96, 12)), torch.randint(2, (96,))
for inputs, targets in DataLoader(TensorDataset(tokens[:64], labels[:64]), batch_size=16, shuffle=True):
    nn.functional.cross_entropy(model(inputs), targets).backward()
    optimizer.step()
    optimizer.zero_grad()

model.eval()
with torch.inference_mode():
    for (inputs,) in DataLoader(TensorDataset(tokens[64:]), batch_size=8):
        print(model(inputs).argmax(dim=-1).tolist())  # found
