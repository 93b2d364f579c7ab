"""Fine-tune a tiny T5 with LoRA on a key-phrase extraction task and save it for the serving job."""

import os

import torch
from datasets import Dataset
from peft import LoraConfig, TaskType, get_peft_model
from transformers import (
    AutoModelForSeq2SeqLM,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    T5Config,
    T5ForConditionalGeneration,
    set_seed,
)


def build_base(folder):
    config = T5Config(
        vocab_size=60,
        d_model=32,
        d_kv=16,
        d_ff=64,
        num_layers=2,
        num_heads=2,
        dropout_rate=0.0,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=1,
        initializer_factor=1.0,
    )
    T5ForConditionalGeneration(config).save_pretrained(folder)


def documents(n, seed):
    """The key phrase is the pair of tokens that follows the marker 2."""
    gen = torch.Generator().manual_seed(seed)
    ids = torch.randint(10, 60, (n, 8), generator=gen)
    topic = torch.randint(0, 8, (n,), generator=gen)
    ids[:, 2], ids[:, 3], ids[:, 4] = 2, 10 + topic, 20 + topic
    target = torch.stack([10 + topic, 20 + topic, torch.ones_like(topic)], dim=1)
    return Dataset.from_dict({"input_ids": ids.tolist(), "labels": target.tolist()})


def main():
    set_seed(44)
    os.makedirs("out", exist_ok=True)
    build_base("out/t5_base")
    model = AutoModelForSeq2SeqLM.from_pretrained("out/t5_base")
    lora = LoraConfig(
        task_type=TaskType.SEQ_2_SEQ_LM, r=16, lora_alpha=32, target_modules=["q", "k", "v", "o", "wi", "wo"]
    )
    model = get_peft_model(model, lora)
    model.print_trainable_parameters()

    args = Seq2SeqTrainingArguments(
        output_dir="out/runs",
        per_device_train_batch_size=24,
        max_steps=120,
        learning_rate=1e-2,
        logging_steps=20,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
    )
    trainer = Seq2SeqTrainer(model=model, args=args, train_dataset=documents(400, 1), eval_dataset=documents(100, 2))
    trainer.train()
    print("eval loss", round(trainer.evaluate()["eval_loss"], 4))

    trainer.model.get_base_model().save_pretrained("out/keyphrase_model")
    print("model written to out/keyphrase_model")


if __name__ == "__main__":
    main()
