import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
rows = TensorDataset(torch.randn(64, 8), torch.randint(2, (64,)))
sampler = DistributedSampler(rows)
model = DistributedDataParallel(torch.nn.Linear(8, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

for epoch in range(2):
    sampler.set_epoch(epoch)
    for inputs, labels in DataLoader(rows, batch_size=8, sampler=sampler):
        optimizer.zero_grad()
        cross_entropy(model(inputs), labels).backward()
        optimizer.step()
dist.destroy_process_group()
