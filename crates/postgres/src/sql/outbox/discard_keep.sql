-- Copies what was set aside out of a segment that is about to be truncated.
--
-- $1 segment
update tidegate.aside a
set key = m.key, payload = m.payload, headers = m.headers, published_at = m.published_at
from tidegate.message m
where m.segment = $1 and m.lane = a.lane and m.id = a.id
