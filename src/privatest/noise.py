"""The sources of noise, under the name that users import.

``SimulatedNoise`` is for simulations only; real answers need no noise argument.
"""

from privatest.core.noise import NoiseSource, SecureNoise, SimulatedNoise

__all__ = ["NoiseSource", "SecureNoise", "SimulatedNoise"]
