"""Fine-tune a small GPT-2 on lyric-like lines with the Trainer and keep the best checkpoint by perplexity."""

import math

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

VOCAB = 56


def lines(n, seed):
    """Verses of rhyming pairs: every second token depends on the one before it."""
    gen = torch.Generator().manual_seed(seed)
    first = torch.randint(2, 28, (n, 8), generator=gen)
    second = first + 26
    ids = torch.stack([first, second], dim=-1).flatten(1)
    return Dataset.from_dict({"input_ids": ids.tolist(), "labels": ids.tolist()})


def preprocess_logits(logits, labels):
    shifted = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), reduction="none")
    return shifted.view(labels.shape[0], -1)


def compute_metrics(pred):
    return {"perplexity": math.exp(float(pred.predictions.mean()))}


def main():
    set_seed(80)
    config = GPT2Config(
        vocab_size=VOCAB, n_positions=32, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=1
    )
    GPT2LMHeadModel(config).save_pretrained("out/base")
    model = AutoModelForCausalLM.from_pretrained("out/base")

    args = TrainingArguments(
        output_dir="out/runs",
        per_device_train_batch_size=16,
        per_device_eval_batch_size=32,
        num_train_epochs=5,
        learning_rate=3e-3,
        weight_decay=0.01,
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="epoch",
        save_total_limit=2,
        load_best_model_at_end=True,
        metric_for_best_model="perplexity",
        report_to="none",
        use_cpu=True,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=lines(320, 1),
        eval_dataset=lines(96, 2),
        compute_metrics=compute_metrics,
        preprocess_logits_for_metrics=preprocess_logits,
    )
    trainer.train()
    print("best checkpoint:", trainer.state.best_model_checkpoint, "metric:", trainer.state.best_metric)
    trainer.save_model("out/lyrics_lm")


if __name__ == "__main__":
    main()
