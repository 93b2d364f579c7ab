"""States that share their memory with a model: where they were kept."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch

from harness.watch import watch
from harness.watch.facts.loaded_states import PretrainedCalled, RandomWeightsUsed
from tests.watch.run.account import told

ID = "weights::state-kept-without-copy"


@pytest.mark.parametrize("how", ["kept", "copied", "two models", "kept tensor by tensor"])
def test_where_a_state_was_kept(how: str) -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    other = copy.copy(model) if how == "two models" else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with watch(select=[ID], raise_errors=False) as watched:
        for update in range(3):
            optimizer.zero_grad()
            model(torch.ones(8, 4)).square().mean().backward()
            optimizer.step()
            if update == 1:
                kept = model.state_dict()  # kept
        if how == "copied":
            kept = copy.deepcopy(kept)
        elif how == "two models":
            kept = model.state_dict()
        elif how == "kept tensor by tensor":
            kept = dict(kept)
        other.load_state_dict(kept)  # loaded
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    expected = {"copied": [], "kept": ["# kept"]}.get(how, ["# loaded"])
    places = [int(str(each.where).rpartition(":")[2]) for each in watched.all_findings]
    assert [lines[place - 1].rpartition("  ")[2] for place in places] == expected
    assert [dict(each.details) for each in watched.all_findings] == [{"case": "kept"} if how == "kept" else {}] * len(
        expected
    )


class WithCopies(torch.nn.Module):
    """As PEFT keeps a module beside the copy that it trains and calls."""

    def __init__(self, kept: torch.nn.Module) -> None:
        super().__init__()
        self.original_module, self.modules_to_save = kept, torch.nn.ModuleDict({"default": copy.deepcopy(kept)})

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        called: torch.Tensor = self.modules_to_save["default"](rows)
        return called


@pytest.mark.parametrize("lost", [None, "1.modules_to_save.default.weight", "0.weight"])
def test_the_module_that_an_adapter_has_a_copy_of_need_not_be_loaded(lost: str | None) -> None:
    def made() -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(4, 4), WithCopies(torch.nn.Linear(4, 1)), torch.nn.ReLU())

    def loop() -> None:
        model, served = made(), made()
        with torch.no_grad():  # a head that is drawn anew, as transformers draws one
            for each in served.parameters():
                each.normal_()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        model(torch.ones(8, 4)).square().mean().backward()
        optimizer.step()
        state = {name: each for name, each in model.state_dict().items() if "original" not in name and name != lost}
        served.load_state_dict(state, strict=False)
        with torch.no_grad():
            served(torch.ones(8, 4))

    assert [list(fact.tensors) for fact in told(RandomWeightsUsed, loop)] == ([] if lost is None else [[lost]])


@pytest.mark.parametrize("loads", [True, False])
def test_a_model_with_a_part_from_a_checkpoint_is_not_from_scratch(loads: bool, tmp_path: Path) -> None:
    from transformers import AutoConfig, BertConfig, BertModel, PreTrainedModel

    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    BertModel(BertConfig(vocab_size=8, **sizes)).save_pretrained(tmp_path)

    class WithHead(PreTrainedModel):
        def __init__(self) -> None:
            config = AutoConfig.from_pretrained(tmp_path)
            super().__init__(config)
            body = BertModel.from_pretrained(tmp_path) if loads else BertModel(config)
            self.encoder, self.head = body.embeddings, torch.nn.Linear(8, 1)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            scores: torch.Tensor = self.head(self.encoder(ids))
            return scores

    (fact,) = told(PretrainedCalled, lambda: WithHead()(torch.ones(2, 3, dtype=torch.long)).sum().backward())
    assert (fact.configured is None) is loads
