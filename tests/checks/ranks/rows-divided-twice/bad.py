import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
inputs, labels = torch.randn(128, 8), torch.randint(2, (128,))
part = slice(dist.get_rank(), None, dist.get_world_size())
rows = TensorDataset(inputs[part], labels[part])
sampler = DistributedSampler(rows)
loader = DataLoader(rows, batch_size=8, sampler=sampler)
model = DistributedDataParallel(torch.nn.Linear(8, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in loader:  # found
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
dist.destroy_process_group()
