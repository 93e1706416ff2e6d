-- Copies what was set aside out of a segment that is about to be truncated. `message_0` stands for the segment.
update tidegate.aside a
set key = m.key, payload = m.payload, headers = m.headers, published_at = m.published_at
from tidegate.message_0 m
where m.id = a.id
