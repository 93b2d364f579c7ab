import torch
from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"word{i}" for i in range(40))]
with open("vocab.txt", "w") as file:
    file.write("\n".join(words))
tokenizer = BertTokenizerFast("vocab.txt")
torch.manual_seed(0)
config = BertConfig(vocab_size=45, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
model = BertForMaskedLM(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for _ in range(6):
    texts = [" ".join(f"word{i}" for i in torch.randint(40, (10,))) for _ in range(8)]
    batch = tokenizer(texts, return_tensors="pt")
    ids = batch["input_ids"]
    masked = (torch.rand(ids.shape) < 0.15) & (ids > 4)
    original = ids
    ids[masked] = tokenizer.mask_token_id
    labels = original.masked_fill(~masked, -100)
    loss = model(**batch, labels=labels).loss  # found
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
