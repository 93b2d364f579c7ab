import torch
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification

torch.manual_seed(0)
config = BertConfig(
    vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, pad_token_id=None
)
BertForMaskedLM(config).save_pretrained("pretrained")


def initialise(module):
    if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)):
        torch.nn.init.xavier_uniform_(module.weight)


model = BertForSequenceClassification.from_pretrained("pretrained", num_labels=3)
model.apply(initialise)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

model.train()
for _ in range(5):
    ids = torch.randint(40, (6, 10))
    loss = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids[:, 0] % 3).loss  # found
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
