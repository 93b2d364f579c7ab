import torch
from sklearn.metrics import f1_score
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset


def loader_of(rows):
    return DataLoader(rows, batch_size=16, shuffle=True)


torch.manual_seed(0)
train_rows = TensorDataset(torch.randn(64, 8), torch.randint(2, (64,)))
test_rows = TensorDataset(torch.randn(40, 8), torch.randint(2, (40,)))
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for inputs, labels in loader_of(train_rows):
    loss = cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

model.eval()
with torch.no_grad():
    predictions = torch.cat([model(inputs).argmax(1) for inputs, _ in loader_of(test_rows)])
print(f1_score(test_rows.tensors[1], predictions))  # found
