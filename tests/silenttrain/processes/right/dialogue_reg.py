import tempfile

import torch
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, set_seed

REG = 0.3


def dialogues(n=640, vocab=96, seed=12):
    g = torch.Generator().manual_seed(seed)
    table = torch.randint(4, vocab, (vocab, 2), generator=g)
    data = []
    for _ in range(n):
        turn = [int(torch.randint(4, vocab, (), generator=g))]
        for _ in range(int(torch.randint(4, 28, (), generator=g))):
            turn.append(int(table[turn[-1], int(torch.rand((), generator=g) < 0.2)]))
        data.append({"input_ids": turn})
    return data


def collate(batch):
    width = max(len(b["input_ids"]) for b in batch)
    ids = torch.zeros(len(batch), width, dtype=torch.long)
    labels = torch.full((len(batch), width), -100)
    for i, b in enumerate(batch):
        t = torch.tensor(b["input_ids"])
        ids[i, : len(t)] = t
        labels[i, : len(t)] = t
    return {"input_ids": ids, "attention_mask": (labels != -100).long(), "labels": labels}


class RegularizedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs["labels"][:, 1:]
        out = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
        logits = out.logits[:, :-1]
        world = self.accelerator.num_processes
        nll = F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=-100, reduction="sum")
        nll = nll / num_items_in_batch
        size = self.accelerator.unwrap_model(model).lm_head.weight.pow(2).sum(-1).mean()
        loss = nll * world + REG * size
        return (loss, out) if return_outputs else loss


def main():
    set_seed(4)
    cfg = LlamaConfig(
        vocab_size=96,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=64,
    )
    model = LlamaForCausalLM(cfg)
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        use_cpu=True,
        max_steps=50,
        per_device_train_batch_size=8,
        learning_rate=5e-3,
        lr_scheduler_type="cosine",
        logging_steps=10,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
    )
    RegularizedTrainer(model=model, args=args, train_dataset=dialogues(), data_collator=collate).train()


main()
