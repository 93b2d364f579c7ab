"""Train a small GPT-2 with the Trainer, rotating intermediate checkpoints and saving the last weights too."""

import os

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

VOCAB = 41


def stories(n, seed):
    gen = torch.Generator().manual_seed(seed)
    hero = torch.randint(2, 12, (n, 1), generator=gen)
    place = torch.randint(12, 22, (n, 1), generator=gen)
    template = torch.tensor([22, 23, 24, 25, 26, 27]).expand(n, 6)
    ids = torch.cat([hero, template[:, :2], place, template[:, 2:4], hero, place, template[:, 4:], hero + 28], dim=1)
    return Dataset.from_dict({"input_ids": ids.tolist(), "labels": ids.tolist()})


def main():
    set_seed(210)
    config = GPT2Config(
        vocab_size=VOCAB, n_positions=16, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=1
    )
    GPT2LMHeadModel(config).save_pretrained("out/base")
    model = AutoModelForCausalLM.from_pretrained("out/base")
    args = TrainingArguments(
        output_dir="out/runs",
        max_steps=100,
        per_device_train_batch_size=16,
        learning_rate=4e-3,
        logging_steps=20,
        eval_strategy="steps",
        eval_steps=20,
        save_strategy="steps",
        save_steps=20,
        save_total_limit=2,
        report_to="none",
        use_cpu=True,
    )
    held_out = stories(64, 2)
    trainer = Trainer(model=model, args=args, train_dataset=stories(320, 1), eval_dataset=held_out)
    trainer.train()
    trainer.save_model("out/stories")
    trainer.save_state()
    print("kept:", sorted(d for d in os.listdir("out/runs") if d.startswith("checkpoint")))
    print("eval loss:", round(trainer.evaluate()["eval_loss"], 4))

    final = AutoModelForCausalLM.from_pretrained("out/stories").eval()
    ids = torch.tensor(held_out["input_ids"])
    trainer.model.eval()
    with torch.no_grad():
        difference = (final(input_ids=ids).logits - trainer.model(input_ids=ids).logits).abs().max().item()
    print(f"saved model differs from the one in memory by at most {difference:.2g}")


if __name__ == "__main__":
    main()
