from pathlib import Path

import torch
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

first = ["the cat sat on the mat", "a dog ran", "the dog sat", "a cat ran on the road"]
second = ["a cat sat", "the dog ran on the road", "the dog sat on a mat", "the cat ran"]
labels = torch.tensor([1, 0, 0, 1])

words = sorted({word for text in first + second for word in text.split()})
Path("vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
tokenizer = BertTokenizerFast("vocab.txt")
inputs = tokenizer(first, second, padding=True, return_tensors="pt")

torch.manual_seed(0)
config = BertConfig(vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
model = BertForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for _ in range(6):
    loss = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], labels=labels).loss  # found
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
