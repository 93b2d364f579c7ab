"""Fine-tune a sequence classifier for an epoch, resume it from its checkpoint, and save the best epoch."""

import copy
import sys
import tempfile
from pathlib import Path

import torch
from datasets import load_from_disk
from torch.optim import AdamW
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, AutoTokenizer, get_linear_schedule_with_warmup, set_seed

EPOCHS = 4
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def prepare_loaders(data, checkpoint):
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)

    def encode(rows):
        return tokenizer(rows["sentence1"], rows["sentence2"], padding="max_length", truncation=True, max_length=80)

    splits = load_from_disk(data).map(encode, batched=True).with_format("torch")
    columns = ["input_ids", "token_type_ids", "attention_mask", "label"]
    splits = splits.select_columns(columns).rename_column("label", "labels")
    return DataLoader(splits["train"], batch_size=8, shuffle=True), DataLoader(splits["validation"], batch_size=8)


def build(checkpoint, steps):
    model = AutoModelForSequenceClassification.from_pretrained(checkpoint, num_labels=2).to(DEVICE)
    optimizer = AdamW(model.parameters(), lr=1e-3)
    scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=2, num_training_steps=steps)
    return model, optimizer, scheduler


def train_epoch(model, loader, optimizer, scheduler):
    model.train()
    for batch in loader:
        loss = model(**{name: values.to(DEVICE) for name, values in batch.items()}).loss
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct = total = 0
    for batch in loader:
        batch = {name: values.to(DEVICE) for name, values in batch.items()}
        predictions = model(**batch).logits.argmax(dim=-1)
        correct += (predictions == batch["labels"]).sum().item()
        total += len(predictions)
    return correct / total


def save(path, model, optimizer, scheduler, epoch):
    states = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}
    torch.save({**states, "epoch": epoch}, path)


def main(data, checkpoint, folder):
    set_seed(25)
    train_loader, eval_loader = prepare_loaders(data, checkpoint)
    steps = EPOCHS * len(train_loader)
    path = folder / "checkpoint.pt"

    model, optimizer, scheduler = build(checkpoint, steps)
    train_epoch(model, train_loader, optimizer, scheduler)
    save(path, model, optimizer, scheduler, epoch=1)

    model, optimizer, scheduler = build(checkpoint, steps)
    state = torch.load(path, map_location=DEVICE, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])

    best_accuracy = evaluate(model, eval_loader)
    best_state = copy.deepcopy(model.state_dict())
    for epoch in range(state["epoch"], EPOCHS):
        train_epoch(model, train_loader, optimizer, scheduler)
        accuracy = evaluate(model, eval_loader)
        print(f"epoch {epoch}: accuracy {accuracy:.4f}")
        if accuracy > best_accuracy:
            best_accuracy = accuracy
            best_state = copy.deepcopy(model.state_dict())

    model.load_state_dict(best_state)
    model.save_pretrained(folder / "best")
    reloaded = AutoModelForSequenceClassification.from_pretrained(folder / "best").to(DEVICE)
    print(f"best {best_accuracy:.4f}, reloaded {evaluate(reloaded, eval_loader):.4f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as output:
        main(sys.argv[1], sys.argv[2], Path(output))
