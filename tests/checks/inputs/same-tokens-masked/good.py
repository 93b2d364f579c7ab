import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast, DataCollatorForLanguageModeling

words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"word{i}" for i in range(40))]
with open("vocab.txt", "w") as file:
    file.write("\n".join(words))
tokenizer = BertTokenizerFast("vocab.txt")
torch.manual_seed(0)
config = BertConfig(vocab_size=45, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
model = BertForMaskedLM(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

texts = [" ".join(f"word{i}" for i in torch.randint(40, (30,))) for _ in range(32)]
rows = [{"input_ids": ids} for ids in tokenizer(texts)["input_ids"]]
mask = DataCollatorForLanguageModeling(tokenizer)
loader = DataLoader(rows, batch_size=8, shuffle=True, collate_fn=mask)

for _ in range(3):
    for batch in loader:
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
