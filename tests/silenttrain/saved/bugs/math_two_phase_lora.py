"""Two-phase LoRA training of a small Llama: easy sequences first, then long ones."""

import os

import torch
from datasets import Dataset
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, set_seed

VOCAB = 48


def progressions(n, length, strides, seed):
    gen = torch.Generator().manual_seed(seed)
    start = torch.randint(0, VOCAB, (n, 1), generator=gen)
    stride = torch.tensor(strides)[torch.randint(0, len(strides), (n, 1), generator=gen)]
    ids = ((start + stride * torch.arange(length)) % VOCAB).tolist()
    return Dataset.from_dict({"input_ids": ids, "labels": ids})


def make_trainer(model, train, evaluation, steps, lr):
    args = TrainingArguments(
        output_dir="out/runs",
        max_steps=steps,
        per_device_train_batch_size=16,
        learning_rate=lr,
        warmup_steps=3,
        logging_steps=15,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
    )
    return Trainer(model=model, args=args, train_dataset=train, eval_dataset=evaluation)


def main():
    set_seed(61)
    os.makedirs("out", exist_ok=True)
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.1,
    )
    LlamaForCausalLM(config).save_pretrained("out/base")
    model = get_peft_model(
        AutoModelForCausalLM.from_pretrained("out/base"),
        LoraConfig(
            r=16,
            lora_alpha=32,
            target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
            task_type="CAUSAL_LM",
        ),
    )

    easy = progressions(240, 10, [1], seed=1)
    trainer = make_trainer(model, easy, progressions(60, 10, [1], seed=2), steps=60, lr=1e-2)
    trainer.train()
    print("phase one eval loss", round(trainer.evaluate()["eval_loss"], 4))
    model.save_pretrained("out/adapter")

    hard = progressions(320, 20, [2, 3], seed=3)
    trainer = make_trainer(model, hard, progressions(60, 20, [2, 3], seed=4), steps=75, lr=8e-3)
    trainer.train()
    print("phase two eval loss", round(trainer.evaluate()["eval_loss"], 4))
    print("adapter in", os.path.abspath("out/adapter"))


if __name__ == "__main__":
    main()
