-- Stores the parts ?2 of a range, an array of [from, to], as suspects that nobody holds; ?3 is when
-- they can be leased, ?4 the fence under which the range was lost. Served by the key of lease.
INSERT INTO lease (batch_id, hi, lo, fence, worker, expires_ms, tries, lost, suspect)
SELECT ?1, value ->> 1, value ->> 0, 0, '', ?3, 2, ?4, 1
FROM json_each(?2)
