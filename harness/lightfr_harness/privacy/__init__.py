"""What noise buys: the user-level epsilon of training under secagg+dp. docs/privacy-dp.md says what it means."""

from lightfr_harness.privacy.accountant import Accountant
from lightfr_harness.privacy.loss import PrivacyLoss, discrete_gaussian, summed_discrete_gaussians

__all__ = ["Accountant", "PrivacyLoss", "discrete_gaussian", "summed_discrete_gaussians"]
