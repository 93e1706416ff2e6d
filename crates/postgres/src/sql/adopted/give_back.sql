-- Gives a lease back before its time, unless it was lost. Its fence proves nothing any more.
--
-- $1 adopted, $2 fence
update tidegate.adopted l
set expires_at = now(), relay = null, fence = nextval('tidegate.fence')
where l.adopted = $1 and l.fence = $2
