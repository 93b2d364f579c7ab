"""Extend a tokenizer with chemical symbols, resize the model, train it and save both together."""

import os

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

torch.manual_seed(217)
PAD, UNK, EOS = "<pad>", "<unk>", "<eos>"
WORDS = "the reaction of with gives a salt and water gas slowly quickly in acid".split()
SYMBOLS = {"NaOH": "slowly", "KOH": "slowly", "Zn": "quickly", "Mg": "quickly"}


def build_base(folder):
    vocab = {w: i for i, w in enumerate([PAD, UNK, EOS, *WORDS])}
    core = Tokenizer(models.WordLevel(vocab, unk_token=UNK))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=core, pad_token=PAD, unk_token=UNK, eos_token=EOS).save_pretrained(folder)
    config = GPT2Config(
        vocab_size=len(vocab), n_positions=24, n_embd=48, n_layer=2, n_head=2, bos_token_id=2, eos_token_id=2
    )
    GPT2LMHeadModel(config).save_pretrained(folder)


def sentences(n, seed):
    gen = torch.Generator().manual_seed(seed)
    names = list(SYMBOLS)
    chosen = [names[i] for i in torch.randint(0, len(names), (n,), generator=gen).tolist()]
    return [f"acid with {s} gives a salt {SYMBOLS[s]} <eos>" for s in chosen]


def main():
    os.makedirs("out", exist_ok=True)
    build_base("out/base")
    tokenizer = AutoTokenizer.from_pretrained("out/base")
    model = AutoModelForCausalLM.from_pretrained("out/base")
    tokenizer.add_tokens(list(SYMBOLS))
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)

    train = tokenizer(sentences(200, 1), return_tensors="pt")["input_ids"]
    test = tokenizer(sentences(50, 2), return_tensors="pt")["input_ids"]
    for epoch in range(15):
        model.train()
        for idx in torch.randperm(len(train)).split(20):
            loss = model(input_ids=train[idx], labels=train[idx]).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            print(f"epoch {epoch} train {loss.item():.3f} test {model(input_ids=test, labels=test).loss.item():.3f}")

    model.save_pretrained("out/chemistry")
    tokenizer.save_pretrained("out/chemistry")

    tok2 = AutoTokenizer.from_pretrained("out/chemistry")
    model2 = AutoModelForCausalLM.from_pretrained("out/chemistry").eval()
    with torch.no_grad():
        for name in SYMBOLS:
            ids = tok2(f"acid with {name} gives a salt", return_tensors="pt")["input_ids"]
            print(name, "->", tok2.decode([int(model2(input_ids=ids).logits[0, -1].argmax())]))


if __name__ == "__main__":
    main()
