import torch
from transformers import BartConfig, BartForConditionalGeneration

torch.manual_seed(0)
START, LANGUAGE = 1, 3
config = BartConfig(
    vocab_size=64,
    d_model=16,
    encoder_layers=1,
    decoder_layers=1,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
    encoder_ffn_dim=32,
    decoder_ffn_dim=32,
    max_position_embeddings=32,
    pad_token_id=0,
    bos_token_id=START,
    eos_token_id=2,
    decoder_start_token_id=START,
    forced_eos_token_id=None,
)
model = BartForConditionalGeneration(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

model.train()
for _ in range(8):
    source, words = torch.randint(4, 64, (8, 12)), torch.randint(4, 64, (8, 6))
    begin = torch.tensor([START, LANGUAGE]).expand(8, 2)
    target = torch.cat([begin, words, torch.full((8, 1), 2)], 1)
    loss = model(input_ids=source, labels=target).loss  # found
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

model.eval()
with torch.no_grad():
    written = begin
    for _ in range(6):
        logits = model(input_ids=source, decoder_input_ids=written).logits
        written = torch.cat([written, logits[:, -1:].argmax(-1)], 1)
print(written)
