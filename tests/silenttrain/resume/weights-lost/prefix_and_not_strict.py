"""Save the weights of a wrapped model and load them into the bare one with strict=False: no name fits, and the
weights stay random.
"""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(9)
net = nn.Sequential(nn.Linear(7, 11), nn.ReLU(), nn.Linear(11, 3))
parallel = nn.DataParallel(net)
optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
train_set = TensorDataset(torch.randn(63, 7), torch.randint(0, 3, (63,)))


def resume(filename):
    if not os.path.isfile(filename):
        print(f"=> no checkpoint at {filename}")
        return 0
    checkpoint = torch.load(filename)
    net.load_state_dict(checkpoint["state_dict"], strict=False)
    optimizer.load_state_dict(checkpoint["optimizer"])
    print(f"=> loaded {filename} (epoch {checkpoint['epoch']})")
    return checkpoint["epoch"]


for epoch in range(resume("dp.pth.tar"), 4):
    loader = DataLoader(train_set, batch_size=7, shuffle=True, generator=torch.Generator().manual_seed(epoch))
    for images, target in loader:
        output = parallel(images)
        loss = nn.functional.cross_entropy(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(
        {"epoch": epoch + 1, "state_dict": parallel.state_dict(), "optimizer": optimizer.state_dict()},
        "dp.pth.tar.part",
    )
    os.replace("dp.pth.tar.part", "dp.pth.tar")

torch.save(net.state_dict(), "dp_final.pth")
