"""What ``privatest curator init`` writes: a file to be changed by hand."""

__all__ = ["EXAMPLE"]

EXAMPLE = """\
# A curator answers questions about data that the asker may not see, within a budget that
# cannot be overspent. Paths are relative to this file. Check it: privatest curator check

ledger = "ledger.db"            # or postgresql://user@host/database
log = "curator.log"             # what failed and where, without data; for the custodian only

[datasets.visits]
source = "visits.csv"           # .csv, .csv.gz, .tsv, .tsv.gz or .parquet
schema = "visits.toml"          # public description of the columns: privatest schema visits.csv
epsilon = 3                     # what all answers together may cost, for ever
delta = 1e-6                    # 0 allows only tests without delta
composition = "basic"           # costs are added up; "tight" is cheaper for many small requests
# partition = "region"          # a public column whose parts hold different people: requests
                                # about different parts are then charged side by side

[datasets.visits.policy]
tests = ["two-sample", "independence/hsic", "fit"]  # a question, or a question and its method
largest_epsilon = 0.5           # the most that one request may cost
largest_delta = 1e-7
largest_permutations = 9999     # they cost your time
largest_points = 500            # rows of a release: they cost time, and space in the ledger

[analysts.ada]
datasets = ["visits"]
epsilon = 1                     # her share of each of them; leave it out for no limit of her own
delta = 5e-7
"""
