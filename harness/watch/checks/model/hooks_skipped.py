from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Forward


class HooksSkipped(Check):
    """A module that has hooks is called by its forward method, which leaves them out.

    ## Why is this a bug?
    `model(inputs)` calls the hooks and `forward`; `model.forward(inputs)` calls `forward` alone. What a hook does then
    happens in some calls and not in others: inputs are not normalised, a weight that `prune` or an older
    `spectral_norm` computes in a hook stays as it was, activations are not collected.

    ## What to do
    Call the module, model(inputs), rather than model.forward(inputs).

    ## When it is right
    When hooks only observe, such as those that measure or log, and are not wanted in these calls. A module without
    hooks is not reported, nor are hooks that torch calls for all modules.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook
    """

    status = "new"
    needs = "call of a model's forward method"

    def on_forward(self, event: Forward) -> None:
        if not event.unhooked:
            return
        self.looked = True
        model = event.model
        hooks = len(model._forward_hooks) + len(model._forward_pre_hooks)
        if hooks:
            self.found(
                expected=f"a call of {type(model).__name__}, which calls its hooks",
                observed=f"a call of its forward method, which leaves out {hooks} of them",
                where=event.where,
                update=self.monitor.updates_made,
            )
