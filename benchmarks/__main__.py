"""`make bench`: the speed tables. Power and level: benchmarks.power.*, benchmarks.level.*."""

from benchmarks.speed import family, hsic, ks, mmd

mmd.main()
hsic.main()
ks.main()
family.main()
