import torch
from transformers import AutoConfig, AutoModelForSequenceClassification, BertConfig, BertModel

torch.manual_seed(0)
BertModel(
    BertConfig(vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=4, intermediate_size=24)
).save_pretrained("pretrained")

config = AutoConfig.from_pretrained("pretrained", num_labels=2)
model = AutoModelForSequenceClassification.from_config(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)

model.train()
for _ in range(6):
    ids = torch.randint(1, 60, (8, 9))
    outputs = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=(ids[:, 1] > 30).long())  # found
    outputs.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
model.save_pretrained("fine-tuned")
