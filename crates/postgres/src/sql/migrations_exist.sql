-- Whether any migration was ever applied.
select to_regclass('tidegate.migration') is not null as exist
