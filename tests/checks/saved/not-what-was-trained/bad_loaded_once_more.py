import torch
from transformers import BertConfig, BertForSequenceClassification, BertModel

torch.manual_seed(0)
config = BertConfig(
    vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, pad_token_id=None
)
BertModel(config).save_pretrained("pretrained")

model = BertForSequenceClassification.from_pretrained("pretrained").train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(5):
    ids = torch.randint(50, (8, 12))
    optimizer.zero_grad()
    model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids[:, 0] % 2).loss.backward()
    optimizer.step()

model = BertForSequenceClassification.from_pretrained("pretrained")
model.save_pretrained("fine-tuned")  # found
