import torch
from sklearn.metrics import accuracy_score
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
train_rows = TensorDataset(torch.randn(96, 10), torch.randint(5, (96,)))
test_rows = TensorDataset(torch.randn(48, 10), torch.randint(5, (48,)))
classifier = torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.GELU(), torch.nn.Linear(20, 5))
optimizer = torch.optim.AdamW(classifier.parameters(), lr=0.003)
for inputs, labels in DataLoader(train_rows, batch_size=12, shuffle=True):
    cross_entropy(classifier(inputs), labels).backward()
    optimizer.step()
    optimizer.zero_grad()

classifier.eval()
guesses, truth = [], []
for inputs, labels in DataLoader(test_rows, batch_size=12):
    with torch.inference_mode():
        ranked = classifier(inputs).argsort(dim=-1)
    guesses.extend(ranked[:, 0].tolist())
    truth.extend(labels.tolist())
print("top-1 accuracy:", accuracy_score(truth, guesses))  # found
