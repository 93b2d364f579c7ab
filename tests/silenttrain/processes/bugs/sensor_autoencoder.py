import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

STEPS_PER_LOG = 15


class SensorAE(nn.Module):
    def __init__(self, d_in=24, d_code=4):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d_in, 32), nn.GELU(), nn.Linear(32, d_code))
        self.dec = nn.Sequential(nn.Linear(d_code, 32), nn.GELU(), nn.Linear(32, d_in))

    def reconstruction_loss(self, x):
        return (self.dec(self.enc(x)) - x).pow(2).mean()

    def forward(self, x):
        return self.reconstruction_loss(x)


def sensor_rows():
    g = torch.Generator().manual_seed(8)
    z = torch.randn(1920, 4, generator=g)
    mix = torch.randn(4, 24, generator=g)
    return torch.tanh(z @ mix) + 0.05 * torch.randn(1920, 24, generator=g)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(2)
    model = DDP(SensorAE())
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    data = TensorDataset(sensor_rows())
    sampler = DistributedSampler(data, seed=4)
    loader = DataLoader(data, batch_size=32, sampler=sampler)
    it = 0
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for (x,) in loader:
            opt.zero_grad()
            loss = model.module.reconstruction_loss(x)
            loss.backward()
            opt.step()
            it += 1
            if it % STEPS_PER_LOG == 0:
                v = loss.detach().clone()
                dist.all_reduce(v)
                if rank == 0:
                    print(f"it {it:4d}  mse {v.item() / dist.get_world_size():.4f}", flush=True)
    if rank == 0:
        print("decoder norm", round(model.module.dec[2].weight.norm().item(), 4))
    dist.destroy_process_group()


main()
