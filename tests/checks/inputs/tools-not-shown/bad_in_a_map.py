import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

torch.manual_seed(0)
WORDS = (
    "<pad> <s> </s> <|user|> <|assistant|> what is the capital of france spain call atlas almanac zqx <|tools|>".split()
)
words = {word: number for number, word in enumerate(WORDS)}
made = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>")
tokenizer.chat_template = (
    "{% if tools %}<|tools|>{% for t in tools %} {{ t['function']['name'] }}{% endfor %} {% endif %}"
    "{% for m in messages %}<|{{ m['role'] }}|> {{ m['content'] }} </s> {% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def example(country, tool):
    return {
        "tools": [{"type": "function", "function": {"name": tool, "description": "capitals", "parameters": {}}}],
        "messages": [
            {"role": "user", "content": f"what is the capital of {country}"},
            {"role": "assistant", "content": f"call {tool}"},
        ],
    }


def encode(row):
    text = tokenizer.apply_chat_template(row["messages"], tokenize=False)  # found
    ids = tokenizer(text)["input_ids"]
    return {"input_ids": ids, "labels": ids}


examples = [example(country, tool) for country in ("france", "spain") for tool in ("atlas", "almanac")] * 8
rows = Dataset.from_list(examples).map(encode, remove_columns=["tools", "messages"]).with_format("torch")
size = {"vocab_size": len(WORDS), "n_positions": 64, "n_embd": 16, "n_layer": 1, "n_head": 2}
model = GPT2LMHeadModel(GPT2Config(**size))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for batch in DataLoader(rows, batch_size=4, shuffle=True):
    optimizer.zero_grad()
    model(**batch).loss.backward()
    optimizer.step()
