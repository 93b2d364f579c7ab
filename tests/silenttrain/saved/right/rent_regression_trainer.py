"""Regress rents from listing tokens with the Trainer and keep the checkpoint with the lowest mean absolute error."""

import numpy as np
from datasets import Dataset
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    BertModel,
    Trainer,
    TrainingArguments,
    set_seed,
)


def listings(n, seed):
    rng = np.random.default_rng(seed)
    ids = rng.integers(2, 42, (n, 10))
    worth = np.where(ids < 22, 1.0, -1.0) * (ids < 32)
    labels = (worth.mean(1) * 2 + 0.1 * rng.standard_normal(n)).astype(np.float32)
    return Dataset.from_dict({"input_ids": ids.tolist(), "labels": labels.tolist()})


def mae(pred):
    return {"mae": float(np.abs(pred.predictions.squeeze(-1) - pred.label_ids).mean())}


def main():
    set_seed(235)
    config = BertConfig(
        vocab_size=42,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=16,
    )
    BertModel(config).save_pretrained("out/base")
    model = AutoModelForSequenceClassification.from_pretrained("out/base", num_labels=1, problem_type="regression")
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir="out/runs",
            per_device_train_batch_size=16,
            num_train_epochs=6,
            learning_rate=6e-3,
            lr_scheduler_type="constant",
            eval_strategy="epoch",
            save_strategy="epoch",
            logging_strategy="epoch",
            load_best_model_at_end=True,
            metric_for_best_model="mae",
            greater_is_better=False,
            save_total_limit=2,
            report_to="none",
            use_cpu=True,
        ),
        train_dataset=listings(320, 1),
        eval_dataset=listings(160, 2),
        compute_metrics=mae,
    )
    trainer.train()
    history = [round(row["eval_mae"], 4) for row in trainer.state.log_history if "eval_mae" in row]
    print("mae per epoch:", history)
    print("best:", trainer.state.best_model_checkpoint, "mae of the loaded model:", trainer.evaluate()["eval_mae"])
    trainer.save_model("out/rent")


if __name__ == "__main__":
    main()
