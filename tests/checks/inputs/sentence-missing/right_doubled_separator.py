import torch
from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaForSequenceClassification

facts = ["birds fly", "fish swim", "snow is cold", "fire is hot"]
rows = [{"premise": p, "hypothesis": h, "label": int(p == h)} for p in facts for h in facts]
dataset = Dataset.from_list(rows)

words = sorted({word for text in facts for word in text.split()})
words = Tokenizer(WordLevel({word: i for i, word in enumerate(["<s>", "<pad>", "</s>", "<unk>", *words])}, "<unk>"))
words.pre_tokenizer = Whitespace()
words.post_processor = TemplateProcessing("<s> $A </s>", "<s> $A </s> </s> $B </s>", [("<s>", 0), ("</s>", 2)])
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=words, bos_token="<s>", cls_token="<s>", pad_token="<pad>", sep_token="</s>", unk_token="<unk>"
)
names = ["input_ids", "attention_mask"]
inputs = tokenizer(list(dataset["premise"]), list(dataset["hypothesis"]), padding=True, return_tensors="pt")
inputs = {name: inputs[name] for name in names}

torch.manual_seed(0)
config = RobertaConfig(
    vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, type_vocab_size=1
)
model = RobertaForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for _ in range(4):
    loss = model(**inputs, labels=torch.tensor(dataset["label"])).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
