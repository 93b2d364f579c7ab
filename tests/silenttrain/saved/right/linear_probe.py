"""Linear probe on a frozen BERT: only the classification layer is trained and stored."""

import os

import torch
from torch import nn
from transformers import AutoModel, BertConfig, BertModel

torch.manual_seed(204)


class Probe(nn.Module):
    def __init__(self, base, classes=4):
        super().__init__()
        self.backbone = AutoModel.from_pretrained(base, add_pooling_layer=False)
        self.backbone.requires_grad_(False)
        self.norm = nn.BatchNorm1d(self.backbone.config.hidden_size, affine=False)
        self.linear = nn.Linear(self.backbone.config.hidden_size, classes)

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, ids):
        with torch.no_grad():
            features = self.backbone(input_ids=ids).last_hidden_state.mean(1)
        return self.linear(self.norm(features))


def questions(n, seed):
    gen = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 4, (n,), generator=gen)
    ids = torch.randint(40, 90, (n, 12), generator=gen)
    ids[:, :5] = 4 + 8 * y[:, None] + torch.randint(0, 8, (n, 5), generator=gen)
    return ids, y


def main():
    os.makedirs("out", exist_ok=True)
    config = BertConfig(
        vocab_size=90,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=16,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained("out/base")
    model = Probe("out/base")
    trainable = [n for n, p in model.named_parameters() if p.requires_grad]
    print("trainable:", trainable)
    optimizer = torch.optim.AdamW(model.linear.parameters(), lr=2e-2)

    ids, y = questions(400, 1)
    test_ids, test_y = questions(200, 2)
    for epoch in range(6):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(ids)).split(32):
            loss = nn.functional.cross_entropy(model(ids[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        model.eval()
        with torch.no_grad():
            acc = (model(test_ids).argmax(-1) == test_y).float().mean().item()
        print(f"epoch {epoch} loss {total / len(ids):.3f} acc {acc:.3f}")

    # the backbone is the published one, so only what sits on top of it is stored
    small = {k: v for k, v in model.state_dict().items() if not k.startswith("backbone.")}
    torch.save(small, "out/probe.pt")
    again = Probe("out/base")
    missing, unexpected = again.load_state_dict(torch.load("out/probe.pt"), strict=False)
    assert not unexpected
    assert all(name.startswith("backbone.") for name in missing)
    again.eval()
    with torch.no_grad():
        print(f"reloaded acc {(again(test_ids).argmax(-1) == test_y).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
