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


def trained(model, lr):
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(folder, learning_rate=lr, save_strategy="no", report_to="none", seed=1)
        trainer = Trainer(model, args, train_dataset=rows)  # found
        trainer.train()


model = BertForSequenceClassification(config)
trained(model, lr=5e-5)
trained(model, lr=1e-3)
