"""Fine-tune the head of a sequence classifier first, and then the whole model."""

import sys

import torch
from datasets import load_from_disk
from torch.optim import AdamW
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding, set_seed

from harness.documented_run.metrics import load_metric

BATCH_SIZE = 8


def load_splits(data, tokenizer):
    splits = load_from_disk(data).rename_column("label", "labels")
    return splits.map(
        lambda rows: tokenizer(rows["sentence1"], rows["sentence2"], truncation=True),
        batched=True,
        remove_columns=["sentence1", "sentence2", "idx"],
    )


def fit(model, loader, optimizer, epochs):
    scheduler = CosineAnnealingLR(optimizer, T_max=epochs * len(loader))
    model.train()
    for epoch in range(epochs):
        for batch in loader:
            batch = batch.to(model.device)
            loss = model(**batch).loss
            loss.backward()
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        print(f"epoch {epoch}: loss of the last batch {loss.item():.4f}")


def score(model, loader):
    metric = load_metric()
    model.eval()
    with torch.no_grad():
        for batch in loader:
            batch = batch.to(model.device)
            predictions = model(**batch).logits.argmax(dim=-1)
            metric.add_batch(predictions=predictions, references=batch["labels"])
    return metric.compute()


def main():
    data, checkpoint = sys.argv[1:3]
    set_seed(11)
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    splits = load_splits(data, tokenizer)
    collator = DataCollatorWithPadding(tokenizer)
    train_loader = DataLoader(splits["train"], batch_size=BATCH_SIZE, shuffle=True, collate_fn=collator)
    eval_loader = DataLoader(splits["validation"], batch_size=BATCH_SIZE, collate_fn=collator)

    model = AutoModelForSequenceClassification.from_pretrained(checkpoint, num_labels=2)
    model.to("cuda" if torch.cuda.is_available() else "cpu")

    model.bert.requires_grad_(False)
    head_optimizer = AdamW(model.classifier.parameters(), lr=1e-3)
    fit(model, train_loader, head_optimizer, epochs=1)
    print("head:", score(model, eval_loader))

    model.bert.requires_grad_(True)
    optimizer = AdamW(
        [
            {"params": model.bert.parameters(), "lr": 8e-4},
            {"params": model.classifier.parameters(), "lr": 1e-3},
        ],
        weight_decay=0.01,
    )
    fit(model, train_loader, optimizer, epochs=3)
    print("all:", score(model, eval_loader))


if __name__ == "__main__":
    main()
