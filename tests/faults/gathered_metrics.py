"""An evaluation in several processes whose rows fill the last batch: gather_for_metrics should give each row once."""

import torch
from accelerate import Accelerator
from sklearn.metrics import accuracy_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
accelerator = Accelerator()
inputs = torch.randn(32, 4)
labels = (inputs.sum(dim=1) > 0).long()
train = DataLoader(TensorDataset(inputs, labels), batch_size=4, shuffle=True)
evaluation = DataLoader(TensorDataset(inputs[:24] + 1, labels[:24]), batch_size=4)
model = nn.Linear(4, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
model, optimizer, train, evaluation = accelerator.prepare(model, optimizer, train, evaluation)

for _ in range(2):
    for batch, targets in train:
        accelerator.backward(nn.functional.cross_entropy(model(batch), targets))
        optimizer.step()
        optimizer.zero_grad()

model.eval()
predicted, references = [], []
for batch, targets in evaluation:
    with torch.no_grad():
        logits = model(batch)
    gathered = accelerator.gather_for_metrics((logits.argmax(dim=-1), targets))
    predicted += gathered[0].tolist()
    references += gathered[1].tolist()
accelerator.print(len(references), "rows,", accuracy_score(references, predicted))
