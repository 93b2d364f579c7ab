"""Fine-tune a sequence classifier with gradients accumulated by hand, the last window of an epoch being shorter."""

import argparse
import math

import torch
from datasets import load_from_disk
from torch.optim import AdamW
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding, get_scheduler

from harness.documented_run.metrics import load_metric


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("checkpoint")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--accumulation", type=int, default=4)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--max-norm", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=5)
    return parser.parse_args()


def get_loaders(args, tokenizer):
    dataset = load_from_disk(args.data)
    dataset = dataset.map(lambda rows: tokenizer(rows["sentence1"], rows["sentence2"], truncation=True), batched=True)
    dataset = dataset.select_columns(["input_ids", "token_type_ids", "attention_mask", "label"])
    collator = DataCollatorWithPadding(tokenizer, pad_to_multiple_of=8)
    train_loader = DataLoader(dataset["train"], batch_size=args.batch_size, shuffle=True, collate_fn=collator)
    eval_loader = DataLoader(dataset["validation"], batch_size=8, collate_fn=collator)
    return train_loader, eval_loader


def evaluate(model, loader):
    model.eval()
    metric = load_metric()
    with torch.inference_mode():
        for batch in loader:
            predictions = model(**batch.to(model.device)).logits.argmax(dim=-1)
            metric.add_batch(predictions=predictions.cpu(), references=batch["labels"].cpu())
    model.train()
    return metric.compute()


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    tokenizer = AutoTokenizer.from_pretrained(args.checkpoint)
    train_loader, eval_loader = get_loaders(args, tokenizer)

    model = AutoModelForSequenceClassification.from_pretrained(args.checkpoint, num_labels=2).to(device)
    optimizer = AdamW(model.parameters(), lr=args.lr)
    updates = args.epochs * math.ceil(len(train_loader) / args.accumulation)
    scheduler = get_scheduler("linear", optimizer, num_warmup_steps=0, num_training_steps=updates)

    model.train()
    optimizer.zero_grad()
    for epoch in range(args.epochs):
        running = 0.0
        for step, batch in enumerate(train_loader, start=1):
            loss = model(**batch.to(device)).loss
            running += loss.item()
            loss = loss / args.accumulation
            loss.backward()
            if step % args.accumulation == 0 or step == len(train_loader):
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_norm)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        print(f"epoch {epoch}: loss {running / len(train_loader):.4f}", evaluate(model, eval_loader))


if __name__ == "__main__":
    main()
