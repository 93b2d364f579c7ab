"""Fine-tune a twelve-layer BERT for toxicity with LoRA on the attention projections of every layer."""

import os

import torch
from peft import LoraConfig, TaskType, get_peft_model
from transformers import AutoModelForSequenceClassification, BertConfig, BertModel, get_linear_schedule_with_warmup

torch.manual_seed(27)


def comments(n, seed):
    gen = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 2, (n,), generator=gen)
    ids = torch.randint(20, 60, (n, 12), generator=gen)
    ids[:, 0] = 1
    where = torch.rand(n, 11, generator=gen).argsort(1)[:, :4] + 1
    ids.scatter_(1, where, 4 + 8 * y[:, None] + torch.randint(0, 8, (n, 4), generator=gen))
    return ids, y


def main():
    os.makedirs("out", exist_ok=True)
    config = BertConfig(
        vocab_size=60,
        hidden_size=16,
        num_hidden_layers=12,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
        initializer_range=0.25,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    BertModel(config).save_pretrained("out/base")
    base = AutoModelForSequenceClassification.from_pretrained("out/base", num_labels=2)
    lora = LoraConfig(
        task_type=TaskType.SEQ_CLS,
        r=4,
        lora_alpha=16,
        lora_dropout=0.0,
        target_modules=r".*encoder\.layer\.\d\.attention\.self\.(query|key|value)",
    )
    model = get_peft_model(base, lora)
    model.print_trainable_parameters()

    train_ids, train_y = comments(320, 1)
    test_ids, test_y = comments(200, 2)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    epochs, batch = 6, 32
    scheduler = get_linear_schedule_with_warmup(optimizer, 5, epochs * len(train_ids) // batch)

    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(train_ids)).split(batch):
            loss = model(input_ids=train_ids[idx], labels=train_y[idx]).loss
            loss.backward()
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            total += loss.item() * len(idx)
        model.eval()
        with torch.no_grad():
            acc = (model(input_ids=test_ids).logits.argmax(-1) == test_y).float().mean().item()
        print(f"epoch {epoch} loss {total / len(train_ids):.4f} acc {acc:.3f}")

    model.save_pretrained("out/toxicity_lora")


if __name__ == "__main__":
    main()
