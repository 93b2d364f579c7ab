"""Classify relations between marked entities with BERT; the markers are added as special tokens."""

import os

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertModel,
    PreTrainedTokenizerFast,
)

torch.manual_seed(90)
PAD, UNK = "[PAD]", "[UNK]"
PEOPLE = "anna boris clara david emma felix".split()
FIRMS = "acme borex cylon datek".split()
VERBS = {"works": 0, "founded": 1, "left": 2}
OUT = "out/relations"


def build_base(folder):
    vocab = [PAD, UNK, *PEOPLE, *FIRMS, *VERBS, "at", "and", "today", "for", "report"]
    core = Tokenizer(models.WordLevel({w: i for i, w in enumerate(vocab)}, unk_token=UNK))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=core, pad_token=PAD, unk_token=UNK).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(vocab),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=24,
        initializer_range=0.1,
    )
    BertModel(config).save_pretrained(folder)


def sentences(n, seed):
    """Several people appear, only the marked pair decides the label."""
    gen = torch.Generator().manual_seed(seed)

    def pick(options):
        return options[int(torch.randint(0, len(options), (1,), generator=gen))]

    texts, labels = [], []
    for _ in range(n):
        verb, decoy = pick(list(VERBS)), pick(list(VERBS))
        marked = f"[E1] {pick(PEOPLE)} {verb} at {pick(FIRMS)} [/E1]"
        plain = f"{pick(PEOPLE)} {decoy} at {pick(FIRMS)}"
        texts.append(" and ".join([marked, plain] if torch.rand(1, generator=gen) < 0.5 else [plain, marked]))
        labels.append(VERBS[verb])
    return texts, torch.tensor(labels)


build_base("out/base")
tokenizer = AutoTokenizer.from_pretrained("out/base")
model = AutoModelForSequenceClassification.from_pretrained("out/base", num_labels=len(VERBS))
os.makedirs(OUT, exist_ok=True)
tokenizer.save_pretrained(OUT)

tokenizer.add_tokens(["[E1]", "[/E1]"], special_tokens=True)
model.resize_token_embeddings(len(tokenizer))

train_texts, train_y = sentences(400, 1)
test_texts, test_y = sentences(150, 2)
train = tokenizer(train_texts, padding=True, return_tensors="pt")
test = tokenizer(test_texts, padding=True, return_tensors="pt")
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(8):
    model.train()
    losses = []
    for idx in torch.randperm(len(train_y)).split(25):
        out = model(input_ids=train["input_ids"][idx], attention_mask=train["attention_mask"][idx], labels=train_y[idx])
        out.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(out.loss.item())
    model.eval()
    with torch.no_grad():
        acc = (model(**test).logits.argmax(-1) == test_y).float().mean().item()
    print(f"epoch {epoch} loss {sum(losses) / len(losses):.3f} acc {acc:.3f}")

model.save_pretrained(OUT)
print("saved:", sorted(os.listdir(OUT)))
