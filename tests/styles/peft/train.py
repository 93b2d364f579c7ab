"""Low-rank adapters for a BERT that classifies pairs, in a plain loop, with an evaluation after each epoch."""

import sys

import torch
from datasets import load_from_disk
from peft import LoraConfig, TaskType, get_peft_model
from torch.optim import AdamW
from torch.utils.data import DataLoader
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    get_scheduler,
    set_seed,
)

data, checkpoint = sys.argv[1:3]
set_seed(17)
EPOCHS = 2

raw_datasets = load_from_disk(data)
tokenizer = AutoTokenizer.from_pretrained(checkpoint)
tokenized = raw_datasets.map(
    lambda rows: tokenizer(rows["sentence1"], rows["sentence2"], truncation=True),
    batched=True,
    remove_columns=["sentence1", "sentence2", "idx"],
).rename_column("label", "labels")
collate = DataCollatorWithPadding(tokenizer)
train_dataloader = DataLoader(tokenized["train"], batch_size=8, shuffle=True, collate_fn=collate)
eval_dataloader = DataLoader(tokenized["validation"], batch_size=8, collate_fn=collate)

model = AutoModelForSequenceClassification.from_pretrained(checkpoint, num_labels=2)
config = LoraConfig(task_type=TaskType.SEQ_CLS, r=4, lora_alpha=8, target_modules=["query", "value"])
model = get_peft_model(model, config)
optimizer = AdamW(model.parameters(), lr=1e-3)
planned = EPOCHS * len(train_dataloader)
lr_scheduler = get_scheduler("linear", optimizer=optimizer, num_warmup_steps=0, num_training_steps=planned)

for epoch in range(EPOCHS):
    model.train()
    for batch in train_dataloader:
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        lr_scheduler.step()
        optimizer.zero_grad()

    model.eval()
    right, rows = 0, 0
    for batch in eval_dataloader:
        with torch.no_grad():
            logits = model(**batch).logits
        right += (logits.argmax(dim=-1) == batch["labels"]).sum().item()
        rows += len(batch["labels"])
    print(f"epoch {epoch}: accuracy {right / rows:.3f}")
