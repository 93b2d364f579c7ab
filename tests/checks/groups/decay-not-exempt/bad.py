import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(d_model=16, nhead=2, dim_feedforward=32, batch_first=True)
model = nn.Sequential(nn.Embedding(50, 16), layer, nn.Flatten(), nn.Linear(8 * 16, 3))

no_decay = ("bias", "LayerNorm.weight")
exempt = [p for name, p in model.named_parameters() if name.endswith(no_decay)]
decayed = [p for name, p in model.named_parameters() if not name.endswith(no_decay)]
groups = [{"params": decayed, "weight_decay": 0.01}, {"params": exempt, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=1e-3)  # found

for _ in range(10):
    tokens, labels = torch.randint(50, (16, 8)), torch.randint(3, (16,))
    optimizer.zero_grad()
    cross_entropy(model(tokens), labels).backward()
    optimizer.step()
