-- What makes ids of messages unique among outboxes.
select name from tidegate.outbox
