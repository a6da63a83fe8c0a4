"""Which entries of a matrix are low, without a look at every one."""

import torch
from torch import Tensor

#: How many groups. With fewer, torch's minima are not vectorised and ten times slower.
GROUPS = 32


class Lowest:
    """Minima over groups of columns are found first, which is fast; only groups with a low one are looked into.

    >>> low = Lowest(torch.tensor([[5.0, 1.0, 7.0], [4.0, 6.0, 3.0]]))
    >>> low.values.tolist(), low.places(torch.tensor([0, 1])).tolist()
    ([1.0, 3.0], [1, 2])
    >>> [x.tolist() for x in low.below(torch.tensor([1]), torch.tensor([5.0]))]
    [[0, 0], [0, 2]]
    """

    def __init__(self, d: Tensor) -> None:
        self.columns = d.shape[1]
        if self.columns % GROUPS:
            d = torch.nn.functional.pad(d, (0, -self.columns % GROUPS), value=torch.inf)
        self.groups = d.view(len(d), -1, GROUPS)  # group g has the columns g, g + GROUPS, g + 2 GROUPS, …
        self.minima = self.groups.amin(dim=1)
        self.values = self.minima.amin(dim=1)

    def places(self, rows: Tensor) -> Tensor:
        """The column of the lowest entry of each of `rows`."""
        group = self.minima.index_select(0, rows).argmin(dim=1)
        return self.groups[rows, :, group].argmin(dim=1) * GROUPS + group

    def below(self, rows: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
        """Places in `rows`, and columns, of the entries below the limit of their row."""
        if rows.device.type != "cpu":  # the host waits once
            i, within, group = (self.groups.index_select(0, rows) < limit[:, None, None]).nonzero(as_tuple=True)
            return i, within * GROUPS + group
        i, group = (self.minima.index_select(0, rows) < limit[:, None]).nonzero(as_tuple=True)
        hit, within = (self.groups[rows[i], :, group] < limit[i, None]).nonzero(as_tuple=True)
        return i[hit], within * GROUPS + group[hit]
