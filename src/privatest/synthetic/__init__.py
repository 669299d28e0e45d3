"""Private synthetic databases through kernel mean embeddings, and what one can do with them."""

from privatest.synthetic.answers import Estimate, Facts
from privatest.synthetic.data import SyntheticData
from privatest.synthetic.releases import release
from privatest.synthetic.testing import compare_releases

__all__ = ["Estimate", "Facts", "SyntheticData", "compare_releases", "release"]
