import torch
from sklearn.metrics import accuracy_score
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
train_loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(4, (64,))), batch_size=16, shuffle=True)
eval_loader = DataLoader(TensorDataset(torch.randn(40, 8), torch.randint(4, (40,))), batch_size=16)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

predictions, references = [], []
for epoch in range(3):
    model.train()
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    model.eval()
    for inputs, labels in eval_loader:
        with torch.no_grad():
            predictions += model(inputs).argmax(dim=-1).tolist()
        references += labels.tolist()
    print(epoch, accuracy_score(references, predictions))  # found
