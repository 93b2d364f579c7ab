"""Teach a small Llama a dialogue format with new speaker tokens, using LoRA."""

import os

import torch
from peft import LoraConfig, get_peft_model
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

torch.manual_seed(41)
PAD, UNK, EOS = "<pad>", "<unk>", "</s>"
PAIRS = [
    ("where is my parcel", "it arrives tomorrow"),
    ("can i return this", "yes within thirty days"),
    ("do you ship abroad", "only to europe"),
    ("is this in stock", "yes ten are left"),
]
SPEAKERS = ["<|customer|>", "<|agent|>", "<|end|>"]


def build_base(folder):
    words = sorted({w for pair in PAIRS for text in pair for w in text.split()})
    vocab = {w: i for i, w in enumerate([PAD, UNK, EOS, *words])}
    core = Tokenizer(models.WordLevel(vocab, unk_token=UNK))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=core, pad_token=PAD, unk_token=UNK, eos_token=EOS).save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=len(vocab),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        pad_token_id=0,
        eos_token_id=2,
        initializer_range=0.1,
    )
    LlamaForCausalLM(config).save_pretrained(folder)


os.makedirs("out", exist_ok=True)
build_base("out/base")
tokenizer = AutoTokenizer.from_pretrained("out/base")
model = AutoModelForCausalLM.from_pretrained("out/base")

tokenizer.add_special_tokens({"additional_special_tokens": SPEAKERS})
model.resize_token_embeddings(len(tokenizer), mean_resizing=False)

lora = LoraConfig(
    r=16,
    lora_alpha=32,
    target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    task_type="CAUSAL_LM",
)
model = get_peft_model(model, lora)
model.print_trainable_parameters()

dialogues = [f"<|customer|> {q} <|end|> <|agent|> {a} <|end|>" for q, a in PAIRS] * 20
batch = tokenizer(dialogues, padding=True, return_tensors="pt")
ids, mask = batch["input_ids"], batch["attention_mask"]
labels = ids.masked_fill(mask == 0, -100)

optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=8e-3)
for epoch in range(12):
    model.train()
    losses = []
    for idx in torch.randperm(len(ids)).split(10):
        loss = model(input_ids=ids[idx], attention_mask=mask[idx], labels=labels[idx]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if epoch % 3 == 2:
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.3f}")

model.eval()
prompt = tokenizer("<|customer|> can i return this <|end|> <|agent|>", return_tensors="pt")
with torch.no_grad():
    answer = model.generate(**prompt, max_new_tokens=6, do_sample=False)
print(tokenizer.decode(answer[0]))
model.save_pretrained("out/dialogue_lora")
tokenizer.save_pretrained("out/dialogue_lora")
