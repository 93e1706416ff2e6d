-- Whether worker ?1 holds a suspect at ?2. Served by lease_suspect and exception_alone.
SELECT
    EXISTS (SELECT 1 FROM lease WHERE suspect = 1 AND worker = ?1 AND expires_ms > ?2)
    OR EXISTS (
        SELECT 1
        FROM exception
        WHERE state = 'retry' AND fence IS NOT NULL AND tries > 2 AND worker = ?1 AND due_ms > ?2
    )
