"""`make bench`: the speed tables. Power and level: benchmarks.power.*, benchmarks.level.*."""

from benchmarks.speed import embedding, family, hotelling, hsic, ks, ledger, mmd, release

mmd.main()
hsic.main()
ks.main()
family.main()
release.main()
hotelling.main()
embedding.main()
ledger.main()
