import torch
from sklearn.metrics import accuracy_score, f1_score
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
topics = torch.multinomial(torch.tensor([0.8, 0.1, 0.1]), 90, replacement=True)
articles = TensorDataset(torch.randn(90, 12), topics)
held_out = TensorDataset(torch.randn(30, 12), topics[:30])
model = torch.nn.Linear(12, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for features, labels in DataLoader(articles, batch_size=15, shuffle=True):
    optimizer.zero_grad()
    cross_entropy(model(features), labels).backward()
    optimizer.step()

model.eval()
predicted, true = [], []
with torch.no_grad():
    for features, labels in DataLoader(held_out, batch_size=15):
        predicted += model(features).argmax(-1).tolist()
        true += labels.tolist()
print({"accuracy": accuracy_score(true, predicted), "f1": f1_score(true, predicted, average="micro")})  # found
