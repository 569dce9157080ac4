"""The 22 TPC-H query templates, once over the normalised schema and once over the one wide table.

The normalised forms follow clause 2.4 of the TPC-H specification. They are written in the SQL that Spark and DuckDB
share.

The wide forms replace the FROM clause with the wide table, as the dissertation does (section 3.7.2). Templates whose
filters all sit in one block are exactly equivalent to their normalised form. For q2, q11, q16, q17, q20, q21 and q22
the dissertation's column counts (sections 4.7.2 and 5.7.1) show that it kept the outer block alone, without the
correlated subqueries and over the grain of line items; so do we, and the counts agree. q13 counts customers without
orders, which the wide table does not have, so it has no wide form.

In q5 customer and supplier share their nation, so its region may be asked of either. The hand-made range scheme of
section 3.7.3 partitions by the customer's, so that is what the wide form asks; it favours that rival.
"""

from __future__ import annotations

SOP_TEMPLATES = ("q3", "q5", "q6", "q8", "q10", "q12", "q14", "q19")
"""The eight templates of the dissertation's section 3.7.2, and of WARP."""

GSOP_TEMPLATES = ("q3", "q5", "q6", "q11", "q12", "q16", "q19", "q20", "q21", "q22")
"""The ten templates of section 4.7.2."""

GSOPR_TEMPLATES = ("q2", "q3", "q5", "q6", "q7", "q8", "q11", "q12", "q16", "q17", "q19", "q20", "q21", "q22")
"""The fourteen templates of section 5.7.1."""

COLUMNS_IN_THE_DISSERTATION = {
    "q2": 11,
    "q3": 7,
    "q5": 7,
    "q6": 4,
    "q7": 5,
    "q8": 6,
    "q11": 4,
    "q12": 5,
    "q16": 4,
    "q17": 3,
    "q19": 8,
    "q20": 3,
    "q21": 5,
    "q22": 2,
}
"""Columns that a template reads of the wide table, as printed in sections 4.7.2 and 5.7.1."""

EQUIVALENT_WHEN_WIDE = (
    "q1",
    "q3",
    "q4",
    "q5",
    "q6",
    "q7",
    "q8",
    "q9",
    "q10",
    "q12",
    "q14",
    "q15",
    "q18",
    "q19",
)
"""Templates whose wide form answers exactly what the normalised form answers."""

NORMALISED: dict[str, str] = {
    "q1": """
select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty, sum(l_extendedprice) as sum_base_price,
    sum(l_extendedprice * (1 - l_discount)) as sum_disc_price,
    sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge,
    avg(l_quantity) as avg_qty, avg(l_extendedprice) as avg_price, avg(l_discount) as avg_disc,
    count(*) as count_order
from lineitem
where l_shipdate <= date '1998-12-01' - interval '{DELTA}' day
group by l_returnflag, l_linestatus
order by l_returnflag, l_linestatus
""",
    "q2": """
select s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
from part, supplier, partsupp, nation, region
where p_partkey = ps_partkey and s_suppkey = ps_suppkey and p_size = {SIZE} and p_type like '%{TYPE}'
    and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = '{REGION}'
    and ps_supplycost = (
        select min(ps_supplycost)
        from partsupp, supplier, nation, region
        where p_partkey = ps_partkey and s_suppkey = ps_suppkey and s_nationkey = n_nationkey
            and n_regionkey = r_regionkey and r_name = '{REGION}')
order by s_acctbal desc, n_name, s_name, p_partkey
limit 100
""",
    "q3": """
select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate, o_shippriority
from customer, orders, lineitem
where c_mktsegment = '{SEGMENT}' and c_custkey = o_custkey and l_orderkey = o_orderkey
    and o_orderdate < date '{DATE}' and l_shipdate > date '{DATE}'
group by l_orderkey, o_orderdate, o_shippriority
order by revenue desc, o_orderdate
limit 10
""",
    "q4": """
select o_orderpriority, count(*) as order_count
from orders
where o_orderdate >= date '{DATE}' and o_orderdate < date '{DATE}' + interval '3' month
    and exists (select * from lineitem where l_orderkey = o_orderkey and l_commitdate < l_receiptdate)
group by o_orderpriority
order by o_orderpriority
""",
    "q5": """
select n_name, sum(l_extendedprice * (1 - l_discount)) as revenue
from customer, orders, lineitem, supplier, nation, region
where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey and c_nationkey = s_nationkey
    and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = '{REGION}'
    and o_orderdate >= date '{DATE}' and o_orderdate < date '{DATE}' + interval '1' year
group by n_name
order by revenue desc
""",
    "q6": """
select sum(l_extendedprice * l_discount) as revenue
from lineitem
where l_shipdate >= date '{DATE}' and l_shipdate < date '{DATE}' + interval '1' year
    and l_discount between {DISCOUNT} - 0.01 and {DISCOUNT} + 0.01 and l_quantity < {QUANTITY}
""",
    "q7": """
select supp_nation, cust_nation, l_year, sum(volume) as revenue
from (
    select n1.n_name as supp_nation, n2.n_name as cust_nation, extract(year from l_shipdate) as l_year,
        l_extendedprice * (1 - l_discount) as volume
    from supplier, lineitem, orders, customer, nation n1, nation n2
    where s_suppkey = l_suppkey and o_orderkey = l_orderkey and c_custkey = o_custkey
        and s_nationkey = n1.n_nationkey and c_nationkey = n2.n_nationkey
        and ((n1.n_name = '{NATION1}' and n2.n_name = '{NATION2}')
            or (n1.n_name = '{NATION2}' and n2.n_name = '{NATION1}'))
        and l_shipdate between date '1995-01-01' and date '1996-12-31') as shipping
group by supp_nation, cust_nation, l_year
order by supp_nation, cust_nation, l_year
""",
    "q8": """
select o_year, sum(case when nation = '{NATION}' then volume else 0 end) / sum(volume) as mkt_share
from (
    select extract(year from o_orderdate) as o_year, l_extendedprice * (1 - l_discount) as volume, n2.n_name as nation
    from part, supplier, lineitem, orders, customer, nation n1, nation n2, region
    where p_partkey = l_partkey and s_suppkey = l_suppkey and l_orderkey = o_orderkey and o_custkey = c_custkey
        and c_nationkey = n1.n_nationkey and n1.n_regionkey = r_regionkey and r_name = '{REGION}'
        and s_nationkey = n2.n_nationkey and o_orderdate between date '1995-01-01' and date '1996-12-31'
        and p_type = '{TYPE}') as all_nations
group by o_year
order by o_year
""",
    "q9": """
select nation, o_year, sum(amount) as sum_profit
from (
    select n_name as nation, extract(year from o_orderdate) as o_year,
        l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity as amount
    from part, supplier, lineitem, partsupp, orders, nation
    where s_suppkey = l_suppkey and ps_suppkey = l_suppkey and ps_partkey = l_partkey and p_partkey = l_partkey
        and o_orderkey = l_orderkey and s_nationkey = n_nationkey and p_name like '%{COLOR}%') as profit
group by nation, o_year
order by nation, o_year desc
""",
    "q10": """
select c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) as revenue, c_acctbal, n_name, c_address, c_phone,
    c_comment
from customer, orders, lineitem, nation
where c_custkey = o_custkey and l_orderkey = o_orderkey and o_orderdate >= date '{DATE}'
    and o_orderdate < date '{DATE}' + interval '3' month and l_returnflag = 'R' and c_nationkey = n_nationkey
group by c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
order by revenue desc
limit 20
""",
    "q11": """
select ps_partkey, sum(ps_supplycost * ps_availqty) as value
from partsupp, supplier, nation
where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = '{NATION}'
group by ps_partkey
having sum(ps_supplycost * ps_availqty) > (
    select sum(ps_supplycost * ps_availqty) * {FRACTION}
    from partsupp, supplier, nation
    where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = '{NATION}')
order by value desc
""",
    "q12": """
select l_shipmode,
    sum(case when o_orderpriority = '1-URGENT' or o_orderpriority = '2-HIGH' then 1 else 0 end) as high_line_count,
    sum(case when o_orderpriority <> '1-URGENT' and o_orderpriority <> '2-HIGH' then 1 else 0 end) as low_line_count
from orders, lineitem
where o_orderkey = l_orderkey and l_shipmode in ('{SHIPMODE1}', '{SHIPMODE2}') and l_commitdate < l_receiptdate
    and l_shipdate < l_commitdate and l_receiptdate >= date '{DATE}'
    and l_receiptdate < date '{DATE}' + interval '1' year
group by l_shipmode
order by l_shipmode
""",
    "q13": """
select c_count, count(*) as custdist
from (
    select c_custkey, count(o_orderkey)
    from customer left outer join orders
        on c_custkey = o_custkey and o_comment not like '%{WORD1}%{WORD2}%'
    group by c_custkey) as c_orders (c_custkey, c_count)
group by c_count
order by custdist desc, c_count desc
""",
    "q14": """
select 100.00 * sum(case when p_type like 'PROMO%' then l_extendedprice * (1 - l_discount) else 0 end)
    / sum(l_extendedprice * (1 - l_discount)) as promo_revenue
from lineitem, part
where l_partkey = p_partkey and l_shipdate >= date '{DATE}' and l_shipdate < date '{DATE}' + interval '1' month
""",
    "q15": """
with revenue (supplier_no, total_revenue) as (
    select l_suppkey, sum(l_extendedprice * (1 - l_discount))
    from lineitem
    where l_shipdate >= date '{DATE}' and l_shipdate < date '{DATE}' + interval '3' month
    group by l_suppkey)
select s_suppkey, s_name, s_address, s_phone, total_revenue
from supplier, revenue
where s_suppkey = supplier_no and total_revenue = (select max(total_revenue) from revenue)
order by s_suppkey
""",
    "q16": """
select p_brand, p_type, p_size, count(distinct ps_suppkey) as supplier_cnt
from partsupp, part
where p_partkey = ps_partkey and p_brand <> '{BRAND}' and p_type not like '{TYPE}%' and p_size in ({SIZES})
    and ps_suppkey not in (select s_suppkey from supplier where s_comment like '%Customer%Complaints%')
group by p_brand, p_type, p_size
order by supplier_cnt desc, p_brand, p_type, p_size
""",
    "q17": """
select sum(l_extendedprice) / 7.0 as avg_yearly
from lineitem, part
where p_partkey = l_partkey and p_brand = '{BRAND}' and p_container = '{CONTAINER}'
    and l_quantity < (select 0.2 * avg(l_quantity) from lineitem where l_partkey = p_partkey)
""",
    "q18": """
select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) as quantity
from customer, orders, lineitem
where o_orderkey in (select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > {QUANTITY})
    and c_custkey = o_custkey and o_orderkey = l_orderkey
group by c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
order by o_totalprice desc, o_orderdate
limit 100
""",
    "q19": """
select sum(l_extendedprice * (1 - l_discount)) as revenue
from lineitem, part
where (p_partkey = l_partkey and p_brand = '{BRAND1}' and p_container in ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
        and l_quantity >= {QUANTITY1} and l_quantity <= {QUANTITY1} + 10 and p_size between 1 and 5
        and l_shipmode in ('AIR', 'AIR REG') and l_shipinstruct = 'DELIVER IN PERSON')
    or (p_partkey = l_partkey and p_brand = '{BRAND2}' and p_container in ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
        and l_quantity >= {QUANTITY2} and l_quantity <= {QUANTITY2} + 10 and p_size between 1 and 10
        and l_shipmode in ('AIR', 'AIR REG') and l_shipinstruct = 'DELIVER IN PERSON')
    or (p_partkey = l_partkey and p_brand = '{BRAND3}' and p_container in ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
        and l_quantity >= {QUANTITY3} and l_quantity <= {QUANTITY3} + 10 and p_size between 1 and 15
        and l_shipmode in ('AIR', 'AIR REG') and l_shipinstruct = 'DELIVER IN PERSON')
""",
    "q20": """
select s_name, s_address
from supplier, nation
where s_suppkey in (
        select ps_suppkey
        from partsupp
        where ps_partkey in (select p_partkey from part where p_name like '{COLOR}%')
            and ps_availqty > (
                select 0.5 * sum(l_quantity)
                from lineitem
                where l_partkey = ps_partkey and l_suppkey = ps_suppkey and l_shipdate >= date '{DATE}'
                    and l_shipdate < date '{DATE}' + interval '1' year))
    and s_nationkey = n_nationkey and n_name = '{NATION}'
order by s_name
""",
    "q21": """
select s_name, count(*) as numwait
from supplier, lineitem l1, orders, nation
where s_suppkey = l1.l_suppkey and o_orderkey = l1.l_orderkey and o_orderstatus = 'F'
    and l1.l_receiptdate > l1.l_commitdate
    and exists (select * from lineitem l2 where l2.l_orderkey = l1.l_orderkey and l2.l_suppkey <> l1.l_suppkey)
    and not exists (
        select * from lineitem l3
        where l3.l_orderkey = l1.l_orderkey and l3.l_suppkey <> l1.l_suppkey and l3.l_receiptdate > l3.l_commitdate)
    and s_nationkey = n_nationkey and n_name = '{NATION}'
group by s_name
order by numwait desc, s_name
limit 100
""",
    "q22": """
select cntrycode, count(*) as numcust, sum(c_acctbal) as totacctbal
from (
    select substring(c_phone from 1 for 2) as cntrycode, c_acctbal
    from customer
    where substring(c_phone from 1 for 2) in ({CODES})
        and c_acctbal > (
            select avg(c_acctbal) from customer
            where c_acctbal > 0.00 and substring(c_phone from 1 for 2) in ({CODES}))
        and not exists (select * from orders where o_custkey = c_custkey)) as custsale
group by cntrycode
order by cntrycode
""",
}
"""Template name to SQL over the eight normalised tables, with parameters in braces."""

WIDE: dict[str, str] = {
    "q1": NORMALISED["q1"].replace("from lineitem", "from denorm"),
    "q2": """
select s_acctbal, s_name, sn_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
from denorm
where p_size = {SIZE} and p_type like '%{TYPE}' and sr_name = '{REGION}'
order by s_acctbal desc, sn_name, s_name, p_partkey
limit 100
""",
    "q3": """
select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate, o_shippriority
from denorm
where c_mktsegment = '{SEGMENT}' and o_orderdate < date '{DATE}' and l_shipdate > date '{DATE}'
group by l_orderkey, o_orderdate, o_shippriority
order by revenue desc, o_orderdate
limit 10
""",
    "q4": """
select o_orderpriority, count(distinct o_orderkey) as order_count
from denorm
where o_orderdate >= date '{DATE}' and o_orderdate < date '{DATE}' + interval '3' month
    and l_commitdate < l_receiptdate
group by o_orderpriority
order by o_orderpriority
""",
    "q5": """
select cn_name, sum(l_extendedprice * (1 - l_discount)) as revenue
from denorm
where c_nationkey = s_nationkey and cr_name = '{REGION}'
    and o_orderdate >= date '{DATE}' and o_orderdate < date '{DATE}' + interval '1' year
group by cn_name
order by revenue desc
""",
    "q6": NORMALISED["q6"].replace("from lineitem", "from denorm"),
    "q7": """
select supp_nation, cust_nation, l_year, sum(volume) as revenue
from (
    select sn_name as supp_nation, cn_name as cust_nation, extract(year from l_shipdate) as l_year,
        l_extendedprice * (1 - l_discount) as volume
    from denorm
    where ((sn_name = '{NATION1}' and cn_name = '{NATION2}') or (sn_name = '{NATION2}' and cn_name = '{NATION1}'))
        and l_shipdate between date '1995-01-01' and date '1996-12-31') as shipping
group by supp_nation, cust_nation, l_year
order by supp_nation, cust_nation, l_year
""",
    "q8": """
select o_year, sum(case when nation = '{NATION}' then volume else 0 end) / sum(volume) as mkt_share
from (
    select extract(year from o_orderdate) as o_year, l_extendedprice * (1 - l_discount) as volume, sn_name as nation
    from denorm
    where cr_name = '{REGION}' and o_orderdate between date '1995-01-01' and date '1996-12-31'
        and p_type = '{TYPE}') as all_nations
group by o_year
order by o_year
""",
    "q9": """
select nation, o_year, sum(amount) as sum_profit
from (
    select sn_name as nation, extract(year from o_orderdate) as o_year,
        l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity as amount
    from denorm
    where p_name like '%{COLOR}%') as profit
group by nation, o_year
order by nation, o_year desc
""",
    "q10": """
select c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) as revenue, c_acctbal, cn_name, c_address, c_phone,
    c_comment
from denorm
where o_orderdate >= date '{DATE}' and o_orderdate < date '{DATE}' + interval '3' month and l_returnflag = 'R'
group by c_custkey, c_name, c_acctbal, c_phone, cn_name, c_address, c_comment
order by revenue desc
limit 20
""",
    "q11": """
select ps_partkey, sum(ps_supplycost * ps_availqty) as value
from denorm
where sn_name = '{NATION}'
group by ps_partkey
order by value desc, ps_partkey
""",
    "q12": NORMALISED["q12"].replace("from orders, lineitem\nwhere o_orderkey = l_orderkey and", "from denorm\nwhere"),
    "q14": NORMALISED["q14"].replace("from lineitem, part\nwhere l_partkey = p_partkey and", "from denorm\nwhere"),
    "q15": """
with revenue (supplier_no, supplier_name, supplier_address, supplier_phone, total_revenue) as (
    select s_suppkey, s_name, s_address, s_phone, sum(l_extendedprice * (1 - l_discount))
    from denorm
    where l_shipdate >= date '{DATE}' and l_shipdate < date '{DATE}' + interval '3' month
    group by s_suppkey, s_name, s_address, s_phone)
select supplier_no, supplier_name, supplier_address, supplier_phone, total_revenue
from revenue
where total_revenue = (select max(total_revenue) from revenue)
order by supplier_no
""",
    "q16": """
select p_brand, p_type, p_size, count(distinct ps_suppkey) as supplier_cnt
from denorm
where p_brand <> '{BRAND}' and p_type not like '{TYPE}%' and p_size in ({SIZES})
group by p_brand, p_type, p_size
order by supplier_cnt desc, p_brand, p_type, p_size
""",
    "q17": """
select sum(l_extendedprice) / 7.0 as avg_yearly
from denorm
where p_brand = '{BRAND}' and p_container = '{CONTAINER}'
""",
    "q18": """
select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) as quantity
from denorm
group by c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
having sum(l_quantity) > {QUANTITY}
order by o_totalprice desc, o_orderdate
limit 100
""",
    "q19": NORMALISED["q19"].replace("from lineitem, part", "from denorm").replace("p_partkey = l_partkey and ", ""),
    "q20": """
select distinct s_name, s_address
from denorm
where sn_name = '{NATION}'
order by s_name
""",
    "q21": """
select s_name, count(*) as numwait
from denorm
where o_orderstatus = 'F' and l_receiptdate > l_commitdate and sn_name = '{NATION}'
group by s_name
order by numwait desc, s_name
limit 100
""",
    "q22": """
select substring(c_phone from 1 for 2) as cntrycode, count(*) as numcust, sum(c_acctbal) as totacctbal
from denorm
where substring(c_phone from 1 for 2) in ({CODES}) and c_acctbal > 0.00
group by substring(c_phone from 1 for 2)
order by cntrycode
""",
}
"""Template name to SQL over the one wide table, for every template that has a meaning there."""
