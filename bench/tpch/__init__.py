"""TPC-H: data at any scale, its one wide table, and queries after the specification's rules."""
