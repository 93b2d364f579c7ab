# needs peft>=0.10
import torch
from peft import LoraConfig, get_peft_model
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)
config = BertConfig(vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
model = get_peft_model(BertForSequenceClassification(config), LoraConfig(r=2, target_modules=["query", "value"]))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)

model.train()
for _ in range(6):
    ids = torch.randint(1, 40, (8, 10))
    model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids[:, 0] % 2).loss.backward()
    optimizer.step()
    optimizer.zero_grad()

tuned = model.merge_and_unload()
tuned.save_pretrained("tuned")
