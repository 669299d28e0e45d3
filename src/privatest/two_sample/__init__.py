"""Do two samples come from the same distribution?"""

from privatest.two_sample.ipm import ipm_test
from privatest.two_sample.mmd import mmd_test

__all__ = ["ipm_test", "mmd_test"]
