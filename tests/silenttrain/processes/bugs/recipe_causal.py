import tempfile

import torch
import torch.nn.functional as F
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

VOCAB = 64


class Recipes(Dataset):
    """Prompt tokens are masked; only the recipe part is taught."""

    def __init__(self, n):
        g = torch.Generator().manual_seed(3)
        self.rows = []
        for _ in range(n):
            start = int(torch.randint(4, VOCAB, (), generator=g))
            step = int(torch.randint(1, 5, (), generator=g))
            length = int(torch.randint(3, 40, (), generator=g))
            prompt = [1, start, step, 2]
            body = [(start + step * (i + 1)) % (VOCAB - 4) + 4 for i in range(length)]
            self.rows.append((prompt, body))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        prompt, body = self.rows[i]
        return {"ids": prompt + body, "taught": [-100] * len(prompt) + body}


def collate(rows):
    n = max(len(r["ids"]) for r in rows)
    pad = lambda seq, v: seq + [v] * (n - len(seq))
    return {
        "input_ids": torch.tensor([pad(r["ids"], 0) for r in rows]),
        "attention_mask": torch.tensor([pad([1] * len(r["ids"]), 0) for r in rows]),
        "labels": torch.tensor([pad(r["taught"], -100) for r in rows]),
    }


class SmoothedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        out = model(**inputs)
        logits = out.logits[:, :-1].flatten(0, 1)
        target = labels[:, 1:].flatten()
        loss = F.cross_entropy(logits, target, ignore_index=-100, label_smoothing=0.05, reduction="sum")
        loss = loss / num_items_in_batch
        return (loss, out) if return_outputs else loss


if __name__ == "__main__":
    set_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=VOCAB,
            n_positions=64,
            n_embd=32,
            n_layer=2,
            n_head=2,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=1,
            eos_token_id=2,
        )
    )
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        use_cpu=True,
        max_steps=40,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        optim="sgd",
        learning_rate=0.3,
        lr_scheduler_type="constant",
        max_grad_norm=0.0,
        logging_steps=10,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        seed=0,
        remove_unused_columns=False,
    )
    SmoothedTrainer(model=model, args=args, train_dataset=Recipes(800), data_collator=collate).train()
