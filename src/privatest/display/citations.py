"""The papers that methods come from, as they are written in a list of references."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reference:
    """A paper: how it is named in a text, and in a list."""

    short: str
    full: str


REFERENCES: Mapping[str, Reference] = {
    "dwork2006": Reference(
        "Dwork et al. 2006",
        "Dwork, C., McSherry, F., Nissim, K. and Smith, A. (2006). Calibrating noise to "
        "sensitivity in private data analysis. Theory of Cryptography Conference (TCC 2006), "
        "265–284.",
    ),
    "kim2023": Reference(
        "Kim and Schrab 2023",
        "Kim, I. and Schrab, A. (2023). Differentially private permutation tests: applications to "
        "kernel methods. arXiv:2310.19043.",
    ),
    "gretton2012": Reference(
        "Gretton et al. 2012",
        "Gretton, A., Borgwardt, K. M., Rasch, M. J., Schölkopf, B. and Smola, A. (2012). A kernel "
        "two-sample test. Journal of Machine Learning Research 13, 723–773.",
    ),
    "gretton2007": Reference(
        "Gretton et al. 2007",
        "Gretton, A., Fukumizu, K., Teo, C. H., Song, L., Schölkopf, B. and Smola, A. (2007). A "
        "kernel statistical test of independence. Advances in Neural Information Processing "
        "Systems 20, 585–592.",
    ),
    "awan2022": Reference(
        "Awan and Wang 2022",
        "Awan, J. and Wang, Y. (2022). Differentially private Kolmogorov–Smirnov-type tests. "
        "arXiv:2208.06236.",
    ),
    "awan2018": Reference(
        "Awan and Slavković 2018",
        "Awan, J. and Slavković, A. (2018). Differentially private uniformly most powerful tests "
        "for binomial data. Advances in Neural Information Processing Systems 31, 4208–4218.",
    ),
    "couch2019": Reference(
        "Couch et al. 2019",
        "Couch, S., Kazan, Z., Shi, K., Bray, A. and Groce, A. (2019). Differentially private "
        "nonparametric hypothesis testing. ACM Conference on Computer and Communications Security "
        "(CCS 2019). arXiv:1903.09364.",
    ),
    "raj2019": Reference(
        "Raj et al. 2019",
        "Raj, A., Law, H. C. L., Sejdinovic, D. and Park, M. (2019). A differentially private "
        "kernel two-sample test. ECML PKDD 2019. doi:10.1007/978-3-030-46150-8_41.",
    ),
    "chwialkowski2015": Reference(
        "Chwialkowski et al. 2015",
        "Chwialkowski, K., Ramdas, A., Sejdinovic, D. and Gretton, A. (2015). Fast two-sample "
        "testing with analytic representations of probability measures. Advances in Neural "
        "Information Processing Systems 28, 1981–1989.",
    ),
    "dunsche2022": Reference(
        "Dunsche et al. 2022",
        "Dunsche, M., Kutta, T. and Dette, H. (2022). Multivariate mean comparison under "
        "differential privacy. Privacy in Statistical Databases (PSD 2022), "
        "31–45. doi:10.1007/978-3-031-13945-1_3.",
    ),
    "amin2019": Reference(
        "Amin et al. 2019",
        "Amin, K., Dick, T., Kulesza, A., Muñoz Medina, A. and Vassilvitskii, S. (2019). "
        "Differentially private covariance estimation. Advances in Neural Information Processing "
        "Systems 32.",
    ),
    "schuirmann1987": Reference(
        "Schuirmann 1987",
        "Schuirmann, D. J. (1987). A comparison of the two one-sided tests procedure and the power "
        "approach for assessing the equivalence of average bioavailability. Journal of "
        "Pharmacokinetics and Biopharmaceutics 15(6), 657–680.",
    ),
    "swanberg2019": Reference(
        "Swanberg et al. 2019",
        "Swanberg, M., Globus-Harris, I., Griffith, I., Ritz, A., Groce, A. and Bray, A. (2019). "
        "Improved differentially private analysis of variance. Proceedings on Privacy Enhancing "
        "Technologies 2019(3), 310–330.",
    ),
    "kazan2023": Reference(
        "Kazan et al. 2023",
        "Kazan, Z., Shi, K., Groce, A. and Bray, A. (2023). The test of tests: a framework for "
        "differentially private hypothesis testing. International Conference on Machine Learning "
        "(ICML 2023). arXiv:2302.04260.",
    ),
    "pena2022": Reference(
        "Peña and Barrientos 2022",
        "Peña, V. and Barrientos, A. F. (2022). Differentially private hypothesis testing with the "
        "subsampled and aggregated randomized response mechanism. arXiv:2208.06803.",
    ),
    "alabi2022": Reference(
        "Alabi and Vadhan 2022",
        "Alabi, D. and Vadhan, S. (2022). Hypothesis testing for differentially private linear "
        "regression. Advances in Neural Information Processing Systems 35.",
    ),
    "gaboardi2016": Reference(
        "Gaboardi et al. 2016",
        "Gaboardi, M., Lim, H., Rogers, R. and Vadhan, S. (2016). Differentially private "
        "chi-squared hypothesis testing: goodness of fit and independence testing. International "
        "Conference on Machine Learning (ICML 2016), 2111–2120.",
    ),
    "rogers2017": Reference(
        "Rogers and Kifer 2017",
        "Rogers, R. and Kifer, D. (2017). A new class of private chi-square hypothesis tests. "
        "International Conference on Artificial Intelligence and Statistics (AISTATS 2017), "
        "991–1000.",
    ),
    "kalemaj2024": Reference(
        "Kalemaj et al. 2024",
        "Kalemaj, I., Kasiviswanathan, S. P. and Ramdas, A. (2024). Differentially private "
        "conditional independence testing. International Conference on Artificial Intelligence and "
        "Statistics (AISTATS 2024). arXiv:2306.06721.",
    ),
    "shah2020": Reference(
        "Shah and Peters 2020",
        "Shah, R. D. and Peters, J. (2020). The hardness of conditional independence testing and "
        "the generalised covariance measure. Annals of Statistics 48(3), 1514–1538.",
    ),
    "candes2018": Reference(
        "Candès et al. 2018",
        "Candès, E., Fan, Y., Janson, L. and Lv, J. (2018). Panning for gold: 'model-X' knockoffs "
        "for high dimensional controlled variable selection. Journal of the Royal Statistical "
        "Society, Series B 80(3), 551–577.",
    ),
    "drechsler2021": Reference(
        "Drechsler et al. 2021",
        "Drechsler, J., Globus-Harris, I., McMillan, A., Sarathy, J. and Smith, A. (2021). "
        "Nonparametric differentially private confidence intervals for the median. Theory and "
        "Practice of Differential Privacy, a workshop of ICML 2021.",
    ),
    "hodges1963": Reference(
        "Hodges and Lehmann 1963",
        "Hodges, J. L. and Lehmann, E. L. (1963). Estimates of location based on rank tests. "
        "Annals of Mathematical Statistics 34(2), 598–611.",
    ),
    "balog2018": Reference(
        "Balog et al. 2018",
        "Balog, M., Tolstikhin, I. and Schölkopf, B. (2018). Differentially private database "
        "release via kernel mean embeddings. International Conference on Machine Learning (ICML "
        "2018). arXiv:1710.01641.",
    ),
    "balle2018": Reference(
        "Balle and Wang 2018",
        "Balle, B. and Wang, Y.-X. (2018). Improving the Gaussian mechanism for differential "
        "privacy: analytical calibration and optimal denoising. International Conference on "
        "Machine Learning (ICML 2018).",
    ),
}

# What each method of the catalogue does, in a sentence for a paper, and where it comes from.


def shorts(keys: Iterable[str]) -> str:
    """Return papers as they are named in a text."""
    return "; ".join(REFERENCES[key].short for key in keys)
