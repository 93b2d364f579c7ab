"""LoRA fine-tuning of a spam filter with the Trainer; the merged model is what gets published."""

import numpy as np
from datasets import Dataset
from peft import LoraConfig, TaskType, get_peft_model
from transformers import (
    AutoModelForSequenceClassification,
    DistilBertConfig,
    DistilBertModel,
    Trainer,
    TrainingArguments,
    set_seed,
)


def mails(n, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    ids = rng.integers(24, 80, (n, 12))
    for row, label in zip(ids, labels, strict=True):
        row[rng.permutation(12)[:5]] = 4 + 10 * label + rng.integers(0, 10, 5)
    return Dataset.from_dict({"input_ids": ids.tolist(), "labels": labels.tolist()})


def metrics(pred):
    return {"accuracy": float((pred.predictions.argmax(-1) == pred.label_ids).mean())}


def arguments(**overrides):
    return TrainingArguments(
        output_dir="out/runs",
        per_device_train_batch_size=16,
        per_device_eval_batch_size=64,
        num_train_epochs=4,
        learning_rate=5e-3,
        logging_strategy="epoch",
        eval_strategy="epoch",
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        label_names=["labels"],
        **overrides,
    )


def main():
    set_seed(206)
    config = DistilBertConfig(
        vocab_size=80, dim=32, hidden_dim=64, n_layers=2, n_heads=4, max_position_embeddings=16, initializer_range=0.1
    )
    DistilBertModel(config).save_pretrained("out/base")
    model = AutoModelForSequenceClassification.from_pretrained("out/base", num_labels=2)
    lora = LoraConfig(
        task_type=TaskType.SEQ_CLS,
        r=8,
        lora_alpha=16,
        target_modules=["q_lin", "k_lin", "v_lin", "out_lin"],
        modules_to_save=["pre_classifier", "classifier"],
    )
    model = get_peft_model(model, lora)
    model.print_trainable_parameters()
    test = mails(160, 2)
    trainer = Trainer(
        model=model, args=arguments(), train_dataset=mails(400, 1), eval_dataset=test, compute_metrics=metrics
    )
    trainer.train()
    before = trainer.evaluate()["eval_accuracy"]

    merged = trainer.model.merge_and_unload()
    merged.save_pretrained("out/spam_filter")

    published = AutoModelForSequenceClassification.from_pretrained("out/spam_filter")
    check = Trainer(model=published, args=arguments(), eval_dataset=test, compute_metrics=metrics)
    print(f"accuracy with adapter {before:.3f}, published model {check.evaluate()['eval_accuracy']:.3f}")


if __name__ == "__main__":
    main()
