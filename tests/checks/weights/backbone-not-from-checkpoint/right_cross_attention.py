import torch
from transformers import BertConfig, BertModel, EncoderDecoderModel

torch.manual_seed(0)
config = BertConfig(
    vocab_size=30,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=16,
    pad_token_id=None,
)
BertModel(config).save_pretrained("pretrained")
model = EncoderDecoderModel.from_encoder_decoder_pretrained("pretrained", "pretrained")
model.config.decoder_start_token_id, model.config.pad_token_id = 2, 0
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

model.train()
for _ in range(4):
    tokens = torch.randint(3, 30, (8, 12))
    loss = model(input_ids=tokens, attention_mask=torch.ones_like(tokens), labels=tokens.flip(1)).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
