import torch
from accelerate import Accelerator
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
accelerator = Accelerator(gradient_accumulation_steps=4, cpu=True)
loader = DataLoader(TensorDataset(torch.randn(128, 4), torch.arange(128) % 2), batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)  # found
model, loader = accelerator.prepare(model, loader)
for inputs, labels in loader:
    with accelerator.accumulate(model):
        loss = functional.cross_entropy(model(inputs), labels)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
