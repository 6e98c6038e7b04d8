"""The row formats: for each the codec of whole columns and that of single rows, side by side."""
