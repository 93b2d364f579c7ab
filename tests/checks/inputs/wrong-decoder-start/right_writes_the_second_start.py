"""A model that is taught to write a second start token writes it: two BERTs, whose labels begin with [CLS]."""

import torch
from transformers import BertConfig, EncoderDecoderConfig, EncoderDecoderModel

torch.manual_seed(0)
CLS, SEP = 1, 2
of_one = {
    "vocab_size": 64,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
config = EncoderDecoderConfig.from_encoder_decoder_configs(BertConfig(**of_one), BertConfig(**of_one))
model = EncoderDecoderModel(config)
model.config.decoder_start_token_id, model.config.pad_token_id, model.config.eos_token_id = CLS, 0, SEP
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

model.train()
for _ in range(40):
    words = torch.randint(4, 64, (8, 1)).expand(8, 4)
    text = torch.cat([torch.full((8, 1), CLS), words, torch.full((8, 1), SEP)], 1)
    mask = torch.ones_like(text)
    loss = model(input_ids=text, attention_mask=mask, labels=text).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

model.eval()
with torch.no_grad():
    written = torch.full((8, 1), CLS)
    for _ in range(5):
        logits = model(input_ids=text, attention_mask=mask, decoder_input_ids=written).logits
        written = torch.cat([written, logits[:, -1:].argmax(-1)], 1)
print((written[:, 1] == CLS).float().mean())
