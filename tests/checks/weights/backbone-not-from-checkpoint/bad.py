import torch
from transformers import BertConfig, BertForMaskedLM, BertForTokenClassification

torch.manual_seed(0)
size = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 50}
BertForMaskedLM(BertConfig(num_hidden_layers=2, pad_token_id=None, **size)).save_pretrained("pretrained")

model = BertForTokenClassification.from_pretrained("pretrained", num_labels=4, num_hidden_layers=5)  # found
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

model.train()
for _ in range(6):
    words = torch.randint(50, (4, 12))
    optimizer.zero_grad()
    model(input_ids=words, attention_mask=torch.ones_like(words), labels=words % 4).loss.backward()
    optimizer.step()
