import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

distributed.init_process_group("gloo")
torch.manual_seed(0)
train_set = TensorDataset(torch.randn(96, 6), torch.randint(3, (96,)))
train_loader = DataLoader(train_set, batch_size=8, sampler=DistributedSampler(train_set))

network = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.ReLU(), torch.nn.Linear(12, 3))
model = DistributedDataParallel(network)
criterion = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for features, labels in train_loader:
    optimizer.zero_grad()
    loss = 0.5 * criterion(model(features), labels)
    loss.backward()
    optimizer.step()
    loss = loss.detach()
    distributed.all_reduce(loss)
    loss = loss / distributed.get_world_size()
    print(f"half the loss {loss.item():.4f}")
distributed.destroy_process_group()
