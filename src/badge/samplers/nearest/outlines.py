"""Which centres the first factor rules out by itself.

|⟨a ⊗ h, b ⊗ g⟩| ≤ |⟨a, b⟩| ‖h‖ ‖g‖, so that ‖a ⊗ h − b ⊗ g‖² ≥ ‖a ⊗ h‖² + ‖b ⊗ g‖² − 2 |⟨a ‖h‖, b ‖g‖⟩|. The outline a ‖h‖
of a gradient embedding has C numbers in place of C + D, and those of different labels are almost orthogonal.
"""

import torch
from torch import Tensor

from badge.features import Rows

#: Outlines pay when the second factor has at least LONGER times the width of the first.
LONGER = 8


def outlines_pay(rows: Rows) -> bool:
    """Whether rows have two factors, the first much narrower than the second."""
    widths = [f.shape[1] for f in rows.factors]
    return len(widths) == 2 and LONGER * widths[0] <= widths[1] and rows.factors[0].device.type == "cpu"


def outlines(rows: Rows) -> Tensor:
    """a ‖h‖ of rows a ⊗ h, [n, C].

    >>> outlines(Rows((torch.tensor([[1.0, -1.0]]), torch.ones(1, 16))))
    tensor([[ 4., -4.]])
    """
    a, h = rows.factors
    outlined: Tensor = (a * torch.linalg.vector_norm(h.double(), dim=1, keepdim=True)).to(a.dtype)
    return outlined


def label_blocks(rows: Rows, size: int) -> list[Tensor]:
    """Places of the rows in blocks of one label (the largest entry of a), or of several until there are `size` rows.

    >>> a = torch.tensor([[-1.0, 0.5], [0.2, -0.3], [-0.7, 0.7]])
    >>> [block.tolist() for block in label_blocks(Rows((a, a)), size=1)]
    [[0, 2], [1]]
    """
    labels = rows.factors[0].abs().argmax(dim=1)
    sizes = torch.bincount(labels)
    block = (sizes.cumsum(0) - sizes).div_(size, rounding_mode="floor")[labels]
    return [(block == b).nonzero()[:, 0] for b in torch.unique(block).tolist()]
