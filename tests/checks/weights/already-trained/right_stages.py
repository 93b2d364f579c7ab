import itertools
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


seeds = itertools.count()


class AnotherTrainer(Trainer):
    """As another library has it."""


def train(model, *, kind=Trainer, data=rows, lr=1e-3):
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            folder, learning_rate=lr, num_train_epochs=1, save_strategy="no", report_to="none", seed=next(seeds)
        )
        kind(model, args, train_dataset=data).train()


model = BertForSequenceClassification(config)
beginning = {name: tensor.clone() for name, tensor in model.state_dict().items()}

model.bert.requires_grad_(False)
train(model)  # the head first,
model.bert.requires_grad_(True)
train(model)  # then all,
train(model, lr=1e-4)  # and at last with smaller steps

for size in (16, 32, 48):  # a curriculum
    train(model, data=rows.select(range(size)))
train(model, data=rows, kind=AnotherTrainer)  # preferences after supervised tuning, say

model.load_state_dict(beginning)  # another training, from the beginning
train(model)
with torch.no_grad():
    for matrix in model.parameters():
        matrix.mul_((matrix.abs() > 0.01).float())  # pruned, and tuned again
train(model)
