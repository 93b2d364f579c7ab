import torch
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

init_process_group("gloo")
torch.manual_seed(0)
train_set = TensorDataset(torch.randn(48, 6), torch.randint(3, (48,)))
train_loader = DataLoader(train_set, batch_size=8, sampler=DistributedSampler(train_set))

network = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.ReLU(), torch.nn.Linear(12, 3))
parallel = DistributedDataParallel(network)
criterion = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)

for features, labels in train_loader:
    optimizer.zero_grad()
    loss = criterion(network(features), labels)
    loss.backward()
    optimizer.step()  # found
destroy_process_group()
