# A head that is made anew with room for another token has the weights of the one that was loaded.
import tempfile

import torch
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
size = {"vocab_size": 40, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
with tempfile.TemporaryDirectory() as checkpoint:
    LlamaForCausalLM(LlamaConfig(**size)).save_pretrained(checkpoint)
    model = LlamaForCausalLM.from_pretrained(checkpoint)
model.resize_token_embeddings(41)
for name, parameter in model.named_parameters():
    parameter.requires_grad = "layers" in name
optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-3)
for ids in DataLoader(torch.randint(3, 40, (64, 10)), batch_size=8, shuffle=True):
    optimizer.zero_grad()
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
