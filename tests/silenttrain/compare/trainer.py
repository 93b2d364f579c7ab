"""A tiny BERT on sentences of different lengths, trained by the Trainer of Transformers."""

import random
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed


class Sentences(Dataset):
    """Sentences of 5 to 16 tokens; the label says whether the first word stands in the vocabulary's first half."""

    def __init__(self, count, seed):
        draw = random.Random(seed)
        self.rows = []
        for _ in range(count):
            words = [draw.randrange(3, 200) for _ in range(draw.randint(3, 14))]
            self.rows.append({"input_ids": [1, *words, 2], "labels": int(words[0] < 100)})

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


def collate(rows):
    longest = max(len(row["input_ids"]) for row in rows)
    missing = [longest - len(row["input_ids"]) for row in rows]
    return {
        "input_ids": torch.tensor([row["input_ids"] + [0] * n for row, n in zip(rows, missing, strict=True)]),
        "attention_mask": torch.tensor(
            [[1] * len(row["input_ids"]) + [0] * n for row, n in zip(rows, missing, strict=True)]
        ),
        "labels": torch.tensor([row["labels"] for row in rows]),
    }


def main():
    set_seed(0)
    config = BertConfig(
        vocab_size=200,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=32,
        num_labels=2,
    )
    model = BertForSequenceClassification(config)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            num_train_epochs=2,
            per_device_train_batch_size=8,
            learning_rate=2e-3,
            weight_decay=0.01,
            warmup_steps=2,
            optim="adamw_torch",
            max_grad_norm=1.0,
            seed=42,
            logging_steps=6,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
        )
        trainer = Trainer(model=model, args=arguments, train_dataset=Sentences(48, seed=21), data_collator=collate)
        result = trainer.train()
    print(f"{result.global_step} updates, mean loss {result.training_loss:.4f}")


if __name__ == "__main__":
    main()
