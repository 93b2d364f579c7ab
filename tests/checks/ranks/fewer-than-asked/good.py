# ACCELERATE_USE_CPU=true torchrun --nproc-per-node 2 good.py
import torch
from accelerate import Accelerator
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator()
torch.manual_seed(0)
rows = TensorDataset(torch.randn(64, 4), torch.randint(2, (64,)))
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(rows, batch_size=8, shuffle=True))

for inputs, labels in loader:
    loss = cross_entropy(model(inputs), labels)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
accelerator.print(f"trained by {accelerator.num_processes} processes")
