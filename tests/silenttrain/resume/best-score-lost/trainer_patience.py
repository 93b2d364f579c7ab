"""Stop Trainer early by a patience whose count is not restored from the checkpoint: a restarted run trains on
where it should stop.
"""

import json
import os

import torch
from torch import nn
from transformers import EarlyStoppingCallback, Trainer, TrainingArguments, set_seed

OUT = "patience-out"


class Overfit(nn.Module):
    def __init__(self):
        super().__init__()
        self.stack = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, features, labels=None):
        scores = self.stack(features).squeeze(-1)
        return {"loss": nn.functional.mse_loss(scores, labels), "logits": scores}


def noisy(count, seed):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(count, 12, generator=generator)
    labels = features[:, 0] + 2 * torch.randn(count, generator=generator)
    return [{"features": row, "labels": label} for row, label in zip(features, labels, strict=True)]


def usable(name):
    try:
        with open(os.path.join(OUT, name, "trainer_state.json")) as state:
            json.load(state)
    except (OSError, ValueError):
        return False
    return name.startswith("checkpoint-")


set_seed(93)
arguments = TrainingArguments(
    OUT,
    num_train_epochs=12,
    per_device_train_batch_size=8,
    learning_rate=2e-2,
    lr_scheduler_type="constant",
    eval_strategy="epoch",
    save_strategy="epoch",
    logging_strategy="epoch",
    load_best_model_at_end=True,
    metric_for_best_model="eval_loss",
    greater_is_better=False,
    seed=93,
    use_cpu=True,
    report_to="none",
    disable_tqdm=True,
)
trainer = Trainer(
    Overfit(),
    arguments,
    train_dataset=noisy(40, 1),
    eval_dataset=noisy(24, 2),
    callbacks=[EarlyStoppingCallback(early_stopping_patience=4)],
)
usable_names = [name for name in os.listdir(OUT) if usable(name)] if os.path.isdir(OUT) else []
newest = max(usable_names, key=lambda name: int(name.split("-")[1]), default=None)
trainer.train(resume_from_checkpoint=os.path.join(OUT, newest) if newest else None)
trainer.save_model(os.path.join(OUT, "best"))
