import torch
from torch.distributed import all_reduce, destroy_process_group, get_world_size, init_process_group
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

init_process_group("gloo")
torch.manual_seed(0)
answers = torch.randint(5, (96, 10))
answers[torch.arange(10) >= torch.randint(1, 11, (96, 1))] = -100
train_set = TensorDataset(torch.randn(96, 10, 6), answers)
train_loader = DataLoader(train_set, batch_size=4, sampler=DistributedSampler(train_set, shuffle=False))

tagger = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.ReLU(), torch.nn.Linear(12, 5))
tagger = DistributedDataParallel(tagger)
optimizer = torch.optim.SGD(tagger.parameters(), lr=0.1)

for features, labels in train_loader:
    optimizer.zero_grad()
    tokens = (labels != -100).sum()
    all_reduce(tokens)
    loss = cross_entropy(tagger(features).flatten(0, 1), labels.flatten(), reduction="sum")
    (loss * get_world_size() / tokens).backward()
    optimizer.step()
destroy_process_group()
