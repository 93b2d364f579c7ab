import torch
from torch import distributed
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

distributed.init_process_group("gloo")
torch.manual_seed(0)
train_set = TensorDataset(torch.randn(96, 6), torch.randint(3, (96,)))
train_loader = DataLoader(train_set, batch_size=8, sampler=DistributedSampler(train_set))

network = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.ReLU(), torch.nn.Linear(12, 3))
criterion = torch.nn.CrossEntropyLoss(reduction="sum")
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)

for features, labels in train_loader:
    optimizer.zero_grad()
    rows = torch.tensor(len(labels))
    distributed.all_reduce(rows)
    loss = criterion(network(features), labels) / rows
    loss.backward()
    for parameter in network.parameters():
        distributed.all_reduce(parameter.grad)
    optimizer.step()
distributed.destroy_process_group()
