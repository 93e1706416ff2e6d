-- Sets the limit on outstanding messages. $1 the limit, or null for none
update tidegate.outbox set most_outstanding = $1
