"""Continue pretraining a GPT-2 style model on clinical notes after adding domain tokens to its tokenizer."""

import os

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

torch.manual_seed(8)

PAD, UNK, EOS = "<pad>", "<unk>", "<eos>"
COMMON = "patient was given after the dose of and felt better worse pain in for two days with no fever".split()
DRUGS = ["metoprolol", "apixaban", "ibuprofen", "ceftriaxone"]


def build_base(folder):
    vocab = {w: i for i, w in enumerate([PAD, UNK, EOS, *COMMON])}
    core = Tokenizer(models.WordLevel(vocab, unk_token=UNK))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, pad_token=PAD, unk_token=UNK, eos_token=EOS)
    config = GPT2Config(
        vocab_size=len(vocab), n_positions=32, n_embd=32, n_layer=2, n_head=2, bos_token_id=2, eos_token_id=2
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def notes(n, seed):
    gen = torch.Generator().manual_seed(seed)
    texts = []
    for _ in range(n):
        drug = DRUGS[torch.randint(0, 4, (1,), generator=gen)]
        after = "better" if drug in DRUGS[:2] else "worse"
        texts.append(f"patient was given two dose of {drug} and felt {after} after two days <eos>")
    return texts


os.makedirs("out", exist_ok=True)
build_base("out/base")
tokenizer = AutoTokenizer.from_pretrained("out/base")
model = AutoModelForCausalLM.from_pretrained("out/base")
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

added = tokenizer.add_tokens(DRUGS)
model.resize_token_embeddings(len(tokenizer))
print(f"added {added} tokens, vocabulary is now {len(tokenizer)}")

train = tokenizer(notes(200, 1), return_tensors="pt")["input_ids"]
test = tokenizer(notes(60, 2), return_tensors="pt")["input_ids"]
for epoch in range(6):
    model.train()
    for idx in torch.randperm(len(train)).split(16):
        loss = model(input_ids=train[idx], labels=train[idx]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        test_loss = model(input_ids=test, labels=test).loss.item()
    print(f"epoch {epoch} train {loss.item():.3f} test {test_loss:.3f}")

model.save_pretrained("out/clinical")
tokenizer.save_pretrained("out/clinical")
