import tempfile

import torch
from datasets import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(0)
ids = torch.randint(1, 50, (48, 6))
rows = Dataset.from_dict({"input_ids": ids.tolist(), "labels": (ids[:, 0] > 25).long().tolist()})
config = BertConfig(
    vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_labels=2
)


def trainer_until(model, folder, updates):
    args = TrainingArguments(folder, max_steps=updates, save_steps=3, report_to="none", seed=1)
    return Trainer(model, args, train_dataset=rows)


with tempfile.TemporaryDirectory() as folder:
    model = BertForSequenceClassification(config)
    trainer_until(model, folder, 6).train()
    trainer_until(model, folder, 12).train(resume_from_checkpoint=f"{folder}/checkpoint-6")

    trainer = Trainer(
        model_init=lambda: BertForSequenceClassification(config),  # a new model for each trial
        args=TrainingArguments(folder, max_steps=9, save_strategy="no", report_to="none", seed=1),
        train_dataset=rows,
    )
    trainer.train()
    trainer.train()
