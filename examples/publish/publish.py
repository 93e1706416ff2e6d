"""Messages in the same transaction as the data, with psycopg 3:

python3 examples/publish/publish.py postgres://user@host/db
"""

import sys

import psycopg
from psycopg.types.json import Jsonb

ORDERS = """
create table if not exists orders (
    number bigint generated always as identity primary key,
    item text not null,
    shipped boolean not null default false
)
"""


def place(connection, item):
    """Writes an order and its message: both are there after the commit, or neither."""
    with connection.transaction():
        order = "insert into orders (item) values (%s) returning number"
        (number,) = connection.execute(order, [item]).fetchone()
        payload, headers = {"number": number, "item": item}, {"ce-source": "/shop"}
        connection.execute(
            "select tidegate.publish(%s, %s, %s, %s)",
            ["orders.created", str(number), Jsonb(payload), Jsonb(headers)],
        )
    return number


def ship(connection, numbers):
    """Publishes several messages in one statement, in the order of the lists."""
    with connection.transaction():
        shipped = "update orders set shipped = true where number = any(%s)"
        connection.execute(shipped, [numbers])
        topics = ["orders.shipped" for _ in numbers]
        keys = [str(number) for number in numbers]
        payloads = [Jsonb({"number": number}) for number in numbers]
        connection.execute("select tidegate.publish_many(%s, %s, %s)", [topics, keys, payloads])


def change_of_mind(connection):
    """Rolled back: no order, no message."""
    with connection.transaction():
        place(connection, "milk")
        raise psycopg.Rollback


def refusal(connection):
    """Refused: the transaction has failed, and the order is not there either."""
    try:
        with connection.transaction():
            connection.execute("insert into orders (item) values ('sugar')")
            publish = "select tidegate.publish(%s, %s, %s)"
            connection.execute(publish, ["orders.*", None, Jsonb({"item": "sugar"})])
    except psycopg.Error as error:
        if error.sqlstate != "TG400":
            raise
        print(f"refused with {error.sqlstate}: {error.diag.message_primary}")


def main(url):
    # Without autocommit the first statement begins a transaction, and the ones above are inside it.
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(ORDERS)
        tea, coffee = place(connection, "tea"), place(connection, "coffee")
        ship(connection, [tea, coffee])
        change_of_mind(connection)
        refusal(connection)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: publish.py postgres://user@host/db")
    main(sys.argv[1])
