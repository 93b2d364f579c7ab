"""Resume Trainer from get_last_checkpoint, which takes the newest folder by its number, though a save into it
may have been cut short.
"""

import os

import torch
from transformers import BertConfig, BertForTokenClassification, Trainer, TrainingArguments, set_seed
from transformers.trainer_utils import get_last_checkpoint


def make_examples(n):
    torch.manual_seed(81)
    examples = []
    for _ in range(n):
        ids = torch.randint(1, 24, (6,))
        examples.append({"input_ids": ids, "attention_mask": torch.ones(6, dtype=torch.long), "labels": ids % 2})
    return examples


def main():
    set_seed(81)
    config = BertConfig(
        vocab_size=24,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=8,
        num_labels=2,
    )
    training_args = TrainingArguments(
        output_dir="tagger-out",
        num_train_epochs=2,
        per_device_train_batch_size=4,
        learning_rate=2e-3,
        save_strategy="steps",
        save_steps=6,
        seed=81,
        data_seed=82,
        logging_steps=4,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
    )
    last_checkpoint = None
    if os.path.isdir(training_args.output_dir):
        last_checkpoint = get_last_checkpoint(training_args.output_dir)
        print(f"Checkpoint detected, resuming training at {last_checkpoint}.")
    trainer = Trainer(model=BertForTokenClassification(config), args=training_args, train_dataset=make_examples(60))
    trainer.train(resume_from_checkpoint=last_checkpoint)
    trainer.save_model("tagger-out/tagger")


if __name__ == "__main__":
    main()
