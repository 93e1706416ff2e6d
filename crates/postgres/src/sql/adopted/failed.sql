update {table} t
    set {columns}
    from incoming i
    where {same_row} and {pending} and i.state in ('retry', 'dead') and i.reason <> ''
