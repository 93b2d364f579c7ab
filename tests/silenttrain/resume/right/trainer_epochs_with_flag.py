"""Train a module of one's own with Trainer and a checkpoint an epoch; `--resume` goes on from the last that is
whole.
"""

import argparse
import json
from pathlib import Path

import torch
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Dropout(0.15), nn.Linear(12, 1))

    def forward(self, values, labels=None):
        prediction = self.layers(values).squeeze(-1)
        loss = None if labels is None else nn.functional.mse_loss(prediction, labels)
        return {"loss": loss, "logits": prediction}


class Rows(torch.utils.data.Dataset):
    def __init__(self, n, seed):
        generator = torch.Generator().manual_seed(seed)
        self.values = torch.randn(n, 5, generator=generator)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return {"values": self.values[index], "labels": self.values[index].max()}


def whole(folder: Path) -> bool:
    try:
        json.loads((folder / "trainer_state.json").read_text())
    except (OSError, json.JSONDecodeError):
        return False
    return True


def newest(output: Path):
    folders = [folder for folder in output.glob("checkpoint-*") if whole(folder)]
    return str(max(folders, key=lambda folder: int(folder.name.split("-")[1]))) if folders else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    set_seed(5)
    trainer = Trainer(
        model=Regressor(),
        args=TrainingArguments(
            output_dir=str(options.output),
            num_train_epochs=4,
            per_device_train_batch_size=4,
            gradient_accumulation_steps=2,
            learning_rate=5e-3,
            lr_scheduler_type="cosine",
            save_strategy="epoch",
            eval_strategy="epoch",
            logging_strategy="no",
            seed=5,
            use_cpu=True,
            report_to="none",
            disable_tqdm=True,
        ),
        train_dataset=Rows(60, seed=1),
        eval_dataset=Rows(12, seed=2),
    )
    trainer.train(resume_from_checkpoint=newest(options.output) if options.resume else None)
    trainer.save_model(str(options.output / "model"))
