-- The relays that live, and how many lanes each has.
select r.relay, (select count(*) from tidegate.lane l where l.relay = r.relay) as lanes
from tidegate.relay r
where r.expires_at > now()
order by r.relay collate "C"
