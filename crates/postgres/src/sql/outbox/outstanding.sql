-- How many messages are outstanding, or more, and how many may be.
select tidegate.outstanding(null) as messages, o.most_outstanding
from tidegate.outbox o
