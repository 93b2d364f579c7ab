"""BERT token tagger with an optional sentence-level task; the weight is a setting of the ablation."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from transformers import BertConfig, BertModel

parser = argparse.ArgumentParser()
parser.add_argument("--sentence-weight", type=float, default=0.0, help="0 is the baseline row of the table")
parser.add_argument("--steps", type=int, default=160)
args = parser.parse_args([])
torch.manual_seed(0)
VOCAB, LEN, TAGS = 50, 10, 3


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        cfg = BertConfig(
            vocab_size=VOCAB,
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=LEN,
        )
        self.bert = BertModel(cfg)
        self.tag_head = nn.Linear(32, TAGS)
        self.sentence_head = nn.Linear(32, 2)

    def forward(self, ids):
        out = self.bert(input_ids=ids)
        return self.tag_head(out.last_hidden_state), self.sentence_head(out.pooler_output)


def make(n):
    ids = torch.randint(VOCAB, (n, LEN))
    # the tag depends on the token and on the one to its left
    tags = (ids % 2 + (ids.roll(1, 1) % 2)) % TAGS
    tags[:, 0] = ids[:, 0] % 2
    return ids, tags, (ids.float().mean(1) > VOCAB / 2).long()


train, test = make(1500), make(400)
model = Tagger()
opt = torch.optim.AdamW(model.parameters(), lr=4e-3)
model.train()
for step in range(args.steps):
    idx = torch.randint(len(train[0]), (32,))
    ids, tags, sentence = (t[idx] for t in train)
    tag_logits, sentence_logits = model(ids)
    tag_loss = F.cross_entropy(tag_logits.flatten(0, 1), tags.flatten())
    sentence_loss = F.cross_entropy(sentence_logits, sentence)
    loss = tag_loss + args.sentence_weight * sentence_loss
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 40 == 0:
        print(f"step {step} tag {tag_loss.item():.4f} sentence {sentence_loss.item():.4f}")

model.eval()
with torch.no_grad():
    tag_logits, _ = model(test[0])
acc = (tag_logits.argmax(-1) == test[1]).float().mean().item()
print(f"sentence weight {args.sentence_weight}: tag accuracy {acc:.3f}")
