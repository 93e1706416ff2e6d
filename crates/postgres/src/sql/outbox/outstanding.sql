-- How many messages are outstanding, or a few more, and how many may be.
select greatest(tidegate.outstanding(coalesce(o.most_outstanding, 9223372036854775807)), 0) as messages,
    o.most_outstanding
from tidegate.outbox o
