from pathlib import Path

import torch
from datasets import Dataset
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

facts = ["birds fly", "fish swim", "snow is cold", "fire is hot"]
rows = [{"premise": p, "hypothesis": h, "label": int(p == h)} for p in facts for h in facts]
dataset = Dataset.from_list(rows)

words = sorted({word for text in facts for word in text.split()})
Path("vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
tokenizer = BertTokenizerFast("vocab.txt")
inputs = tokenizer(list(dataset["premise"]), padding=True, return_tensors="pt")  # found

torch.manual_seed(0)
config = BertConfig(vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
model = BertForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for _ in range(4):
    loss = model(**inputs, labels=torch.tensor(dataset["label"])).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
