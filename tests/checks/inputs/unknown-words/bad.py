from pathlib import Path

import torch
from torch.nn.functional import cross_entropy
from transformers import BertTokenizerFast

WORDS = ["good", "bad", "long", "short", "story", "film", "and", "very"]

torch.manual_seed(0)
Path("vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
tokenizer = BertTokenizerFast("vocab.txt", do_lower_case=False)
reviews = [" ".join(WORDS[i] for i in row).upper() for row in torch.randint(8, (32, 10)).tolist()]
labels = torch.randint(2, (32,))
tokens = tokenizer(reviews, truncation=True, max_length=64, padding=True, return_tensors="pt")["input_ids"]  # found

model = torch.nn.Sequential(torch.nn.EmbeddingBag(13, 8, padding_idx=0), torch.nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(10):
    optimizer.zero_grad()
    cross_entropy(model(tokens), labels).backward()
    optimizer.step()
