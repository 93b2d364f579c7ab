import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import BertConfig, BertForSequenceClassification

PAD = 0

torch.manual_seed(0)
config = BertConfig(vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
model = BertForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for _ in range(6):
    texts = [torch.randint(1, 60, (length,)) for length in torch.randint(4, 20, (8,)).tolist()]
    input_ids = pad_sequence(texts, batch_first=True, padding_value=PAD)
    outputs = model(input_ids, labels=torch.randint(2, (8,)))  # found
    optimizer.zero_grad()
    outputs.loss.backward()
    optimizer.step()
