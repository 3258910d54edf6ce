"""rows.py - the rows of a comparison by name; each prepares its model and its inputs and says which sides take turns."""
import row_act
import row_pi05
import row_smolvla
import row_text

ROWS = {"act": row_act.rows, "smolvla": row_smolvla.rows, "prefill": row_text.prefill, "decode": row_text.decode,
        "pi05": row_pi05.rows}
