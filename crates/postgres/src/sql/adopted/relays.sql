-- The relay that has an adopted table. $1 adopted
select l.relay, 64::bigint as lanes
from tidegate.adopted l
where l.adopted = $1 and l.expires_at > now() and l.relay is not null
