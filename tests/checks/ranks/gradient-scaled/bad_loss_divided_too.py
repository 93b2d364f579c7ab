import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

distributed.init_process_group("gloo")
torch.manual_seed(0)
n = distributed.get_world_size()
train_set = TensorDataset(torch.randn(96, 6), torch.randint(3, (96,)))
train_loader = DataLoader(train_set, batch_size=8, sampler=DistributedSampler(train_set))

network = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.ReLU(), torch.nn.Linear(12, 3))
model = DistributedDataParallel(network)
criterion = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for features, labels in train_loader:
    optimizer.zero_grad()
    error = criterion(model(features), labels) / n  # found
    error.backward()
    optimizer.step()
distributed.destroy_process_group()
