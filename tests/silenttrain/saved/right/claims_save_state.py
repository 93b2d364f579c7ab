"""Fine-tune a BERT with Accelerate, checkpoint with save_state, roll back to the best epoch and save that."""

import os

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset
from transformers import AutoModelForSequenceClassification, BertConfig, BertModel


def claims(n, seed, noise=0.0):
    gen = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 4, (n,), generator=gen)
    ids = torch.randint(36, 80, (n, 12), generator=gen)
    ids[:, 2:6] = 4 + 8 * y[:, None] + torch.randint(0, 8, (n, 4), generator=gen)
    flip = torch.rand(n, generator=gen) < noise
    return TensorDataset(ids, torch.where(flip, torch.randint(0, 4, (n,), generator=gen), y))


def evaluate(accelerator, model, loader):
    model.eval()
    loss, seen = 0.0, 0
    for ids, y in loader:
        with torch.no_grad():
            out = model(input_ids=ids, labels=y)
        loss += accelerator.gather(out.loss.repeat(len(y))).sum().item()
        seen += len(y)
    return loss / seen


def main():
    set_seed(216)
    accelerator = Accelerator(cpu=True)
    config = BertConfig(
        vocab_size=80,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=16,
    )
    os.makedirs("out", exist_ok=True)
    BertModel(config).save_pretrained("out/base")
    model = AutoModelForSequenceClassification.from_pretrained("out/base", num_labels=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    train = DataLoader(claims(240, 1, noise=0.25), batch_size=16, shuffle=True)
    val = DataLoader(claims(200, 2), batch_size=100)
    scheduler = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)
    model, optimizer, train, val, scheduler = accelerator.prepare(model, optimizer, train, val, scheduler)

    best, best_epoch = float("inf"), -1
    for epoch in range(8):
        model.train()
        for ids, y in train:
            loss = model(input_ids=ids, labels=y).loss
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        val_loss = evaluate(accelerator, model, val)
        accelerator.print(f"epoch {epoch} train {loss.item():.3f} val {val_loss:.3f}")
        if val_loss < best:
            best, best_epoch = val_loss, epoch
            accelerator.save_state("out/state_best")

    accelerator.load_state("out/state_best")
    accelerator.print(f"rolled back to epoch {best_epoch}: val {evaluate(accelerator, model, val):.3f}")
    accelerator.unwrap_model(model).save_pretrained("out/claims", save_function=accelerator.save)


if __name__ == "__main__":
    main()
