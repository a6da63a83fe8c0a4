"""Features: what the samplers see of a pool. Gradient embeddings stay factored, g = a ⊗ h.

The gradient of the cross-entropy at the guessed class ŷ = argmax p with respect to the output layer's weights is
g = a ⊗ h with a = p − e_ŷ (equation 1 of the paper), so that

    ⟨g_i, g_j⟩ = ⟨a_i, a_j⟩ ⟨h_i, h_j⟩        ‖g_i − g_j‖² = ‖g_i‖² + ‖g_j‖² − 2 ⟨g_i, g_j⟩

cost C + D each in place of C·D. `Dense` is the same with one factor. Rows are gathered and converted block by block, so
that memory-mapped and half-precision arrays are never held or converted as a whole.
"""

from badge.features.exact import Exact
from badge.features.kinds import Dense, Factored, gradient_embedding
from badge.features.rows import Features, Rows

__all__ = ["Dense", "Exact", "Factored", "Features", "Rows", "gradient_embedding"]
