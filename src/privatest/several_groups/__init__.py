"""Do several groups differ?"""

from privatest.several_groups.anova import f_oneway
from privatest.several_groups.kruskal_wallis import kruskal

__all__ = ["f_oneway", "kruskal"]
