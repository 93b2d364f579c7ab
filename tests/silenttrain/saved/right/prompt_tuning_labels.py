"""Prompt tuning: learn a handful of virtual tokens that steer a pretrained frozen GPT-2."""

import os

import torch
from peft import PeftModel, PromptTuningConfig, PromptTuningInit, TaskType, get_peft_model
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

torch.manual_seed(214)
VOCAB = 32


def rows(n, modes, seed):
    """The first token names the mode, the rest follows the stride of that mode."""
    gen = torch.Generator().manual_seed(seed)
    mode = torch.tensor(modes)[torch.randint(0, len(modes), (n, 1), generator=gen)]
    start = torch.randint(4, VOCAB, (n, 1), generator=gen)
    body = 4 + (start - 4 + (2 * mode + 1) * torch.arange(8)) % (VOCAB - 4)
    return torch.cat([mode, body], dim=1)


def train(model, params, ids, epochs, lr, tag):
    optimizer = torch.optim.AdamW(params, lr=lr)
    for epoch in range(epochs):
        model.train()
        losses = []
        for idx in torch.randperm(len(ids)).split(24):
            loss = model(input_ids=ids[idx], labels=ids[idx]).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"{tag} epoch {epoch} loss {sum(losses) / len(losses):.3f}")


@torch.no_grad()
def body_loss(model, ids):
    model.eval()
    return model(input_ids=ids, labels=ids).loss.item()


def main():
    os.makedirs("out", exist_ok=True)
    config = GPT2Config(
        vocab_size=VOCAB, n_positions=24, n_embd=48, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0
    )
    base = GPT2LMHeadModel(config)
    train(base, base.parameters(), rows(480, [0, 1, 2, 3], 1), epochs=4, lr=5e-3, tag="pretrain")
    base.save_pretrained("out/base")

    # the task always uses the third mode but the mode token is not part of its input
    task = rows(320, [2], 2)[:, 1:]
    test = rows(100, [2], 3)[:, 1:]
    model = AutoModelForCausalLM.from_pretrained("out/base")
    print(f"without prompt: {body_loss(model, test):.3f}")
    prompt = PromptTuningConfig(
        task_type=TaskType.CAUSAL_LM, num_virtual_tokens=4, prompt_tuning_init=PromptTuningInit.RANDOM
    )
    model = get_peft_model(model, prompt)
    model.print_trainable_parameters()
    train(model, [p for p in model.parameters() if p.requires_grad], task, epochs=5, lr=5e-2, tag="prompt")
    print(f"with prompt: {body_loss(model, test):.3f}")
    model.save_pretrained("out/prompt")

    again = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained("out/base"), "out/prompt")
    print(f"reloaded prompt: {body_loss(again, test):.3f}")


if __name__ == "__main__":
    main()
