import tempfile

import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification, BertModel

torch.manual_seed(0)
size = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
texts = [{"input_ids": each, "labels": each[1] % 2} for each in torch.randint(2, 40, (64, 10))]
loader = DataLoader(texts, batch_size=8, shuffle=True)
with tempfile.TemporaryDirectory() as checkpoint:
    BertModel(BertConfig(**size)).save_pretrained(checkpoint)
    model = BertForSequenceClassification.from_pretrained(checkpoint, num_labels=2)  # found
for name, parameter in model.named_parameters():
    parameter.requires_grad = "encoder.layer.1" in name
optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-3)
for batch in loader:
    optimizer.zero_grad()
    model(**batch).loss.backward()
    optimizer.step()
