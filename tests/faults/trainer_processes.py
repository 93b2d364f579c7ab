"""BERT's classifier under Trainer in two processes, which should train like one with batches twice as large."""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(0)
config = BertConfig(
    vocab_size=100, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, pad_token_id=0
)
ids = torch.randint(1, 100, (64, 8))
rows = [{"input_ids": row, "attention_mask": torch.ones_like(row), "labels": int(row[0] > 50)} for row in ids]

with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        per_device_train_batch_size=4,
        num_train_epochs=1,
        report_to="none",
        save_strategy="no",
    )
    Trainer(BertForSequenceClassification(config), arguments, train_dataset=rows).train()
