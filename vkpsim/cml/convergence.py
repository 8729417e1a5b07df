"""Which answer was the first to show a lab as converged: recorded in the access log, for benchmarks."""

from vkpsim.cml.world.model import Lab


class Convergence:
    """Remembers which labs were shown as converged since their last start."""

    def __init__(self) -> None:
        self._shown: dict[str, int] = {}

    def first_shown(self, labs: list[Lab]) -> list[str]:
        """Return the ids of those labs that this answer shows as converged for the first time since their start."""
        news = []
        for lab in labs:
            if self._shown.get(lab.id) != lab.starts and lab.starts and lab.up:
                self._shown[lab.id] = lab.starts
                news.append(lab.id)
        return news

    def forget(self, lab_ids: set[str]) -> None:
        """Forget deleted labs, once enough of them have accumulated."""
        if len(self._shown) > 2 * len(lab_ids) + 100:
            self._shown = {lab_id: starts for lab_id, starts in self._shown.items() if lab_id in lab_ids}
