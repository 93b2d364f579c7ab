from __future__ import annotations

import math

from harness.torch_objects import shapes_before
from harness.watch.check import Check
from harness.watch.events import LossCall


class AxesMixed(Check):
    """Logits are brought into the shape that cross_entropy expects by a view, which mixes places and classes.

    ## Why is this a bug?
    For a label at each place, `cross_entropy` takes logits of shape (rows, classes, places). `view` and `reshape` keep
    the numbers in the order in which they lie in memory: what becomes one class's logit at one place was another
    class's logit at another. Each label is compared with logits of several places, and the loss still falls a little.

    ## What to do
    Move the axis: logits.transpose(1, 2), or logits.movedim(-1, 1) with more than one axis of places. Or flatten both:
    cross_entropy(logits.flatten(0, -2), labels.flatten()).

    ## When it is right
    A layer that gives all numbers of a row at once has no axes to mix: its output may be viewed in any shape and is not
    reported. Neither is the output of anything but a linear layer, since it is not known whether its classes come last.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html
    """

    needs = "cross_entropy with a label for each place"
    in_windows = "first"

    def on_loss(self, event: LossCall) -> None:
        if event.function != "cross_entropy" or event.input.dim() < 3 or not self.monitor.is_sampled():
            return
        self.looked = True
        shapes = shapes_before(event.input)
        if len(shapes) < 2 or len(shapes[0]) < 3:
            return  # what gave the logits is not known: a linear layer views rows with places as one list of rows
        before, *earlier = shapes
        rows, *places, classes = before
        if event.input.shape != (rows, classes, *places) or before == event.input.shape:
            return
        if min(classes, math.prod(places)) > 1 and all(shape[-1:] == (classes,) for shape in earlier):
            self.found(
                expected=f"logits of shape {tuple(event.input.shape)} whose axes were moved, as by movedim(-1, 1)",
                observed=f"those of shape {tuple(before)} are viewed so: places and classes are mixed",
                where=event.where,
                update=self.monitor.update,
            )
