"""Train a small network with Trainer, which saves every 6 steps, but train() is not given a checkpoint: each
start is from nothing.
"""

import torch
from torch import nn
from transformers import Trainer, TrainingArguments


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 14)
        self.fc2 = nn.Linear(14, 2)

    def forward(self, x, labels=None):
        logits = self.fc2(torch.relu(self.fc1(x)))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


torch.manual_seed(1)
points = torch.randn(64, 6)
train_dataset = [{"x": point, "labels": int(point.sum() > 0)} for point in points]

training_args = TrainingArguments(
    output_dir="net-output",
    num_train_epochs=3,
    per_device_train_batch_size=4,
    learning_rate=1e-2,
    save_steps=6,
    save_total_limit=2,
    logging_steps=10,
    use_cpu=True,
    report_to="none",
    disable_tqdm=True,
)
trainer = Trainer(model=Net(), args=training_args, train_dataset=train_dataset)
trainer.train()
trainer.save_model("net-output/last")
