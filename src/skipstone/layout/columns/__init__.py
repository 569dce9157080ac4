"""Wide tables: the order and the duplicates of columns, so that a query reads few, long ranges."""
