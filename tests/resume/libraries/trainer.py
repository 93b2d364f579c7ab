"""transformers' Trainer, which goes on from the last checkpoint as its examples do."""

import os

import torch
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed
from transformers.trainer_utils import get_last_checkpoint


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.head = nn.Linear(6, 12), nn.Linear(12, 2)

    def forward(self, features, labels):
        logits = self.head(torch.relu(self.hidden(features)))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


set_seed(1)
features = torch.randn(48, 6)
rows = [{"features": each, "labels": int(each[0] > 0)} for each in features]
arguments = TrainingArguments(
    output_dir="out",
    num_train_epochs=3,
    per_device_train_batch_size=8,
    learning_rate=1e-2,
    save_strategy="steps",
    save_steps=4,
    save_total_limit=2,
    logging_steps=4,
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
)
trainer = Trainer(model=Classifier(), args=arguments, train_dataset=rows)
trainer.train(resume_from_checkpoint=get_last_checkpoint("out") if os.path.isdir("out") else None)
