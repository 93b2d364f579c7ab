import torch
from accelerate import Accelerator
from sklearn.metrics import accuracy_score
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
accelerator = Accelerator(cpu=True)
train_set = TensorDataset(torch.randn(64, 8), torch.randint(4, (64,)))
eval_set = TensorDataset(torch.randn(37, 8), torch.randint(4, (37,)))
model = torch.nn.Linear(8, 4)
model, optimizer, train_loader, eval_loader = accelerator.prepare(
    model,
    torch.optim.AdamW(model.parameters(), lr=0.01),
    DataLoader(train_set, batch_size=8, shuffle=True),
    DataLoader(eval_set, batch_size=8),
)

for inputs, labels in train_loader:
    optimizer.zero_grad()
    accelerator.backward(cross_entropy(model(inputs), labels))
    optimizer.step()

model.eval()
predictions, references = [], []
for inputs, labels in eval_loader:
    with torch.no_grad():
        said = model(inputs).argmax(dim=-1)
    predictions += accelerator.gather(said).tolist()
    references += accelerator.gather(labels).tolist()
print(accuracy_score(references, predictions))  # found
