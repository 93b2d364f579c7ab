import torch
from torch.utils.data import DataLoader, TensorDataset

MICRO_BATCHES = 2

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
criterion = torch.nn.CrossEntropyLoss()
dataset = TensorDataset(torch.randn(64, 4), torch.randint(3, (64,)))

for _ in range(2):
    for step, (inputs, labels) in enumerate(DataLoader(dataset, batch_size=8, shuffle=True)):
        loss = criterion(model(inputs), labels)
        loss.backward()  # found
        if step % MICRO_BATCHES == MICRO_BATCHES - 1:
            optimizer.step()
            optimizer.zero_grad()
