"""`make bench`: the speed table. Power and level: benchmarks.power.mmd, benchmarks.level.mmd."""

from benchmarks.speed import mmd

mmd.main()
