-- The relays that live, and how many lanes each has.
select r.relay, (select count(*) from tidegate.lane l where l.relay = r.relay) as lanes
from (select distinct r.relay from tidegate.relay r where r.expires_at > now()) r
order by r.relay collate "C"
