"""A bi-encoder for pairs of sentences with sentence-transformers, evaluated after each epoch."""

import sys

import torch
from datasets import load_from_disk
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
    losses,
)

data, checkpoint = sys.argv[1:3]
torch.manual_seed(29)

raw_datasets = load_from_disk(data).remove_columns("idx")
train_dataset = raw_datasets["train"]
eval_dataset = raw_datasets["validation"]

model = SentenceTransformer(checkpoint, device="cpu")
loss = losses.OnlineContrastiveLoss(model)
arguments = SentenceTransformerTrainingArguments(
    "out",
    num_train_epochs=2,
    per_device_train_batch_size=8,
    eval_strategy="epoch",
    save_strategy="no",
    report_to="none",
    use_cpu=True,
    disable_tqdm=True,
)
trainer = SentenceTransformerTrainer(
    model=model,
    args=arguments,
    train_dataset=train_dataset,
    eval_dataset=eval_dataset,
    loss=loss,
)
trainer.train()
print(model.encode(["A sentence.", "Another one."]).shape)
