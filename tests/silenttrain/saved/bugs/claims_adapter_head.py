"""Train a task adapter and a scoring head for insurance claims, next to an adapter shared by the team."""

import os

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import nn
from transformers import AutoModel, BertConfig, BertModel

torch.manual_seed(23)


def claims(n, seed):
    gen = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=gen)
    ids = torch.randint(40, 100, (n, 12), generator=gen)
    ids[:, 0] = 1
    where = torch.rand(n, 11, generator=gen).argsort(1)[:, :4] + 1
    ids.scatter_(1, where, 4 + 10 * y[:, None] + torch.randint(0, 10, (n, 4), generator=gen))
    return ids, y


class ClaimScorer(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(32, 3)

    def forward(self, ids):
        return self.head(self.encoder(input_ids=ids).last_hidden_state.mean(1))


@torch.no_grad()
def accuracy(model, ids, y):
    model.eval()
    return (model(ids).argmax(-1) == y).float().mean().item()


os.makedirs("out", exist_ok=True)
config = BertConfig(
    vocab_size=100,
    hidden_size=32,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=16,
    initializer_range=0.1,
)
BertModel(config).save_pretrained("out/base")
shared = get_peft_model(
    AutoModel.from_pretrained("out/base"),
    LoraConfig(r=4, target_modules=["query", "value"], init_lora_weights=False),
    adapter_name="shared",
)
shared.save_pretrained("out/team")

encoder = AutoModel.from_pretrained("out/base")
task_config = LoraConfig(r=8, lora_alpha=16, target_modules=["query", "key", "value", "dense"])
peft_encoder = get_peft_model(encoder, task_config, adapter_name="claims")
assert isinstance(peft_encoder, PeftModel)
peft_encoder.load_adapter("out/team/shared", adapter_name="shared")
model = ClaimScorer(peft_encoder)

train_ids, train_y = claims(360, 1)
test_ids, test_y = claims(200, 2)

peft_encoder.set_adapter("shared")
print(f"shared adapter before training: acc {accuracy(model, test_ids, test_y):.3f}")

adapter_params = [p for n, p in model.named_parameters() if ".claims." in n]
optimizer = torch.optim.AdamW([{"params": adapter_params, "lr": 5e-3}, {"params": model.head.parameters(), "lr": 1e-2}])
for epoch in range(6):
    model.train()
    losses = []
    for idx in torch.randperm(len(train_ids)).split(24):
        loss = nn.functional.cross_entropy(model(train_ids[idx]), train_y[idx])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    print(f"epoch {epoch} loss {sum(losses) / len(losses):.3f} acc {accuracy(model, test_ids, test_y):.3f}")

peft_encoder.save_pretrained("out/claims", selected_adapters=["claims"])
torch.save(model.head.state_dict(), "out/claims/head.pt")
