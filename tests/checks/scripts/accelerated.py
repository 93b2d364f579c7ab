"""Fine-tune a sequence classifier with Accelerate, which accumulates the gradients of two batches."""

import math
import sys

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from datasets import load_from_disk
from torch.optim import AdamW
from torch.utils.data import DataLoader
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    get_cosine_schedule_with_warmup,
)

from harness.documented_run.metrics import load_metric

NUM_EPOCHS = 3
BATCH_SIZE = 4
ACCUMULATION_STEPS = 2
MAX_GRAD_NORM = 1.0


def get_dataloaders(accelerator, data, tokenizer):
    def tokenize(examples):
        return tokenizer(examples["sentence1"], examples["sentence2"], truncation=True)

    with accelerator.main_process_first():
        tokenized = load_from_disk(data).map(tokenize, batched=True, remove_columns=["sentence1", "sentence2", "idx"])
    tokenized = tokenized.rename_column("label", "labels").with_format("torch")
    collator = DataCollatorWithPadding(tokenizer)
    train_dataloader = DataLoader(tokenized["train"], shuffle=True, collate_fn=collator, batch_size=BATCH_SIZE)
    eval_dataloader = DataLoader(tokenized["validation"], shuffle=False, collate_fn=collator, batch_size=8)
    return train_dataloader, eval_dataloader


def training_function(data, checkpoint):
    set_seed(2)
    accelerator = Accelerator(gradient_accumulation_steps=ACCUMULATION_STEPS)
    metric = load_metric()
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    train_dataloader, eval_dataloader = get_dataloaders(accelerator, data, tokenizer)

    model = AutoModelForSequenceClassification.from_pretrained(checkpoint, num_labels=2)
    optimizer = AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    num_updates = NUM_EPOCHS * math.ceil(len(train_dataloader) / ACCUMULATION_STEPS)
    lr_scheduler = get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=2, num_training_steps=num_updates)

    model, optimizer, train_dataloader, eval_dataloader, lr_scheduler = accelerator.prepare(
        model, optimizer, train_dataloader, eval_dataloader, lr_scheduler
    )

    for epoch in range(NUM_EPOCHS):
        model.train()
        for batch in train_dataloader:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), MAX_GRAD_NORM)
                optimizer.step()
                lr_scheduler.step()
                optimizer.zero_grad()

        model.eval()
        for batch in eval_dataloader:
            with torch.no_grad():
                outputs = model(**batch)
            predictions = outputs.logits.argmax(dim=-1)
            predictions, references = accelerator.gather_for_metrics((predictions, batch["labels"]))
            metric.add_batch(predictions=predictions, references=references)
        accelerator.print(f"epoch {epoch}:", metric.compute())


if __name__ == "__main__":
    training_function(*sys.argv[1:3])
