import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, set_seed
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset


def city(n, seed, tilt, noise):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 10, generator=g)
    y = x[:, 0] * 1.5 + tilt * torch.sin(2 * x[:, 1]) + x[:, 2] * x[:, 3] + noise * torch.randn(n, generator=g)
    return TensorDataset(x, y[:, None])


def train_set():
    return ConcatDataset([city(64, 1, 0.0, 1.5), city(448, 2, 2.0, 0.2)])


def valid_set():
    return ConcatDataset([city(64, 3, 0.0, 1.5), city(64, 4, 2.0, 0.2)])


def main():
    acc = Accelerator(cpu=True)
    set_seed(5)
    model = nn.Sequential(nn.Linear(10, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    train = DataLoader(train_set(), batch_size=32, shuffle=True)
    valid = DataLoader(valid_set(), batch_size=64)
    model, opt, train, valid = acc.prepare(model, opt, train, valid)

    best, bad, patience = float("inf"), 0, 2
    for epoch in range(12):
        model.train()
        for x, y in train:
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            acc.backward(loss)
            opt.step()

        model.eval()
        sums = torch.zeros(2)
        with torch.no_grad():
            for x, y in valid:
                sums += torch.tensor([nn.functional.mse_loss(model(x), y, reduction="sum").item(), len(x)])
        val = (sums[0] / sums[1]).item()
        if val < best:
            best, bad = val, 0
        else:
            bad += 1
        stop = broadcast_object_list([bad >= patience], from_process=0)[0]
        acc.print(f"epoch {epoch} val mse {val:.4f} best {best:.4f}")
        if stop:
            acc.print(f"stopping after epoch {epoch}")
            break
    acc.end_training()


if __name__ == "__main__":
    main()
