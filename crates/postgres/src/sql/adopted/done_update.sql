update {table} t set {column} = {value} from finished d where {same_row} and {pending}
