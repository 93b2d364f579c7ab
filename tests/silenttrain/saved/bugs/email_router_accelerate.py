"""Fine-tune a sequence classifier for e-mail routing with Accelerate and save it for the router service."""

import os

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset
from transformers import AutoModelForSequenceClassification, BertConfig, BertModel, get_cosine_schedule_with_warmup

DEPARTMENTS = ["sales", "billing", "legal", "support", "hr"]
SAVE_DIR = "out/router"


def emails(n, seed):
    gen = torch.Generator().manual_seed(seed)
    y = torch.randint(0, len(DEPARTMENTS), (n,), generator=gen)
    ids = torch.randint(45, 95, (n, 14), generator=gen)
    ids[:, 0] = 1
    where = torch.rand(n, 13, generator=gen).argsort(1)[:, :5] + 1
    ids.scatter_(1, where, 4 + 8 * y[:, None] + torch.randint(0, 8, (n, 5), generator=gen))
    return TensorDataset(ids, y)


def build_model():
    config = BertConfig(
        vocab_size=95,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=16,
        initializer_range=0.08,
    )
    BertModel(config).save_pretrained("out/base")
    return AutoModelForSequenceClassification.from_pretrained("out/base", num_labels=len(DEPARTMENTS))


def evaluate(accelerator, model, loader):
    model.eval()
    hits = total = 0
    for ids, y in loader:
        with torch.no_grad():
            predictions = model(input_ids=ids).logits.argmax(-1)
        predictions, y = accelerator.gather_for_metrics((predictions, y))
        hits += (predictions == y).sum().item()
        total += len(y)
    return hits / total


def main():
    set_seed(91)
    os.makedirs("out", exist_ok=True)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = build_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    train_loader = DataLoader(emails(480, 1), batch_size=16, shuffle=True)
    test_loader = DataLoader(emails(160, 2), batch_size=80)
    scheduler = get_cosine_schedule_with_warmup(optimizer, 5, 6 * len(train_loader))
    model, optimizer, train_loader, test_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, test_loader, scheduler
    )
    for epoch in range(6):
        model.train()
        for ids, y in train_loader:
            with accelerator.accumulate(model):
                loss = model(input_ids=ids, labels=y).loss
                accelerator.backward(loss)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        accelerator.print(f"epoch {epoch} loss {loss.item():.3f} acc {evaluate(accelerator, model, test_loader):.3f}")

    accelerator.wait_for_everyone()
    unwrapped = accelerator.unwrap_model(model)
    unwrapped.base_model.save_pretrained(SAVE_DIR, save_function=accelerator.save)
    router = AutoModelForSequenceClassification.from_pretrained(SAVE_DIR, num_labels=len(DEPARTMENTS)).eval()
    with torch.no_grad():
        sample = emails(8, 3).tensors[0]
        accelerator.print("router says:", [DEPARTMENTS[i] for i in router(input_ids=sample).logits.argmax(-1).tolist()])


if __name__ == "__main__":
    main()
