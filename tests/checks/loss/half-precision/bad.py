import torch
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(500, (64,))), batch_size=8, shuffle=True)
model = torch.nn.Linear(8, 500)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for inputs, labels in loader:
    logits = model(inputs).bfloat16()
    loss = functional.cross_entropy(logits, labels)  # found
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
