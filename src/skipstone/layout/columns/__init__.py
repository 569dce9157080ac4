"""Wide tables: the order and the duplicates of columns, so that a query reads few, long ranges.

Read it in this sequence:

values, files, reading, types   columns with sizes, queries, stored layouts; from tab-separated text or from SQL
seek, cost, problem             what a gap costs, what an order costs; a workload as arrays, columns that move as one
search, randomness              how long a search may go on, and the random numbers in its loops
orders                          searches for an order by name: `sweep` is ours; `scoa`, `autopart`, `genetic` and
                                `simple_orders` are those of the paper
choice                          which copy of each column a query reads: `choice_relaxed` first, then `choice_kernels`
duplication                     searches for duplicates by name: `refill` is ours, `insertion` the paper's; both work on
                                an order with `copies` and give `duplicates`
redirect                        from a query's columns to the physical ones, known sets by hash
proposing                       all of it from names to names, as the command line and the advice call it

Modules named `..._kernels` hold compiled loops for the module of that name; they know arrays alone.
"""
