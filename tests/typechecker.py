"""The run-time check of annotations: an int may stand where a float is asked for, as the language's own rules say."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
