delete from {table} t using finished d where {same_row} and {pending}
