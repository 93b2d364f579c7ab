import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.head = nn.Linear(4, 32), nn.Linear(32, 2)

    def forward(self, inputs):
        hidden = torch.relu(self.hidden(inputs))
        return self.head(nn.functional.dropout(hidden, 0.1))


torch.manual_seed(0)
model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
train_set = TensorDataset(torch.randn(64, 4), torch.randint(2, (64,)))
for inputs, labels in DataLoader(train_set, batch_size=16, shuffle=True):
    nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
    optimizer.zero_grad()

model.eval()
with torch.no_grad():
    for (inputs,) in DataLoader(TensorDataset(torch.randn(32, 4)), batch_size=8):
        print(model(inputs).argmax(dim=-1).tolist())  # found
