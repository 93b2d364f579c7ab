import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

VOCAB, LEN, CLASSES = 200, 12, 4


def tickets(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(CLASSES, (n,), generator=g)
    words = torch.randint(VOCAB, (n, LEN), generator=g)
    topical = torch.randint(VOCAB // CLASSES, (n, LEN), generator=g) + (y * (VOCAB // CLASSES))[:, None]
    use = torch.rand(n, LEN, generator=g) < 0.3
    return TensorDataset(torch.where(use, topical, words), y)


class Triage(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(VOCAB, 32)
        self.out = nn.Linear(32, CLASSES)

    def forward(self, ids):
        return self.out(torch.relu(self.bag(ids)))


def main():
    accelerator = Accelerator(cpu=True)
    set_seed(21)
    model = Triage()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2)
    train_loader = DataLoader(tickets(768, 1), batch_size=32, shuffle=True)
    eval_loader = DataLoader(tickets(81, 2), batch_size=32)
    model, optimizer, train_loader, eval_loader = accelerator.prepare(model, optimizer, train_loader, eval_loader)

    for epoch in range(4):
        model.train()
        for ids, y in train_loader:
            loss = nn.functional.cross_entropy(model(ids), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()

        model.eval()
        correct = seen = 0
        for ids, y in eval_loader:
            with torch.no_grad():
                pred = model(ids).argmax(-1)
            pred, ref = accelerator.gather_for_metrics((pred, y))
            correct += (pred == ref).sum().item()
            seen += ref.numel()
        accelerator.print(f"epoch {epoch} accuracy {correct / seen:.4f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
