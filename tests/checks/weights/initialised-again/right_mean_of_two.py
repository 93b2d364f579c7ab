import torch
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)
config = BertConfig(
    vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, pad_token_id=None
)
for name in ("first", "second"):
    BertForSequenceClassification(config).save_pretrained(name)

model = BertForSequenceClassification.from_pretrained("first")
other = BertForSequenceClassification.from_pretrained("second")
with torch.no_grad():
    for mine, its in zip(model.parameters(), other.parameters(), strict=True):
        mine.lerp_(its, 0.5)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

model.train()
for _ in range(5):
    ids = torch.randint(40, (6, 10))
    loss = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids[:, 0] % 2).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
