import torch
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

torch.manual_seed(0)
inputs = torch.randn(512, 8)
labels = (inputs[:, 0] + torch.randn(512) > 0.5).float()
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(4):
    for rows in torch.randperm(384).split(32):
        optimizer.zero_grad()
        binary_cross_entropy_with_logits(model(inputs[rows]).squeeze(1), labels[rows]).backward()
        optimizer.step()

model.eval()
with torch.no_grad():
    probabilities = torch.sigmoid(model(inputs[384:])).squeeze(1)
print(roc_auc_score(labels[384:], (probabilities > 0.5).int()))  # found
