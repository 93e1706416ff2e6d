-- Lets nobody lease a lane until message ids are mended.
select tidegate.note_restarted_ids(true)
