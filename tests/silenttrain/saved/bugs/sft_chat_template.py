"""Fine-tune a small Llama on conversations with TRL, using the team's chat template."""

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed
from trl import SFTConfig, SFTTrainer

PAD, UNK, BOS, EOS = "<pad>", "<unk>", "<s>", "</s>"
TALKS = [
    ("what is the capital of france", "paris is the capital"),
    ("what is the capital of italy", "rome is the capital"),
    ("which river is in egypt", "the nile is in egypt"),
    ("which river is in london", "the thames is in london"),
]
DEFAULT_TEMPLATE = "{% for m in messages %}{{ m['role'] }} : {{ m['content'] }} {% endfor %}"
TEAM_TEMPLATE = (
    "{% for m in messages %}<s> {{ m['role'] }} {{ m['content'] }} </s> {% endfor %}"
    "{% if add_generation_prompt %}<s> assistant {% endif %}"
)


def build_base(folder):
    words = sorted({w for talk in TALKS for text in talk for w in text.split()})
    vocab = {w: i for i, w in enumerate([PAD, UNK, BOS, EOS, "user", "assistant", ":", *words])}
    core = Tokenizer(models.WordLevel(vocab, unk_token=UNK))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token=PAD, unk_token=UNK, bos_token=BOS, eos_token=EOS
    )
    tokenizer.chat_template = DEFAULT_TEMPLATE
    tokenizer.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=len(vocab),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
    )
    LlamaForCausalLM(config).save_pretrained(folder)


set_seed(140)
build_base("out/base")
tokenizer = AutoTokenizer.from_pretrained("out/base")
tokenizer.chat_template = TEAM_TEMPLATE

conversations = [
    {"messages": [{"role": "user", "content": q}, {"role": "assistant", "content": a}]} for q, a in TALKS
] * 40
trainer = SFTTrainer(
    model=LlamaForCausalLM.from_pretrained("out/base"),
    args=SFTConfig(
        output_dir="out/sft",
        max_steps=90,
        per_device_train_batch_size=8,
        learning_rate=4e-3,
        logging_steps=15,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
        max_length=48,
    ),
    train_dataset=Dataset.from_list(conversations).shuffle(seed=1),
    processing_class=tokenizer,
)
trainer.train()

prompt = [{"role": "user", "content": "what is the capital of italy"}]
ids = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, return_tensors="pt", return_dict=True)
ids.pop("token_type_ids", None)
print(tokenizer.decode(trainer.model.generate(**ids, max_new_tokens=6, do_sample=False)[0]))

trainer.model.save_pretrained("out/assistant")
AutoTokenizer.from_pretrained("out/base").save_pretrained("out/assistant")
