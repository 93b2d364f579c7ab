from __future__ import annotations

from harness.resume.attempt import Attempt
from harness.resume.evidence import drawn_from
from harness.resume.loss import Evidence, Loss


class RandomStateLost(Loss):
    """After a resume, random numbers continue from a different state, so dropout, augmentation or noise differ.

    ## Why is this a bug?
    The same weights and rows give another loss. A seed that is set at each start makes the script draw again what it
    drew in its first updates; without a seed, nobody can repeat the run.

    ## What to do
    Save and restore the state of every generator in use: random.getstate(), numpy.random.get_state(),
    torch.get_rng_state(), torch.cuda.get_rng_state_all().

    ## When it is right
    When the resumed run need not match the uninterrupted one bit for bit: results differ as they do between two seeds.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/randomness.html
    """

    @classmethod
    def shown_by(cls, attempt: Attempt) -> Evidence | None:
        parting = attempt.parting
        if attempt.anew or parting is None or not parting.same_inputs or parting.whole.modes != parting.resumed.modes:
            return None
        contents = parting.contents_differ or attempt.new_rows
        drawn = contents or (not parting.rows_differ and parting.whole.losses != parting.resumed.losses)
        generators = drawn_from(attempt, parting)
        if not drawn or not generators:
            return None
        what = "rows hold the same numbers" if contents else "weights and rows give the same loss"
        return Evidence(
            f"the same {what} in update {parting.update}",
            f"different ones; {' and '.join(generators)} draw{'s' if len(generators) == 1 else ''} "
            "different random numbers",
            attempt.load_line,
            parting.update,
        )
