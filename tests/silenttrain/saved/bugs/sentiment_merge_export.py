"""Fine-tune a RoBERTa-style sentiment model with LoRA, fold the weights in and export."""

import os

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForSequenceClassification, RobertaConfig, RobertaForSequenceClassification

torch.manual_seed(70)


def sentences(n, seed):
    gen = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=gen)
    ids = torch.randint(30, 80, (n, 12), generator=gen)
    ids[:, 0] = 0
    where = torch.rand(n, 11, generator=gen).argsort(1)[:, :5] + 1
    ids.scatter_(1, where, 5 + 8 * y[:, None] + torch.randint(0, 8, (n, 5), generator=gen))
    return ids, y


def loop(model, optimizer, ids, y, epochs, tag):
    for epoch in range(epochs):
        model.train()
        losses = []
        for idx in torch.randperm(len(ids)).split(32):
            loss = model(input_ids=ids[idx], labels=y[idx]).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"{tag} epoch {epoch} loss {sum(losses) / len(losses):.3f}")


@torch.no_grad()
def accuracy(model, ids, y):
    model.eval()
    return (model(input_ids=ids).logits.argmax(-1) == y).float().mean().item()


os.makedirs("out", exist_ok=True)
config = RobertaConfig(
    vocab_size=80,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=20,
    num_labels=3,
    initializer_range=0.1,
)
RobertaForSequenceClassification(config).save_pretrained("out/base")
model = AutoModelForSequenceClassification.from_pretrained("out/base")
for p in model.classifier.parameters():
    p.requires_grad = True

lora = LoraConfig(r=8, lora_alpha=32, target_modules=["query", "key", "value", "dense"])
model = get_peft_model(model, lora)
model.print_trainable_parameters()

train_ids, train_y = sentences(400, 1)
test_ids, test_y = sentences(200, 2)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=8e-3)
loop(model, optimizer, train_ids, train_y, epochs=6, tag="lora")
print(f"accuracy with adapter {accuracy(model, test_ids, test_y):.3f}")

model.merge_and_unload()
print(f"accuracy after merging {accuracy(model, test_ids, test_y):.3f}")
model.save_pretrained("out/sentiment_merged")
